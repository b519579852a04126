"""How figures look, how they are drawn, and how they are saved."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linmdp.errors import LinMDPError, needed
from linmdp.io.files import write_atomic
from linmdp.results.curves import spaced
from linmdp.results.stats import Interval, mean_intervals
from linmdp.results.summary import Summary
from linmdp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class NoFigures(LinMDPError, ImportError):
    """Matplotlib is not installed."""


def pyplot(*, screen: bool = False) -> Any:
    """matplotlib.pyplot, set up to draw without a screen (or as the user has set it); an install may lack it."""
    words = "Figures need matplotlib: pip install 'linmdp[figures]'."
    if not screen:
        needed("matplotlib", words, NoFigures).use("agg")
    return needed("matplotlib.pyplot", words, NoFigures)


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


NAMES = {"lsvi-ucb": "LSVI-UCB", "lsvi-ucb-fixed": "Fixed", "lsvi-ucb-adaptive": "Adaptive"}
SHARED = ("beta", "lam", "cap", "ties", "storage", "memory")


def short_name(agent: str) -> str:
    """A readable name for an agent's spec: "lsvi-ucb-fixed:rho=0.75" as "Fixed (rho=0.75)"."""
    name, _, parameters = agent.partition(":")
    return NAMES.get(name, name) + (f" ({parameters.replace(',', ', ')})" if parameters else "")


def distinct_names(agents: Iterable[str]) -> dict[str, str]:
    """A short name of each agent: without parameters that have one value here, where that leaves the names distinct."""
    specs = list(dict.fromkeys(agents))
    values: dict[str, set[str]] = {}
    for agent in specs:
        for key, _, value in (p.partition("=") for p in agent.partition(":")[2].split(",")):
            values.setdefault(key, set()).add(value)
    names = {}
    for agent in specs:
        name, _, parameters = agent.partition(":")
        own = [p for p in parameters.split(",") if p and len(values[p.partition("=")[0]]) > 1]
        names[agent] = short_name(name + ":" * bool(own) + ",".join(own))
    taken = list(names.values())
    return {agent: name if taken.count(name) == 1 else short_name(agent) for agent, name in names.items()}


def setting_name(agent: str) -> str:
    """The same without the parameters that all agents of a figure share: beta, lambda, ties, cap, storage."""
    name, _, parameters = agent.partition(":")
    own = [p for p in parameters.split(",") if p and p.partition("=")[0] not in SHARED]
    return short_name(name + ":" * bool(own) + ",".join(own)) + ", counts" * ("storage=counts" in agent)


PALETTE = ("#2266aa", "#d1690e", "#3a8f3a", "#8e4ec6", "#b8336a", "#7a6a00", "#008a9b")
DARK_PALETTE = ("#6cb0f0", "#f29a4a", "#6cc46c", "#c19af0", "#f07fa8", "#cdb83a", "#45c4d4")

Dashes = tuple[float, ...]
DASHES: tuple[Dashes, ...] = ((), (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 4))
MARKERS = (("o", "circle"), ("s", "square"), ("D", "diamond"), ("^", "triangle-up"), ("v", "triangle-down"))
"""Once the colours are used up they come again with other dashes and markers (Matplotlib's name, Plotly's name)."""


class LineStyle(NamedTuple):
    """`dashes` are lengths in line widths, empty for a solid line; `marker` is an index into MARKERS."""

    light: str
    dark: str
    dashes: Dashes
    marker: int = 0
    name: str = ""
    baseline: bool = False

    def width(self, index: int) -> float:
        """Width of the curve drawn at `index`: each thinner than the one under it, so that none is hidden."""
        return 1.6 if self.baseline else max(1.4, 3.2 - 0.45 * index)

    def line(self, index: int) -> dict[str, Any]:
        """Matplotlib's arguments for the curve drawn at `index`."""
        return {"color": self.light, "linestyle": (0, self.dashes) if self.dashes else "-", "lw": self.width(index)}


BASELINES = {
    "random": LineStyle("#777777", "#a6a6a6", (5, 2)),
    "optimal": LineStyle("#111111", "#f2f2f2", (1, 1.5)),
    "constant": LineStyle("#aaaaaa", "#7d7d7d", (3, 1, 1, 1)),
}


def is_baseline(agent: str) -> bool:
    """Whether it is one of the policies that do not learn."""
    return agent.partition(":")[0] in BASELINES


def line_styles(agents: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each agent, in their order."""
    styles: dict[str, LineStyle] = {}
    learners = 0
    for agent in dict.fromkeys(agents):
        if is_baseline(agent):
            style = BASELINES[agent.partition(":")[0]]._replace(baseline=True)
        else:
            turn, colour = divmod(learners, len(PALETTE))
            turn %= len(DASHES)
            style = LineStyle(PALETTE[colour], DARK_PALETTE[colour], DASHES[turn], turn)
            learners += 1
        styles[agent] = style._replace(name=short_name(agent))
    return styles


MIB = 2**20
INTERVALS, KNOTS = 60, 30
"""Points of a curve that is drawn, and those where its interval is computed; between them it is a straight line."""


class Curve(NamedTuple):
    """A mean over seeds and its 95% interval at `episode`, each (points,)."""

    episode: Array
    mean: Array
    low: Array
    high: Array


def mean_curve(values: Array, episode: Array) -> Curve:
    """The mean of curves (seeds, points) that were taken after the episodes (points,)."""
    knots = spaced(len(episode), KNOTS)
    intervals = np.array(mean_intervals(values[:, knots]))
    mean = values.mean(axis=0)
    below, above = (np.interp(episode, episode[knots], intervals[:, i] - intervals[:, 0]) for i in (1, 2))
    return Curve(episode, mean, mean + below, mean + above)


@contextmanager
def drawing(panels: int, size: tuple[float, float], **options: Any) -> Iterator[tuple[Any, ...]]:
    """A figure of panels side by side, and their axes."""
    plt = pyplot()
    with plt.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the font may lack letters of a name
        figure, axes = plt.subplots(1, panels, figsize=size, squeeze=False, **options)
        try:
            yield figure, *axes[0]
        finally:
            plt.close(figure)


def rendered(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg"; the same figure gives the same bytes."""
    data = io.BytesIO()
    figure.savefig(data, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return data.getvalue()


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write the figure as STEM.png and STEM.svg."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for path in paths:
        write_atomic(path, rendered(figure, path.suffix[1:]))
    return paths


def draw_curve(axes: Axes, curve: Curve, line: dict[str, Any], *, band: bool = True) -> None:
    """A mean over the episodes and, as a band, its 95% interval."""
    axes.plot(curve.episode, curve.mean, **line)
    if band:
        axes.fill_between(curve.episode, curve.low, curve.high, color=line["color"], alpha=0.15, lw=0)


def error_bar(*values: Interval) -> Any:
    """Distances from the means to the ends of their intervals, (2, n)."""
    mean, low, high = np.array(values).T
    return np.maximum([mean - low, high - mean], 0)


def regret_curve(s: Summary) -> Curve:
    """The mean regret of an agent, at a few points; a stored curve has fewer than there were episodes."""
    assert s.curve is not None
    points = s.curve.shape[1]
    shown = spaced(points, INTERVALS)
    return mean_curve(s.curve[:, shown], 1 + np.linspace(0, s.episodes - 1, points)[shown])
