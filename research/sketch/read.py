"""A sketch of Lambda in several sizes (docs, lsvi-ucb-sketch). A few minutes on one core."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import linmdp
from linmdp.io.units import human_bytes
from linmdp.plugins import import_modules
from linmdp.report.tables import markdown
from linmdp.types import RunResult
from research.study import HERE, Study, shown, within

ENV = "synthetic:S=100,A=5,d=10,H=20"
TITLES = {
    ENV: f"`{ENV}`, whose features have no small directions",
    "wide": "The same MDP through 160 features, of which 150 decay",
}
SIZES = {ENV: (2, 4, 6, 8, 11), "wide": (2, 5, 11, 20)}
COMMON, EPISODES, SEEDS = "beta=0.05,lam=0.1", 500, 3


def sketch(_: Study) -> str:
    """Regret, shrinkage and bytes for each m, on a flat spectrum and on one that decays."""
    import_modules(["wide"], str(HERE / "headlines"))
    parts = []
    for spec, title in TITLES.items():
        env, names = linmdp.make_env(spec), ["lsvi-ucb"]
        names += [f"lsvi-ucb-sketch:m={m}" for m in SIZES[spec]]
        names += [f"lsvi-ucb-sketch:m={SIZES[spec][1]},inflate=0.01", "random", "optimal"]
        rows = [row(env, name) for name in names]
        head = ("agent", "regret [95% interval]", "alpha / lam", "its regressions", "agent memory", "CPU s")
        parts.append(f"{title}, {EPISODES:,} episodes, {SEEDS} seeds:\n\n{markdown(head, rows)}\n")
    return "\n".join(parts)


def row(env: Any, name: str) -> tuple[str, ...]:
    """What one agent has lost, and what it took."""
    spec = f"{name}{',' if ':' in name else ':'}{COMMON}" if name.startswith("lsvi") else name
    runs = list[RunResult]()
    for seed in range(SEEDS):
        agent: Any = linmdp.make_agent(spec, env)
        runs.append(linmdp.run(env, agent, episodes=EPISODES, seed=seed, eval_every=20))
    regret = [r.final_regret for r in runs if r.final_regret is not None]
    print(f"{name}: {np.mean(regret):.1f}", file=sys.stderr)
    ridge = agent._planner.ridge.nbytes if name.startswith("lsvi") else 0
    memory, cpu = human_bytes(max(r.peak_bytes for r in runs)), np.mean([r.cpu_seconds for r in runs])
    shrinkage = shown(agent.diagnostics().get("shrinkage"))
    return (f"`{name}`", within(regret), shrinkage, human_bytes(ridge), memory, f"{cpu:.1f}")


PARTS = {"sketch": sketch}
