"""A hundred thousand states: memory and time of LSVI-UCB with exact regret, as a command.

python benchmarks/many_states.py [EPISODES]    (default: 3; some seconds an episode)

Its table is `bench_many_states` in docs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown

ROOT = Path(__file__).parent.parent
ENV = "synthetic:S=100000,A=8,d=64,H=10"
AGENTS = ("lsvi-ucb:beta=0.05,lam=0.1",)
COMMAND = (
    "import resource, sys; from linmdp.cli import main\n"
    "try: main()\n"
    "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)"
)


def measured(agent: str, episodes: int) -> tuple[str, ...]:
    """A row of the table."""
    options = ["--episodes", str(episodes), "--json", "--yes"]
    command = [sys.executable, "-c", COMMAND, "run", ENV, agent, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    run, most = json.loads(done.stdout), int(done.stderr.split()[-1])
    each = f"{run['cpu_seconds'] / episodes:.2f} s"
    sizes = human_bytes(run["agent_bytes"]), human_bytes(run["feature_bytes"]), human_bytes(most)
    return f"`{agent}`", str(episodes), *sizes, each, f"{run['final_regret']:.4g}"


def main() -> None:
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = [measured(agent, episodes) for agent in AGENTS]
    heads = ("agent", "episodes", "its memory", "features", "whole process", "CPU an episode", "exact regret")
    table = markdown(heads, rows)
    into_pages((ROOT / "docs").glob("*.md"), "bench_many_states", table)
    print(table)


if __name__ == "__main__":
    main()
