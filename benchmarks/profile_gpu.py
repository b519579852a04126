"""Where the GPU's time goes, kernel by kernel: python benchmarks/profile_gpu.py [seeds]"""

from __future__ import annotations

import argparse
import sys

import gpu
import torch
from torch.profiler import ProfilerActivity, profile


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    args = argparse.Namespace(env="synthetic", agent="lsvi-ucb:beta=0.05,lam=0.1", eval_every=1000)
    gpu.batch(seeds, 4, "cuda", args)
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        gpu.batch(seeds, 22, "cuda", args)
    total = 0.0
    rows = sorted(found.key_averages(), key=lambda e: -e.self_device_time_total)
    for row in rows[:24]:
        print(f"{row.self_device_time_total / 1100:8.1f} us per step  {row.count / 1100:6.2f} x  {row.key[:90]}")
    total = sum(row.self_device_time_total for row in rows) / 1100
    print(f"{total:8.1f} us per step in all, on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
