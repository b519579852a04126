"""Tasks (docs, tasks): what they are, what learners lose on them, and who is better.

`tasks_compared` reads the store of `linmdp reproduce tasks --scale paper --out DIR`: give it with --store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import linmdp
from linmdp.experiments.stored_runs import grouped
from linmdp.experiments.tasks import ends, tasks
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.store import existing_store
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import RunResult
from research.study import Study, within

GYM = (
    "gym:CartPole-v1",
    "gym:Acrobot-v1",
    "gym:MountainCar-v0",
    "gym:FrozenLake-v1",
    "gym:Taxi-v3",
    "gym:CliffWalking-v1",
    "gym:Blackjack-v1",
    "gym:LunarLander-v3",
    "gym:MiniGrid-Empty-5x5-v0",
    "gym:MiniGrid-DoorKey-5x5-v0",
)
DEVICES = {"sensor": "beta=0.3,lam=0.0005", "inventory": "beta=0.5,lam=0.001"}
TABULAR = ("q-learning", "q-learning:stationary=true", "q-learning-greedy:stationary=true")
NAMES = ("auto, no parameter", "tuned", "DQN, defaults", "DQN, tuned", "PPO, defaults", "PPO, tuned", "random")
TUNED = ("Centres, tuned", "LSVI-UCB, by hand", "Centres")
"""What stands under "tuned", on a task that has it."""


def as_they_are(_: Study) -> str:
    """The Gymnasium tasks without any parameter."""
    rows = []
    for spec in GYM:
        env: Any = linmdp.make_env(spec)
        task, low_high = env.task, "{:g} to {:g}".format(*env.task.reward_range)
        size = f"{task.A} * 2^40" if task.d > 1 << 40 else str(task.d)
        rows.append((f"`{spec}`", env.chosen["features"], size, str(task.H), low_high))
    return markdown(("task", "features", "d", "H", "one reward"), rows)


def runs(spec: str, agents: Sequence[str], episodes: int) -> dict[tuple[str, str], Sequence[RunResult]]:
    """Three seeds of each agent."""
    return dict(grouped(list(run_jobs(jobs_for(spec, agents, episodes=episodes, seeds=3, eval_every=10)))))


def devices(study: Study) -> str:
    """What learners lose of the optimal return, exactly, in their last tenth of 3,000 episodes."""
    rows = []
    for family, parameters in DEVICES.items():
        env: Any = linmdp.make_env(family)
        best = env.optimum.V[0, 0]
        centres = ("lam=0.1,stationary=true", f"stationary=true,{parameters}")
        agents = [f"lsvi-ucb:storage=centres,{given}" for given in (parameters, *centres)]
        for (_, agent), found in runs(family, [*agents, *TABULAR, "random"], 3000).items():
            behind = [(r.regret[-1] - r.regret[-301]) / 300 / best for r in found if r.regret is not None]
            memory = human_bytes(max(r.peak_bytes for r in found))
            rows.append((family, f"`{agent}`", f"{np.mean(behind):.1%}", f"{max(behind):.1%}", memory))
    return markdown(("task", "agent", "lost, mean", "worst seed", "memory"), rows)


def tabular(study: Study) -> str:
    """Tabular Q-learning in Gymnasium's tables."""
    rows = []
    for spec, episodes in (("gym:FrozenLake-v1", 3000), ("gym:CliffWalking-v1,H=100", 1000), ("gym:Taxi-v3", 1000)):
        for (_, agent), found in runs(spec, [*TABULAR, "random"], episodes).items():
            late, memory = ends(found), human_bytes(max(r.peak_bytes for r in found))
            row = (f"`{spec}`, {episodes:,} episodes", f"`{agent}`", f"{late.mean():.2f}", f"{late.min():.2f}", memory)
            rows.append(row)
    return markdown(("task", "agent", "return", "worst seed", "memory"), rows)


def compared(study: Study) -> str:
    """Return at the end of every task and agent, with the seeds that there are."""
    store = existing_store(study.store)
    found, rows = grouped(list(store.results(store.keys()))), []
    store.close()
    for task in tasks("paper"):
        named = {name: found.get((task.played(agent), agent), ()) for agent, name in task.agents.items()}
        named["tuned"] = next((named[name] for name in TUNED if name in named), ())
        cells = (named.get(name, ()) for name in NAMES)
        each = (f"{within(ends(mine), '.3g')} ({len(mine)})" if mine else "-" for mine in cells)
        rows.append((task.title, f"{task.episodes:,}", *each))
    return markdown(("task", "episodes", *NAMES), rows)


PARTS = {
    "tasks_gym": as_they_are,
    "tasks_devices": devices,
    "tasks_tabular": tabular,
    "tasks_compared": compared,
}
