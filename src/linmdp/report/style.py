"""How figures and numbers look, in one place."""

from __future__ import annotations

from typing import Any

from linmdp.errors import LinMDPError

PALETTE = ("#2266aa", "#d1690e", "#3a8f3a", "#8e4ec6", "#b8336a", "#7a6a00", "#008a9b")
BASELINES = {
    "random": ("#777777", (0, (5, 2))),
    "optimal": ("#111111", (0, (1, 1.5))),
    "constant": ("#aaaaaa", (0, (3, 1, 1, 1))),
}


class NoFigures(LinMDPError, ImportError):
    """The library that draws is not installed."""


def pyplot() -> Any:
    """matplotlib, which draws without a screen; it is as large as all the rest, so an install may be without it."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise NoFigures("Figures need matplotlib: install linmdp with its extra 'figures'.") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt


RC: dict[str, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "font.size": 10,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "linmdp",
    "svg.fonttype": "none",
}


WORDS = {"lsvi-ucb": "LSVI-UCB", "lsvi-ucb-fixed": "Fixed", "lsvi-ucb-adaptive": "Adaptive", "lsvi-ucb-fold": "Fold"}
SHARED = ("beta", "lam", "cap", "ties", "storage")


def human_bytes(count: float) -> str:
    """1536 as "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 999.5 else f"{count:.3g} {unit}"
        count /= 1024
    raise AssertionError("not reached")


def short_name(agent: str) -> str:
    """An agent's spec as people say it: "lsvi-ucb-fixed:rho=0.75" as "Fixed (rho=0.75)"."""
    name, _, parameters = agent.partition(":")
    return WORDS.get(name, name) + (f" ({parameters.replace(',', ', ')})" if parameters else "")


def setting_name(agent: str) -> str:
    """The same without what all agents of a figure share: beta, lambda, ties, cap, and the paper's storage."""
    name, _, parameters = agent.partition(":")
    own = [p for p in parameters.split(",") if p and p.partition("=")[0] not in SHARED]
    return short_name(name + ":" * bool(own) + ",".join(own)) + ", counts" * ("storage=counts" in agent)
