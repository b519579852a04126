"""The certificate of `insured` on a small table, as the run goes on (docs, insured). About 4 minutes of one core."""

from __future__ import annotations

import numpy as np

import linmdp
from linmdp.report.plots import drawing
from linmdp.runner.loop import RunState
from linmdp.types import Array
from research.study import Study, save_picture

ENV, K, SEEDS = "riverswim:S=3,H=3", 20_000, 3
AGENTS = (("auto", "balanced"), ("random", "balanced"), ("auto", "mean"))
MARKS = np.unique(np.geomspace(10, K, 40).astype(int))


def course(inner: str, mode: str, seed: int) -> tuple[Array, Array]:
    """Certified regret and true regret per episode, after MARKS episodes."""
    env = linmdp.make_env(ENV)
    agent = linmdp.make_agent(f"insured:inner={inner},width=tables,mode={mode}", env, K)
    run, certified = RunState(env, agent, episodes=K, seed=seed, eval_every=1, name=None), np.zeros(len(MARKS))
    for k in range(1, K + 1):
        run.episode()
        if k in MARKS:
            found = agent.diagnostics()
            certified[MARKS.searchsorted(k)] = (found["C_A"] + found["C_B"]) / k
    regret = run.result().regret
    assert regret is not None
    return certified, regret[MARKS - 1] / MARKS


def certificate(study: Study) -> str:
    """A picture, and what it shows at its end."""
    first, seeds = study.seed or 0, study.seeds or SEEDS
    found = {
        f"{inner}, {mode}": np.mean([course(inner, mode, first + s) for s in range(seeds)], axis=0)
        for inner, mode in AGENTS
    }
    with drawing(1, (6, 4)) as (drawn, axes):
        for name, (certified, regret) in found.items():
            line = axes.plot(MARKS, certified, label=f"{name}: certified")[0]
            axes.plot(MARKS, regret, "--", color=line.get_color(), label=f"{name}: true")
        axes.set(xscale="log", xlabel="episodes", ylabel="regret of an episode, at most", title=ENV)
        axes.legend(fontsize=8)
        save_picture(drawn, "certificate")
    ends = "; ".join(f"{name} {c[-1]:.2f} (true {r[-1]:.3f})" for name, (c, r) in found.items())
    return f"After {K:,} episodes the mean regret is at most: {ends}."


PARTS = {"certificate": certificate}
