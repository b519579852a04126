"""The tables of docs/lsvi-ucb-sketch.md: a sketch of Lambda in several sizes, and count-min in place of counts.

.venv/bin/python docs/measure_sketch.py [sketch] [count_min]     a few minutes each on one core
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.agents.storage.base import Parts, Storage
from linmdp.agents.storage.counts import Counts
from linmdp.features.tabular import TableFeatures, trusted
from linmdp.io.units import human_bytes
from linmdp.plugins import import_modules
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.types import Array, RunResult, Task

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "examples"))
import_modules(["wide"])
ENV = "synthetic:S=100,A=5,d=10,H=20"
CONTRAST = f"{ENV},concentration=0.1"
COMMON: dict[str, Any] = {"beta": 0.05, "lam": 0.1}
SEEDS = 3


def runs_of(env: Any, make: Any, episodes: int, seeds: int = SEEDS) -> tuple[list[RunResult], Any]:
    """One run for each seed, and the last agent."""
    found = []
    for seed in range(seeds):
        agent = make(env.task)
        found.append(linmdp.run(env, agent, episodes=episodes, seed=seed, eval_every=20))
    print(f"{agent.name}: {found[-1].final_regret:.1f}", file=sys.stderr)
    return found, agent


def sketch(episodes: int = 500) -> str:
    """Regret, shrinkage and bytes for each m, on a flat spectrum and on one that decays."""
    parts = []
    flat, decaying = linmdp.make_env(ENV), linmdp.make_env("wide")
    for title, env, sizes in (
        (f"`{ENV}`, whose features have no small directions", flat, (2, 4, 6, 8, 11)),
        ("The same MDP through 160 features, of which 150 decay", decaying, (2, 5, 11, 20)),
    ):
        rows = []
        makers: dict[str, Any] = {"lsvi-ucb": partial(linmdp.LSVIUCB, **COMMON)}
        for m in sizes:
            makers[f"lsvi-ucb-sketch:m={m}"] = partial(linmdp.LSVIUCBSketch, m=m, **COMMON)
        wider = partial(linmdp.LSVIUCBSketch, m=sizes[1], inflate=0.01, **COMMON)
        makers[f"lsvi-ucb-sketch:m={sizes[1]},inflate=0.01"] = wider
        makers |= {"random": linmdp.RandomAgent, "optimal": partial(linmdp.make_agent, "optimal", env)}
        for name, make in makers.items():
            runs, agent = runs_of(env, (lambda task, make=make: make()) if name == "optimal" else make, episodes)
            shrinkage = agent.diagnostics().get("shrinkage")
            ridge = agent._planner.ridge.nbytes if hasattr(agent, "_planner") else 0
            rows.append(
                (
                    f"`{name}`",
                    str(mean_interval(np.array([r.final_regret for r in runs]))),
                    "-" if shrinkage is None else f"{shrinkage:.3g}",
                    human_bytes(ridge),
                    human_bytes(max(r.peak_bytes for r in runs)),
                    f"{np.mean([r.cpu_seconds for r in runs]):.1f}",
                )
            )
        head = ("agent", "regret [95% interval]", "alpha / lam", "its regressions", "agent memory", "CPU s")
        parts.append(f"{title}, {episodes:,} episodes, {SEEDS} seeds:\n\n{markdown(head, rows)}\n")
    return "\n".join(parts)


class Hashed(Counts):
    """Counts N whose columns, the next states, are hashed into `width` buckets, `depth` times over.

    The sketches are linear in N, so that they are made from it here: what they estimate is the same.
    """

    def __init__(self, parts: Parts, features: TableFeatures, kind: str, depth: int, width: int) -> None:
        super().__init__(parts, features, "float64")
        rng, S, self.kind = np.random.default_rng(0), features.S, kind
        self.bucket = rng.integers(width, size=(depth, S))
        self.hashed: Array = np.eye(width)[self.bucket]  # (depth, S, width)
        if kind == "count-sketch":
            self.hashed *= rng.choice((-1.0, 1.0), size=(depth, S, 1))

    def target(self, h: int) -> Any:
        V, sketches = self.V[h + 1], self.N[h] @ self.hashed  # (depth, d, width)
        if self.kind == "count-min":  # every copy is an upper bound of every column
            return np.min([x[:, bucket] for x, bucket in zip(sketches, self.bucket, strict=True)], axis=0) @ V
        into = V @ self.hashed
        if self.kind == "mean of a bucket":
            into /= np.maximum(self.hashed.sum(1), 1)
        return np.median((sketches @ into[..., None])[..., 0], axis=0)  # count-sketch: without bias


class HashedLSVI(linmdp.LSVIUCB):
    """LSVI-UCB with `Hashed` in place of its counts."""

    name = "hashed"

    def __init__(self, task: Task, *, kind: str, depth: int, width: int, **common: Any) -> None:
        self.kind, self.depth, self.width = kind, depth, width
        super().__init__(task, **common)

    def make_storage(self, parts: Parts) -> Storage:
        features: Any = trusted(self.task.features)
        return Hashed(parts, features, self.kind, self.depth, self.width)


def count_min() -> str:
    """On the paper's features, and on such with more contrast, where values differ from state to state."""
    return f"{_count_min(ENV)}\n{_count_min(CONTRAST)}"


def _count_min(name: str, episodes: int = 800) -> str:
    """Regret at a quarter, a half and the end, and what an episode costs in the last quarter."""
    env, rows = linmdp.make_env(name), []
    makers: dict[str, tuple[Any, int]] = {"counts, exact": (partial(linmdp.LSVIUCB, **COMMON), 100)}
    for kind, sizes in (
        ("count-min", ((4, 6), (4, 12), (4, 24))),
        ("count-sketch", ((4, 6), (4, 12), (4, 24))),
        ("mean of a bucket", ((1, 24), (1, 48))),
    ):
        for depth, width in sizes:
            make = partial(HashedLSVI, kind=kind, depth=depth, width=width, **COMMON)
            makers[f"{kind}, {depth} x {width}"] = make, depth * width
    for M in (24, 48):
        makers[f"`storage=centres,M={M}`"] = partial(linmdp.LSVIUCB, storage="centres", M=M, replan=0.0, **COMMON), M
    makers["random"] = linmdp.RandomAgent, 0
    for agent, (make, columns) in makers.items():
        runs, _ = runs_of(env, make, episodes, seeds=3)
        curves = np.array([r.regret for r in runs])
        n = curves.shape[1]
        late = (curves[:, -1] - curves[:, 3 * n // 4 - 1]) / (episodes / 4)
        at = (f"{curves[:, n * q // 4 - 1].mean():.0f}" for q in (1, 2, 4))
        rows.append((agent, str(columns or "-"), *at, str(mean_interval(late))))
    head = ("z from", "columns of d numbers", f"regret at {episodes // 4:,}", f"{episodes // 2:,}", f"{episodes:,}")
    return f"`{name}`, 3 seeds:\n\n{markdown((*head, 'per episode, last quarter'), rows)}\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore", linmdp.LinMDPWarning)  # of agents that learn nothing, as is shown
    for part in sys.argv[1:] or ("sketch", "count_min"):
        (DOCS / f"generated/{part}.md").write_text({"sketch": sketch, "count_min": count_min}[part]())
