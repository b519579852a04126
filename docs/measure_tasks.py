"""The tables of the pages on tasks and on feature maps. Run it, and the files in docs/generated are written anew:

.venv/bin/python docs/measure_tasks.py            all of them, about five minutes on two cores
.venv/bin/python docs/measure_tasks.py tasks_gym  some of them
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.features import BlockFeatures
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import Array, RunResult

FOLDER = Path(__file__).parent / "generated"
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
CARTPOLE = "gym:CartPole-v1,H=200"
MAPS = ("auto", "rbf", "rbf,centres=30", "rff", "fourier,order=1,coupling=4", "fourier,order=3", "tiles,dim=128")


def tasks_gym() -> str:
    """The Gymnasium tasks as they are without any parameter."""
    rows = []
    for spec in GYM:
        env: Any = linmdp.make_env(spec)
        task, low_high = env.task, "{:g} to {:g}".format(*env.task.reward_range)
        states, size = "-" if task.S is None else str(task.S), f"{task.A} * 2^40" if task.d > 1 << 40 else str(task.d)
        rows.append((f"`{spec}`", states, str(task.A), env.chosen["features"], size, str(task.H), low_high))
    return markdown(("task", "S", "A", "features", "d", "H", "one reward"), rows)


def last_tenth(results: list[RunResult]) -> Array:
    """Mean return of each run's last tenth of episodes."""
    return np.array([r.rewards[-len(r.rewards) // 10 :].mean() for r in results])


def runs(spec: str, agents: list[str], episodes: int, seeds: int) -> dict[str, list[RunResult]]:
    """The results of each agent."""
    found: dict[str, list[RunResult]] = {}
    for result in run_jobs(jobs_for(spec, agents, episodes=episodes, seeds=seeds, eval_every=10)):
        found.setdefault(result.agent, []).append(result)
    return found


def tasks_devices() -> str:
    """What learners lose of the optimal return, exactly, in their last tenth of 3,000 episodes."""
    rows = []
    for family, parameters in DEVICES.items():
        env: Any = linmdp.make_env(family)
        best = env.optimum.V[0, 0]
        fold = ["lsvi-ucb-fold:lam=0.1,stationary=true", f"lsvi-ucb-fold:stationary=true,{parameters}"]
        agents = [f"lsvi-ucb-fold:{parameters}", *fold, *TABULAR, "random"]
        for agent, results in runs(family, agents, 3000, 3).items():
            lost = [(r.regret[-1] - r.regret[-301]) / 300 / best for r in results if r.regret is not None]
            most = max(r.peak_bytes for r in results)
            rows.append((family, f"`{agent}`", f"{np.mean(lost):.1%}", f"{max(lost):.1%}", human_bytes(most)))
    return markdown(("task", "agent", "lost, mean", "worst seed", "memory"), rows)


def tasks_tabular() -> str:
    """Tabular Q-learning in Gymnasium's tables."""
    rows = []
    for spec, episodes in (("gym:FrozenLake-v1", 3000), ("gym:CliffWalking-v1,H=100", 1000), ("gym:Taxi-v3", 1000)):
        for agent, results in runs(spec, [*TABULAR, "random"], episodes, 3).items():
            earned = last_tenth(results)
            most = max(r.peak_bytes for r in results)
            name = f"`{spec}`, {episodes:,} episodes"
            rows.append((name, f"`{agent}`", f"{earned.mean():.2f}", f"{earned.min():.2f}", human_bytes(most)))
    return markdown(("task", "agent", "return", "worst seed", "memory"), rows)


def feature_maps() -> str:
    """CartPole by least-squares policy iteration: is a good Q near the span of the features?"""
    rows = []
    for name in MAPS:
        env: Any = linmdp.make_env(f"{CARTPOLE},features={name}")
        # not the seeds on which the bandwidth of rbf was chosen
        found = np.array([policy_iteration(env, seed) for seed in range(100, 110)])[:, 1:]
        returns = (f"{x:.0f} ({y:.0f})" for x, y in zip(found.mean(axis=0), found.min(axis=0), strict=True))
        rows.append((f"`features={name}`", str(env.task.d), human_bytes(env.task.features.nbytes), *returns))
    return markdown(("map", "d", "bytes", *(f"after {20 * i} episodes" for i in range(1, 6))), rows)


def policy_iteration(env: Any, seed: int, rounds: int = 6, episodes: int = 20, discount: float = 0.95) -> list[float]:
    """The mean return of each round; the first is random, each later one plays the Q fitted to all data so far."""
    rng, features = np.random.default_rng(seed), env.task.features
    assert isinstance(features, BlockFeatures)
    w, data, earned = np.zeros((env.task.A, features.p)), [], []
    env.reset(seed=seed)
    for k in range(rounds):
        steps = [step for _ in range(episodes) for step in _episode(env, w, rng, 0.05 if k else 1.0)]
        data += steps
        earned.append(sum(step[2] for step in steps) / episodes)
        w = _fitted(features, w, data, discount)
    return earned


def _episode(env: Any, w: Array, rng: np.random.Generator, epsilon: float) -> list[tuple[Any, int, float, Any, bool]]:
    steps, (state, _), over = [], env.reset(), False
    while not over:
        q = w @ env.task.features.psi(state[None])[0]
        action = int(rng.integers(len(q)) if rng.random() < epsilon else q.argmax())
        following, reward, terminated, truncated, _ = env.step(action)
        steps.append((state, action, reward, following, terminated))
        state, over = following, terminated or truncated
    return steps


def _fitted(features: BlockFeatures, w: Array, data: list[Any], discount: float) -> Array:
    """w after at most 15 evaluations of the greedy policy (LSTD) and improvements."""
    state, action, reward, following, over = (np.array(x) for x in zip(*data, strict=True))
    n, rows = len(data), np.arange(len(data))
    phi, ahead = features.batch(state)[rows, action], features.psi(following) * ~over[:, None]
    for _ in range(15):
        best = (ahead @ w.T).argmax(axis=1)
        after = np.zeros((n, features.A, features.p))
        after[rows, best] = ahead
        matrix = phi.T @ (phi - discount * after.reshape(n, -1)) + 1e-3 * np.eye(features.d)
        old, w = w, np.linalg.solve(matrix, phi.T @ reward).reshape(w.shape)
        if np.abs(w - old).max() < 1e-3:
            break
    return w


FRAGMENTS = {f.__name__: f for f in (tasks_gym, tasks_devices, tasks_tabular, feature_maps)}


def main() -> None:
    """Write the fragments that are asked for, or all."""
    for name in sys.argv[1:] or FRAGMENTS:
        (FOLDER / f"{name}.md").write_text(FRAGMENTS[name]().rstrip() + "\n", encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
