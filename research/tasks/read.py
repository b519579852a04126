"""Tasks (docs, tasks). `tasks_compared` takes hours, and needs the extras `baselines` and `minigrid`."""

from __future__ import annotations

from typing import Any

import linmdp
from linmdp.report.tables import markdown
from linmdp.runner.batch import Job
from linmdp.runner.sweep import run_key
from research.study import Study, ends, within

CENTRES = "lsvi-ucb:storage=centres,lam=0.1,stationary=true"
ON_CARTPOLE = "lsvi-ucb:storage=centres,stationary=true,discount=0.99,beta=0.01,lam=0.001"
BY_HAND = "lsvi-ucb:lam=0.001,beta=0.3,stationary=true"
TASKS = {
    "sensor": (600, CENTRES),
    "inventory": (1000, CENTRES),
    "gym:CartPole-v1": (100, ON_CARTPOLE),
    "gym:MountainCar-v0": (100, ON_CARTPOLE),
    "gym:Acrobot-v1": (100, ON_CARTPOLE),
    "gym:FrozenLake-v1": (2000, BY_HAND),
    "gym:CliffWalking-v1": (300, BY_HAND),
    "gym:Taxi-v3,masks=false,reward_low=-10,reward_high=20": (1000, BY_HAND),
    "gym:Blackjack-v1": (10_000, BY_HAND),
    "gym:MiniGrid-Empty-5x5-v0": (500, ""),
    "gym:MiniGrid-DoorKey-5x5-v0": (500, ""),
}
"""Episodes, and the agent that stands under "tuned"."""
FEW = "learning_rate=0.002,learning_starts=500,target_update_interval=500,exploration_fraction=0.3"
AGENTS = {
    "auto, no parameter": "auto",
    "tuned": "",  # of each task
    "DQN, defaults": "sb3-dqn",
    "DQN, tuned": f"sb3-dqn:{FEW}",
    "PPO, defaults": "sb3-ppo",
    "PPO, tuned": "sb3-ppo:learning_rate=0.001,n_steps=512,ent_coef=0.01",
    "random": "random",
}


def as_they_are(_: Study) -> str:
    """The Gymnasium tasks without any parameter."""
    rows = []
    for spec in (*(env.partition(",")[0] for env in TASKS if env.startswith("gym:")), "gym:LunarLander-v3"):
        env: Any = linmdp.make_env(spec)
        task, low_high = env.task, "{:g} to {:g}".format(*env.task.reward_range)
        size = f"{task.A} * 2^40" if task.d > 1 << 40 else str(task.d)
        rows.append((f"`{spec}`", env.chosen["features"], size, str(task.H), low_high))
    return markdown(("task", "features", "d", "H", "one reward"), rows)


def planned(env: str, name: str, seeds: int) -> list[Job]:
    """The runs of an agent on a task; networks see the numbers of MiniGrid, and not a hash of them."""
    episodes, tuned = TASKS[env]
    agent = tuned if name == "tuned" else AGENTS[name]
    seen = ",features=auto" * (agent.startswith("sb3-") and "MiniGrid" in env)
    return [Job(env + seen, agent, episodes, seed, max(1, episodes // 100)) for seed in range(seeds) if agent]


def compared(study: Study) -> str:
    """Return at the end of every task and agent, ten seeds."""
    rows, jobs = [], {(env, name): planned(env, name, study.seeds or 10) for env in TASKS for name in AGENTS}
    found = study.runs([job for own in jobs.values() for job in own])
    for env, (episodes, _) in TASKS.items():
        each = ([found[key] for job in jobs[env, name] if (key := run_key(job)) in found] for name in AGENTS)
        cells = (f"{within(ends(mine), '.3g')} ({len(mine)})" if mine else "-" for mine in each)
        rows.append((env.removeprefix("gym:").partition(",")[0], f"{episodes:,}", *cells))
    return markdown(("task", "episodes", *AGENTS), rows)


PARTS = {
    "tasks_gym": as_they_are,
    "tasks_compared": compared,
}
