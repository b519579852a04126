"""What 50 recorded episodes of a mediocre policy are worth, and how often offline intervals hold. Docs: learner.

.venv/bin/python benchmarks/warm_start.py [SEEDS] [CASES]    20 seeds of each task, 200 logs: some minutes

The recorded policy is the best one with random actions mixed in, so many that it is worth half of what lies between
random play and the best. A log for an offline value is played by the policy that is evaluated, half of its actions
random.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import linmdp
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.errors import without_warnings
from linmdp.report.tables import markdown
from linmdp.runner.logged import NAMES
from linmdp.runner.progress import progress_bar

TASKS = ("riverswim", "inventory", "sensor", "lock", "hypercube", "synthetic:S=100,A=5,d=10,H=20")
CHANCE = (*(task for task in TASKS if task != "lock"), "synthetic:S=10,A=3,d=4,H=6,seed=1")
"""For offline values: a lock knows no chance, and an interval of no width tells nothing."""
EPISODES = 50


def value(env: Any, policy: Any) -> float:
    """What a policy is worth, from the first state, in which all episodes of these tasks begin."""
    return float(policy_value(env.model, policy)[0][0])


def mixed(env: Any, share: float) -> Any:
    """The best policy with so large a share of random actions, as probabilities."""
    best, A = [q.argmax(axis=1) for q in env.optimum.Q], env.task.A
    return lambda h: (1 - share) * np.eye(A)[best[h]] + share / A


def mediocre(env: Any) -> Any:
    """That which is worth half of what lies between random play and the best."""
    low, high = 0.0, 1.0
    middle = (value(env, mixed(env, 0.0)) + value(env, uniform_policy(env.model))) / 2
    for _ in range(30):
        share = (low + high) / 2
        low, high = (share, high) if value(env, mixed(env, share)) > middle else (low, share)
    return mixed(env, low)


def recorded(env: Any, policy: Any, episodes: int, seed: int) -> dict[str, Any]:
    """Episodes of a policy (h to probabilities), as a dataset."""
    rng, rows = np.random.default_rng(seed), list[tuple[Any, ...]]()
    for k in range(episodes):
        state, over, h = env.reset(seed=seed if k == 0 else None)[0], False, 0
        while not over:
            action = int(rng.choice(env.task.A, p=policy(h)[state]))
            after, reward, ended, cut, _ = env.step(action)
            h += 1
            over = ended or cut or h == env.task.H
            rows.append((state, action, reward, ended, over and not ended, after))
            state = after
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def regret(task: str, seed: int, warm: bool) -> float:
    """Of the first own episodes of `auto`."""
    env: Any = linmdp.make_env(task)
    learner = linmdp.Learner(env, seed=seed)
    if warm:
        learner.learn_from(recorded(linmdp.make_env(task), mediocre(env), EPISODES, 1000 + seed))
    with without_warnings():  # that so few episodes are few
        result = linmdp.run(linmdp.make_env(task), learner.agent, episodes=EPISODES, seed=seed, verdict=False)
    return float(result.final_regret or 0.0)


def warm_starts(seeds: int) -> str:
    """Regret with a log and without."""
    rows = []
    with progress_bar("tasks", len(TASKS), True) as advance:
        for task in TASKS:
            env: Any = linmdp.make_env(task)
            best, known = value(env, mixed(env, 0.0)), value(env, mediocre(env))
            cold, warm = (np.mean([regret(task, seed, each) for seed in range(seeds)]) for each in (False, True))
            rows.append([f"`{task}`", *(f"{x:.3g}" for x in (best, known, cold, warm)), f"{warm / cold:.2f}"])
            advance(1)
    return markdown(["task", "best", "recorded policy", "regret without", "with", "ratio"], rows)


def offline(cases: int) -> str:
    """How many intervals have the true value in them."""
    found: dict[str, list[tuple[bool, float]]] = {task: [] for task in CHANCE}
    with progress_bar("logs", cases, True) as advance:
        for case in range(cases):
            task, rng = CHANCE[case % len(CHANCE)], np.random.default_rng(case)
            env: Any = linmdp.make_env(task)
            greedy, S, A = env.optimum.Q[0].argmax(axis=1), env.task.S, env.task.A
            target = np.where(rng.random(S) < 0.1, rng.integers(A, size=S), greedy)
            behaviour = (np.eye(A)[target] + 1 / A) / 2
            log = recorded(env, lambda h, played=behaviour: played, EPISODES, case)
            low, high = linmdp.Learner(env, "random").evaluate_offline(target.__getitem__, log).interval
            true = value(env, lambda h, played=target: played)
            found[task].append((low <= true <= high, (high - low) / env.task.H))
            advance(1)
    rows = [
        [f"`{task}`", str(len(each)), str(sum(ok for ok, _ in each)), f"{np.mean([wide for _, wide in each]):.3f}"]
        for task, each in [*found.items(), ("all", [one for each in found.values() for one in each])]
    ]
    return markdown(["task", "logs", "true value inside", "mean width / H"], rows)


if __name__ == "__main__":
    seeds, cases = (int(word) for word in (sys.argv[1:] + ["20", "200"][len(sys.argv) - 1 :]))
    print(warm_starts(seeds), offline(cases), sep="\n\n")
