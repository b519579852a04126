"""Many runs on a GPU: time, and how near it comes to what the memory allows.

python benchmarks/gpu.py --out DIR [--only NAME] [--episodes N] [--cpu-seeds 4]

Needs torch, Triton and NumPy only. Each scenario is a batch: so many seeds of each of its agents. A short batch of the
same size comes before it, so that compiling is not in its time. The floor is the time that the bytes which a planning
cannot avoid (`step_bytes`) take at the speed of a large copy on the same device.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from linmdp.agents.backend import backend_for
from linmdp.runner.lockstep import Run, run_lockstep
from linmdp.runner.registry import make_learner, make_model

ENV, EVAL_EVERY, WARM = "synthetic", 20, 40
GRID = [
    f"lsvi-ucb:beta={beta},lam={lam}"
    for beta, lam in product((0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
]
RARE = "lsvi-ucb-rare-switch:beta=0.05,lam=0.1"
SCENARIOS = {
    "exact": (["lsvi-ucb:beta=0.05,lam=0.1"], 512, 12_000),
    "rare switching": ([f"{RARE},growth=0.1"], 512, 12_000),
    "rare switching, growth 0.02": ([f"{RARE},growth=0.02"], 512, 12_000),
    "grid of 49 settings": (GRID, 10, 12_000),
    "no parameter": (["lsvi-ucb"], 512, 1_000),
    "no parameter, long": (["lsvi-ucb"], 512, 12_000),
    "float32": (["lsvi-ucb:beta=0.05,lam=0.1,dtype=float32"], 512, 12_000),
}
"""Agents, seeds of each, episodes."""


def batch(agents: list[str], seeds: int, episodes: int, device: str) -> tuple[float, Any]:
    """Seconds, and the results, agent by agent."""
    model = make_model(ENV)
    runs = [
        Run(make_learner(agent, model.task, episodes).lockstep(), agent, seed)
        for agent in agents
        for seed in range(seeds)
    ]
    start = time.perf_counter()
    results = run_lockstep(model, runs, env=ENV, episodes=episodes, eval_every=EVAL_EVERY, backend=backend_for(device))
    return time.perf_counter() - start, results


def copy_bandwidth() -> float:
    """Bytes a second of a large copy on the device, read and write counted."""
    import torch

    a = torch.empty(2**28, dtype=torch.float64, device="cuda")
    b = torch.empty_like(a)
    b.copy_(a)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        b.copy_(a)
    torch.cuda.synchronize()
    return 20 * 2 * a.nbytes / (time.perf_counter() - start)


def step_bytes(model: Any, itemsize: int) -> int:
    """What planning one step of one run cannot avoid moving: N read, the forms and Lambda^-1 read and written."""
    S, A, d = model.S, model.A, model.d
    return (d * S + 2 * A * S) * itemsize + 2 * d * d * 8


def measured(name: str, episodes: int | None, cpu_seeds: int, bandwidth: float) -> dict[str, Any]:
    """One scenario."""
    agents, seeds, usual = SCENARIOS[name]
    episodes = episodes or usual
    first, _ = batch(agents, seeds, WARM, "cuda")
    seconds, results = batch(agents, seeds, episodes, "cuda")
    model, ends = make_model(ENV), np.array([r.final_regret for r in results])
    planned = float(np.sum([r.updates for r in results], dtype=np.float64))
    floor = planned * step_bytes(model, 4 if "float32" in agents[0] else 8) / bandwidth
    record = {
        "scenario": name,
        "agents": len(agents),
        "agent": agents[0],
        "seeds": seeds,
        "episodes": episodes,
        "seconds": seconds,
        "seconds_of_the_short_batch_before": first,
        "microseconds_per_step_and_seed": seconds / (episodes * model.H * len(results)) * 1e6,
        "plannings_per_run": planned / model.H / len(results),
        "floor_seconds": floor,
        "share_of_floor": floor / seconds,
        "mean_regret": float(ends.mean()),
        "standard_error": float(ends.std(ddof=1) / np.sqrt(len(ends))),
    }
    if cpu_seeds:
        few = min(seeds, cpu_seeds)
        _, cpu = batch(agents[:few], max(1, few // len(agents[:few])), episodes, "cpu")
        by_run = {(r.agent, r.seed): r.rewards for r in results}
        record["same_rewards_as_cpu"] = [bool(np.allclose(r.rewards, by_run[r.agent, r.seed], atol=1e-6)) for r in cpu]
    return record


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--episodes", type=int, help="of all scenarios; default: each has its own")
    parser.add_argument("--cpu-seeds", type=int, default=0, help="also run so many on the CPU, and compare rewards")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import torch

    bandwidth = copy_bandwidth()
    found = {"device": torch.cuda.get_device_name(), "copy_bandwidth_GBs": bandwidth / 1e9, "scenarios": []}
    for name in args.only:
        found["scenarios"].append(measured(name, args.episodes, args.cpu_seeds, bandwidth))
        print(json.dumps(found["scenarios"][-1], indent=2), flush=True)
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            (args.out / "gpu.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
