"""Where the GPU's time goes, kernel by kernel: python benchmarks/profile_gpu.py [SCENARIO] [EPISODES]"""

from __future__ import annotations

import sys

import gpu
import torch
from torch.profiler import ProfilerActivity, profile


def main() -> None:
    agents, seeds, _ = gpu.SCENARIOS[sys.argv[1] if len(sys.argv) > 1 else "exact"]
    episodes = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    gpu.batch(agents, seeds, 4, "cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        seconds, _ = gpu.batch(agents, seeds, episodes, "cuda")
    steps = episodes * gpu.make_model(gpu.ENV).H
    rows = sorted(found.key_averages(), key=lambda e: -e.self_device_time_total)
    for row in rows[:24]:
        print(f"{row.self_device_time_total / steps:8.2f} us per step  {row.count / steps:6.2f} x  {row.key[:90]}")
    total = sum(row.self_device_time_total for row in rows) / steps
    print(
        f"{total:8.2f} us per step in all, {seconds / steps * 1e6:.2f} by the clock, on {torch.cuda.get_device_name()}"
    )


if __name__ == "__main__":
    main()
