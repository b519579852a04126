"""How figures are set, and what agents are called in them."""

from __future__ import annotations

from typing import Any

from linmdp.errors import LinMDPError


class NoFigures(LinMDPError, ImportError):
    """Matplotlib is not installed."""


def pyplot(*, screen: bool = False) -> Any:
    """matplotlib.pyplot, set up to draw without a screen (or as the user has set it); an install may lack it."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise NoFigures("Figures need matplotlib: install linmdp with its extra 'figures'.") from None
    if not screen:
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


NAMES = {"lsvi-ucb": "LSVI-UCB", "lsvi-ucb-fixed": "Fixed", "lsvi-ucb-adaptive": "Adaptive", "lsvi-ucb-fold": "Fold"}
SHARED = ("beta", "lam", "cap", "ties", "storage")


def short_name(agent: str) -> str:
    """A readable name for an agent's spec: "lsvi-ucb-fixed:rho=0.75" as "Fixed (rho=0.75)"."""
    name, _, parameters = agent.partition(":")
    return NAMES.get(name, name) + (f" ({parameters.replace(',', ', ')})" if parameters else "")


def setting_name(agent: str) -> str:
    """The same without the parameters that all agents of a figure share: beta, lambda, ties, cap, storage."""
    name, _, parameters = agent.partition(":")
    own = [p for p in parameters.split(",") if p and p.partition("=")[0] not in SHARED]
    return short_name(name + ":" * bool(own) + ",".join(own)) + ", counts" * ("storage=counts" in agent)
