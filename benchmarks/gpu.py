"""Many seeds on a GPU: time, and the mean regret beside that of a few seeds on the CPU.

python benchmarks/gpu.py --seeds 512 --episodes 12000 --out DIR

Needs torch and NumPy only. Prints one JSON object: seconds, microseconds per (h, k, seed), and the share of the memory
bandwidth (measured by a copy) at which the bytes that a planning pass has to move were moved.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from linmdp.agents.backend import backend_for
from linmdp.runner.engine import Run
from linmdp.runner.lockstep import run_lockstep
from linmdp.runner.registry import make_learner, make_model


def batch(seeds: int, episodes: int, device: str, args: argparse.Namespace, first: int = 0) -> tuple[float, Any]:
    model = make_model(args.env)
    agent = make_learner(args.agent, model.task, episodes)
    runs = [Run(agent.lockstep(), args.agent, first + seed) for seed in range(seeds)]
    start = time.perf_counter()
    results = run_lockstep(
        model,
        runs,
        env=args.env,
        episodes=episodes,
        eval_every=args.eval_every,
        backend=backend_for(device),
    )
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


def pass_bytes(model: Any, seeds: int, itemsize: int) -> int:
    """What one planning pass of one step cannot avoid moving: N read, b read and written."""
    S, A, d = model.S, model.A, model.d
    return seeds * (d * S + 2 * A * S) * itemsize


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="synthetic")
    parser.add_argument("--agent", default="lsvi-ucb:beta=0.05,lam=0.1")
    parser.add_argument("--seeds", type=int, default=512)
    parser.add_argument("--episodes", type=int, default=12_000)
    parser.add_argument("--eval-every", type=int, default=20)
    parser.add_argument("--cpu-seeds", type=int, default=0, help="also run these on the CPU, to compare")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    import torch

    seconds, results = batch(args.seeds, args.episodes, "cuda", args)
    model = make_model(args.env)
    steps = args.episodes * model.H
    bandwidth = copy_bandwidth()
    itemsize = 4 if "float32" in args.agent else 8
    curves = np.stack([r.regret for r in results])
    record = {
        "device": torch.cuda.get_device_name(),
        "agent": args.agent,
        "seeds": args.seeds,
        "episodes": args.episodes,
        "seconds": seconds,
        "microseconds_per_step_and_seed": seconds / steps / args.seeds * 1e6,
        "bandwidth_share": pass_bytes(model, args.seeds, itemsize) / (seconds / steps) / bandwidth,
        "copy_bandwidth_GBs": bandwidth / 1e9,
        "mean_regret": float(curves[:, -1].mean()),
        "standard_error": float(curves[:, -1].std(ddof=1) / np.sqrt(args.seeds)),
        "curve": curves.mean(axis=0)[:: max(1, args.episodes // 60)].tolist(),
    }
    if args.cpu_seeds:
        cpu_seconds, cpu = batch(args.cpu_seeds, args.episodes, "cpu", args)
        ends = np.array([r.final_regret for r in cpu])
        record |= {
            "cpu_seeds": args.cpu_seeds,
            "cpu_seconds": cpu_seconds,
            "cpu_mean_regret": float(ends.mean()),
            "cpu_standard_error": float(ends.std(ddof=1) / np.sqrt(args.cpu_seeds)),
            "same_rewards_as_cpu": bool(
                all(np.allclose(r.rewards, g.rewards, atol=1e-6) for r, g in zip(cpu, results, strict=False))
            ),
        }
    print(json.dumps({k: v for k, v in record.items() if k != "curve"}, indent=2))
    if args.out:
        (args.out / "gpu.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
