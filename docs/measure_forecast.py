"""How long `linmdp reproduce --scale paper` takes without a GPU, by the estimate that it prints before it starts.

.venv/bin/python docs/measure_forecast.py

Each agent is played for 120 episodes at the largest K; what an episode, a planning and a sample cost there stands for
its runs at other K. Writes docs/generated/reproduce_forecast.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from linmdp.errors import LinMDPWarning
from linmdp.experiments import paper
from linmdp.experiments.paper import FIGURES, SCALES, SETTINGS
from linmdp.report.tables import markdown
from linmdp.runner.batch import Job
from linmdp.runner.estimate import Cost, measured, wall_seconds
from linmdp.runner.registry import make_agent, make_env

DOCS, CORES, BETA, FEWER = Path(__file__).parent, 2, paper.BETAS[0], 7
ALGORITHMS = ("lsvi-ucb", "lsvi-ucb-fixed", "lsvi-ucb-adaptive")


@cache
def cost(agent: str, K: int) -> Cost:
    """Of an agent that is meant to run for K episodes, by a short run: the lesser of two, on a busy machine."""
    env = make_env(paper.ENV)
    return min((measured(env, make_agent(agent, env, K), K) for _ in range(2)), key=sum)


def seconds(job: Job) -> float:
    """CPU seconds of a run alone."""
    largest = SCALES["paper"].K[-1]
    if job.agent.startswith("lsvi-ucb:") and "features" in job.agent:
        largest = job.episodes
    agent = make_agent(job.agent, make_env(job.env), job.episodes)
    return cost(job.agent, largest).seconds(agent, job.episodes)


def main() -> None:
    """Print the table, and write it."""
    scale, rows, total = SCALES["paper"], list[tuple[str, ...]](), np.zeros(2)
    purposes: dict[str, Sequence[Job]] = {
        "to choose beta": paper.tuning_jobs(scale),
        "regret": [job for item in FIGURES for s in SETTINGS for job in paper.regret_jobs(item, scale, s, BETA)],
        "space and time": [job for item in FIGURES for job in paper.cost_jobs(item, scale, BETA)],
    }
    start = time.process_time()
    for purpose, planned in purposes.items():
        every = list(dict.fromkeys(planned))
        for name in ALGORITHMS:
            jobs = [job for job in every if job.agent.partition(":")[0] == name]
            few = [job for job in jobs if purpose != "regret" or job.seed < FEWER]
            hours = np.array([wall_seconds(some, seconds, CORES) / 3600 for some in (jobs, few)])
            total += hours
            episodes = f"{sum(job.episodes for job in jobs) / 1e6:.2f}"
            rows.append((purpose, f"`{name}`", f"{len(jobs):,}", episodes, *(f"{x:.2f}" for x in hours)))
            print(*rows[-1], f"({time.process_time() - start:.0f} s)", flush=True)
    rows.append(("all", "", "", "", *(f"{x:.1f}" for x in total)))
    heads = ("runs for", "of", "runs", "million episodes", f"hours on {CORES} cores", f"with `--seeds {FEWER}`")
    table = markdown(heads, rows)
    (DOCS / "generated/reproduce_forecast.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        main()
