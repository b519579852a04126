"""The live page, docs/_static/live.html, and what its learners do, a table of docs, live.

.venv/bin/python docs/live_page.py [page] [table]    needs clang, lld and node; a few minutes
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

import linmdp
from linmdp.envs.planning import optimum, policy_value, uniform_policy
from linmdp.export.learner import learner_of
from linmdp.export.numbers import template
from linmdp.export.wasm import export_wasm
from linmdp.io.files import write_atomic
from linmdp.report.tables import into_pages, markdown
from linmdp.results.stats import mean_interval

DOCS = Path(__file__).parent
PAGE = DOCS / "_static" / "live.html"
BETAS = [0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100]
EPISODES, SEEDS, TAIL = 100, 10, 20


class Live(NamedTuple):
    """A task of the page: what is exported, the memories to choose from, steps a second, and words."""

    env: str
    agent: str
    Ms: tuple[int, ...]
    pace: int
    what: str
    best_words: str


TASKS = {
    "cartpole": Live(
        "gym:CartPole-v1,H=200,features=fourier,order=1",
        "lsvi-ucb:storage=centres,stationary=true,discount=0.95,lam=0.001",
        (200, 300, 500, 1000),
        50,
        "Keep the pole upright and the cart on its track. Every step pays 1; an episode ends when the pole falls, the "
        "cart leaves the track, or after 200 steps.",
        "never falls {best:.0f}",
    ),
    "sensor": Live(
        "sensor",
        "lsvi-ucb:storage=centres,stationary=true,discount=0.95,lam=0.001",
        (48, 96, 192, 384),
        8,
        "A sensor node that lives on sunlight: sleep, sample a reading, or send the queue. Readings delivered pay; an "
        "empty battery forgets the queue. 48 steps an episode.",
        "optimal, on average {best:.1f}",
    ),
}
START = {"cartpole": {"memory": 0, "beta": BETAS.index(1)}, "sensor": {"memory": 1, "beta": BETAS.index(1)}}


def levels(env: Any) -> tuple[float, float]:
    """What an episode pays under the random policy, and at most."""
    if env.model is not None:
        return float(policy_value(env.model, uniform_policy(env.model))[0, 0]), float(optimum(env.model).V[0, 0])
    played = linmdp.run(env, linmdp.make_agent("random", env), episodes=2000, seed=0)
    return float(played.rewards.mean()), float(env.task.H * env.task.reward_range[1])


def described(task: Live, start: dict[str, int]) -> dict[str, Any]:
    """All that the page must know of a task, its builds included."""
    env = linmdp.make_env(task.env)
    random, best = levels(env)
    builds = []
    for M in task.Ms:
        agent = linmdp.make_agent(f"{task.agent},M={M},beta=1", env)
        with tempfile.TemporaryDirectory() as name:
            wrote = export_wasm(agent, env, Path(name), real="float", steps=1)
            module = (Path(name) / "linmdp.wasm").read_bytes()
        builds.append({"M": M, "bytes": wrote.ram, "wasm": base64.b64encode(module).decode()})
    size = 1 if env.task.S is not None else 4 * int(np.size(env.reset(seed=0)[0]))
    return {
        "env": task.env,
        "agent": task.agent,
        "what": task.what,
        "pace": task.pace,
        "random": random,
        "best": best,
        "bestWords": task.best_words.format(best=best),
        "cap": learner_of(agent).cap,
        "sample": 2 * size + 2,  # of one transition: two states, an action, whether it ended
        "betas": BETAS,
        "start": start,
        "builds": builds,
    }


def script(described: dict[str, Any]) -> str:
    """One module out of all: what they import from each other is already there."""
    loader = re.sub(r"^//.*\n", "", template("wasm/linmdp.mjs"), flags=re.MULTILINE)
    parts = [loader, *((DOCS / "live" / f"{name}.mjs").read_text() for name in ("tasks", "scenes", "live"))]
    text = "\n".join(re.sub(r"^import .*\n", "", part, flags=re.MULTILINE) for part in parts)
    return f"const TASKS = {json.dumps(described)};\n\n{re.sub(r'^export ', '', text, flags=re.MULTILINE)}"


def page(found: dict[str, Any]) -> str:
    """The page, everything inside it."""
    smallest = min(build["bytes"] for task in found.values() for build in task["builds"])
    values = {"style": (DOCS / "live" / "style.css").read_text(), "script": script(found)}
    text = Template((DOCS / "live" / "page.html").read_text())
    return text.substitute(values, smallest=f"{smallest / 1024:.0f} KiB")


def table(found: dict[str, Any]) -> str:
    """Return at the end of a hundred episodes in the same WebAssembly, over seeds, for each memory and some betas."""
    rows = []
    for name, task in found.items():
        start = task["start"]
        asked = [(at, start["beta"]) for at in range(len(task["builds"]))]
        asked += [(start["memory"], BETAS.index(beta)) for beta in (0, 0.1, 10)]
        for at, beta in asked:
            build = task["builds"][at]
            ends = mean_interval(np.array(played(name, build["wasm"], BETAS[beta])))
            level = [f"{value:.1f}" for value in (task["random"], task["best"])]
            interval = f"{ends.mean:.1f} [{ends.low:.1f}, {ends.high:.1f}]"
            rows.append([name, f"{build['M']:,}", f"{build['bytes']:,}", f"{BETAS[beta]:g}", interval, *level])
    return markdown(["task", "M", "bytes", "beta", f"return, last {TAIL} of {EPISODES}", "random", "best"], rows)


def played(name: str, wasm: str, beta: float) -> list[float]:
    """Mean return of the last episodes, for each seed, as Node plays them."""
    asked = {"name": name, "wasm": wasm, "beta": beta, "seeds": SEEDS, "episodes": EPISODES, "tail": TAIL}
    with tempfile.TemporaryDirectory() as folder:
        for file in ("tasks", "play"):
            (Path(folder) / f"{file}.mjs").write_text((DOCS / "live" / f"{file}.mjs").read_text())
        (Path(folder) / "linmdp.mjs").write_text(template("wasm/linmdp.mjs"))
        command = ["node", str(Path(folder) / "play.mjs")]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    return [float(value) for value in json.loads(done.stdout)]


def main() -> None:
    """Write both, or the one that is named."""
    wanted = sys.argv[1:] or ["page", "table"]
    found = {name: described(task, START[name]) for name, task in TASKS.items()}
    if "page" in wanted:
        write_atomic(PAGE, page(found).encode())
    if "table" in wanted:
        into_pages([DOCS / "live.md"], "live", table(found))


if __name__ == "__main__":
    main()
