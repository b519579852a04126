"""Resident memory of a run of many episodes: at a tenth of it, at half of it, and at its end.

python benchmarks/long_run.py [EPISODES]    (default: 1,000,000; two to five minutes)

Each agent runs in a process of its own. Its table is `bench_long_run` in docs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown

ROOT = Path(__file__).parent.parent
ENV = "lock:H=2,A=2"
AGENTS = ("random", "q-learning")
SEEN = (0.1, 0.5, 1.0)
"""Parts of the run after which the memory is looked at."""

RUN = """
import json, os, sys
import linmdp

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

env, (agent, episodes, *at) = linmdp.make_env(sys.argv[1]), sys.argv[2:]
seen, wanted = [], set(map(int, at))

def look(record):
    if record.episode + 1 in wanted:
        seen.append(resident())

result = linmdp.run(env, linmdp.make_agent(agent, env, int(episodes)), episodes=int(episodes), on_episode=look)
print(json.dumps([seen, resident(), result.peak_bytes, len(result.rewards), result.wall_seconds]))
"""


def measured(agent: str, episodes: int) -> tuple[str, ...]:
    """A row of the table."""
    at = [str(round(part * episodes)) for part in SEEN]
    command = [sys.executable, "-c", RUN, ENV, agent, str(episodes), *at]
    seen, after, held, points, wall = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return f"`{agent}`", *map(human_bytes, seen), human_bytes(after), human_bytes(held), f"{points:,}", f"{wall:.0f} s"


def main() -> None:
    episodes = int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else 1_000_000
    heads = ("agent", *(f"after {part * episodes:,.0f} episodes" for part in SEEN))
    rows = [measured(agent, episodes) for agent in AGENTS]
    table = markdown((*heads, "with its result", "held by the agent", "points of a curve", "took"), rows)
    into_pages((ROOT / "docs").glob("*.md"), "bench_long_run", table)
    print(table)


if __name__ == "__main__":
    main()
