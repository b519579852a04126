"""What is fuzzed: every reader of files, with valid files that the program itself makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import linmdp
from linmdp.features.learned import read_model
from linmdp.io.tensorfile import packed
from linmdp.linearize.data import read_dataset
from linmdp.results.run_folder import read_folder
from linmdp.results.store import Store
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.loop import RunState
from linmdp.runner.saved import Checkpoints
from linmdp.runner.spec import parse_spec
from linmdp.runner.sweep import read_sweep, run_key

ENV = "synthetic:S=6,A=2,d=3,H=3"
AGENTS = (
    "lsvi-ucb",
    "lsvi-ucb:storage=states",
    "lsvi-ucb-adaptive:m=2,storage=features",
    "lsvi-ucb:storage=centres,lam=0.1,M=4",
    "lsvi-ucb:stationary=true",
    "q-learning:c=0.1",
)
SWEEP = """name = "small"
[[runs]]
env = ["lock:H=4", "riverswim:H=5"]
agents = ["lsvi-ucb", "lsvi-ucb-fixed", "random"]
grid.rho = [0.5, 0.75]
grid.tau = ["0.1 * d^2"]
episodes = [40, 60]
seeds = 4
"""


class Reader(NamedTuple):
    """A kind of file: the name that it has, what reads it, and valid ones."""

    file: str
    read: Callable[[Path], object]
    seeds: list[bytes]


def readers(folder: Path) -> dict[str, Reader]:
    """Every reader with valid files, made by the program itself."""
    env, found = linmdp.make_env(ENV), dict[str, Reader]()
    found["model"] = Reader("m.safetensors", read_model, [_model("linear"), _model("energy")])
    found["dataset"] = Reader("d.safetensors", read_dataset, [_dataset()])
    agents, checkpoints = [], []
    for number, spec in enumerate(AGENTS):
        home, agent = folder / str(number), linmdp.make_agent(spec, env, 12)
        linmdp.run(env, agent, episodes=12, checkpoint=home)
        agent.save(home / "agent")
        agents.append((home / "agent").read_bytes())
        checkpoints.append((home / "seed-0.episode-0000000012.safetensors").read_bytes())
    found["agent"] = Reader("a.safetensors", lambda path: linmdp.load_agent(path, env), agents)
    found["checkpoint"] = Reader("seed-0.episode-0000000012.safetensors", _resume(env), checkpoints)
    found["store"] = Reader("runs.sqlite", _whole_store, [_store(folder / "store")])
    found["sweep"] = Reader("s.toml", _sweep, [SWEEP.encode()])
    return found


def _model(form: str) -> bytes:
    rng, A, d, hidden, width, rows = np.random.default_rng(0), 2, 3, 4, 2, 5
    shapes = {"theta": (d,), "phi.action": (A, hidden), "bellman.w": (2, d), "start": (width,), "mu.scale": (d,)}
    shapes |= {"encoder.mean": (width,), "encoder.scale": (width,), "held.reward": (rows,)}
    shapes |= {"held.state": (rows, width), "held.next": (rows, width)}
    for net in ("phi", "mu"):
        for i, (m, n) in enumerate(((hidden, width), (hidden, hidden), (d, hidden))):
            shapes |= {f"{net}.{i}.weight": (m, n), f"{net}.{i}.bias": (m,)}
    arrays = {name: rng.random(shape).astype(np.float32) for name, shape in shapes.items()}
    arrays |= {"held.action": np.arange(rows) % A, "held.terminated": np.zeros(rows, dtype=bool)}
    meta = {"env": "CartPole-v1", "form": form, "A": A, "d": d, "hidden": hidden, "layout": [["box", width]]}
    return packed("model", meta | {"reward_scale": 1.0, "reward_range": [0.0, 1.0], "kwargs": {"a": 1}}, arrays)


def _dataset() -> bytes:
    n = 6
    whole = {name: np.arange(n, dtype=np.int32) for name in ("episode", "step")} | {"actions": np.arange(n) % 2}
    arrays = whole | {name: np.ones((n, 2), dtype=np.float32) for name in ("states", "next_states")}
    arrays |= {"rewards": np.ones(n, dtype=np.float32), "terminated": np.zeros(n, dtype=bool)}
    return packed("dataset", {"env": "CartPole-v1", "A": 2, "layout": [["box", 2]], "H": 3, "kwargs": {}}, arrays)


def _store(folder: Path) -> bytes:
    folder.mkdir()
    jobs, store = jobs_for("lock:H=3", ["lsvi-ucb", "random"], episodes=4, seeds=1), Store(folder)
    store.add([(run_key(j), r) for j, r in zip(jobs, run_jobs(jobs, processes=1), strict=True)])
    store.note("command", "linmdp sweep x")
    store.close()
    return (folder / "runs.sqlite").read_bytes()


def _resume(env: Any) -> Callable[[Path], object]:
    def read(path: Path) -> None:
        data = path.read_bytes()
        named = [spec for spec in AGENTS if _named(spec, data)]
        agent = linmdp.make_agent(max(named or AGENTS, key=len), env, 12)  # of several, the one with most parameters
        state = RunState(env, agent, episodes=12, seed=0, eval_every=1, name=None)
        Checkpoints(path.parent, None, state).resume()
        state.result()

    return read


def _named(spec: str, data: bytes) -> bool:
    """Whether a file names that agent and all of its parameters, as a saved agent does."""
    name, parameters = parse_spec(spec)
    return all(f'"{k}": {json.dumps(v)}'.encode() in data for k, v in {"agent": name, **parameters}.items())


def _whole_store(path: Path) -> None:
    store = Store(path.parent)
    try:
        list(store.stored())
        store.keys(), store.notes("command")
    finally:
        store.close()
    read_folder(path.parent)


def _sweep(path: Path) -> None:
    read_sweep(path)
