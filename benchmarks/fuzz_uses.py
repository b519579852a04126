"""Mutated stores, agent and learner files, through all that is done with one: table, report, export, load, learn.

    python benchmarks/fuzz_uses.py [TRIALS]          default: 30,000

A reader may refuse in one line, and a store may name a row that it leaves out. What is shown must be as it was written:
a changed row under its old checksum is never shown, and an agent or a learner that loads must act, learn and be
exported, or be refused in one line by then.
"""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import fuzz
import numpy as np
from faults import Row

import linmdp
from linmdp.cli.stored import table
from linmdp.errors import LinMDPError
from linmdp.export.write import export_learner, export_policy
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.report.html import write_report
from linmdp.results.run_folder import read_folder, run_rows
from linmdp.results.store import Store, existing_store
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.saved import trained
from linmdp.runner.sweep import run_key

ENVS = {"lock:H=4": "finite", "gym:CartPole-v1,H=10,features=fourier,order=1": "numbers"}
AGENTS = {
    "finite": (
        "lsvi-ucb",
        "lsvi-ucb:lam=0.1,beta=0.1",
        "lsvi-ucb:lam=0.1,storage=states",
        "lsvi-ucb-adaptive:m=2,storage=features,lam=0.1",
        "lsvi-ucb-fixed:lam=0.1",
        "lsvi-ucb:storage=centres,beta=0.1,lam=0.1,M=6",
        "lsvi-ucb:storage=sparse,M=12",
        "q-learning:c=0.1",
        "auto",
        "lsvi-gp:states=8,levels=5",
        "insured:inner=lsvi-ucb:beta=0.1;lam=0.1,width=tables",
        "psrl",
    ),
    "numbers": (
        "auto",
        "lsvi-gp:states=30,levels=5",
        "lsvi-ucb",
        "lsvi-ucb:storage=centres,M=20,lam=0.1",
        "lsvi-ucb:storage=centres,lam=0.1,M=10",
    ),
}
EPISODES = 8
LEARNERS = ("lock:H=4", "auto"), ("lock:H=4", "lsvi-ucb:lam=0.1"), ("gym:CartPole-v1,H=10", "auto")


class Tried(NamedTuple):
    """What came of one trial: in which words it was refused, and what was wrong with that (nothing: "")."""

    words: str
    wrong: str


class Uses:
    """Valid files that the program made, and what is done with each mutated one in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spare, self.used = folder, folder / "spare", folder / "used"
        self.spare.mkdir(), self.used.mkdir()
        self.envs = {env: linmdp.make_env(env) for env in ENVS}
        self.agents = [(env, _agent_file(folder, env, spec)) for env, kind in ENVS.items() for spec in AGENTS[kind]]
        self.learners = [_learner_file(folder, env, spec) for env, spec in LEARNERS]
        self.stores = [_store(folder / "store", old=False), _store(folder / "old", old=True)]
        self.rows = {json.dumps(row) for row in _rows(folder / "store")}

    def store(self, rng: random.Random) -> Tried:
        """A mutated store in table and report; of what has a checksum nothing is shown that was not written."""
        signed = rng.random() < 0.7
        (folder := self.used / "s").mkdir()
        data = fuzz.mutated("store", self.stores[0 if signed else 1], rng, self.spare)
        (folder / "runs.sqlite").write_bytes(data)
        said: list[str] = []

        def use() -> None:
            with contextlib.closing(existing_store(folder)) as store:
                rows = list(run_rows(store, said.append))
            if signed and not all(json.dumps(row) in self.rows for row in rows):
                raise AssertionError("a row was shown that was not written")
            if signed and len(rows) < len(self.rows) and not said:
                raise AssertionError("a row was left out without a word")
            for csv in (None, folder / "t.csv"):
                with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                    table(folder, csv=csv)
            read_folder(folder, said.append)
            if rng.random() < 0.05:  # pages take a while
                write_report(folder)

        with contextlib.redirect_stderr(io.StringIO()):
            return _tried(use)

    def agent(self, rng: random.Random) -> Tried:
        """A mutated agent file: loaded, played, taught, and exported."""
        env_spec, data = rng.choice(self.agents)
        (self.used / "a").write_bytes(self._changed(data, rng))
        env = self.envs[env_spec]

        def use() -> None:
            agent = trained(self.used / "a", env=env).agent
            _play(env, agent)
            if rng.random() < 0.1:
                with contextlib.suppress(LinMDPError):
                    export_policy(agent, self.used / "c", real="float", run="x")
                export_learner(agent, env, self.used / "l", real="double", steps=12)

        return _tried(use)

    def learner(self, rng: random.Random) -> Tried:
        """A mutated learner file: loaded, asked, and taught further."""
        (self.used / "l").write_bytes(self._changed(rng.choice(self.learners), rng))

        def use() -> None:
            learner = linmdp.Learner.load(self.used / "l")
            learner.learn(2)
            learner.evaluate(1)
            if not all(map(np.isfinite, learner.returns)):
                raise AssertionError("a return that is not finite")
            assert repr(learner)
            assert isinstance(learner.spec, str)

        return _tried(use)

    def _changed(self, data: bytes, rng: random.Random) -> bytes:
        changed = _values_changed if rng.random() < 0.6 else lambda *given: fuzz.mutated("agent", *given)
        return changed(data, rng, self.spare)

    def clear(self) -> None:
        for path in self.used.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _tried(use: Callable[[], None]) -> Tried:
    try:
        use()
        return Tried("", "")
    except LinMDPError as error:
        return Tried(str(error), "" if len(str(error).splitlines()) == 1 else "more than one line")
    except Exception as error:
        return Tried("", f"{type(error).__name__}: {error}"[:200])


def _values_changed(data: bytes, rng: random.Random, folder: Path) -> bytes:
    """Arrays of the same shapes with other numbers, or other sizes of the task, under a checksum that is right."""
    (folder / "values").write_bytes(data)
    file = read_tensors(folder / "values", "agent", "learner")
    meta, arrays = {name: value for name, value in file.meta.items() if name != "sha256"}, dict(file.arrays)
    kind = str(meta.pop("kind"))
    if rng.random() < 0.1:
        size = rng.choice(("S", "A", "d", "H"))
        meta["agent"] = meta["agent"] | {size: rng.choice((1, 10**9, -1, None, 2.5))}
        return packed(kind, meta, arrays)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice([name for name, array in arrays.items() if array.size])
        array = arrays[name].copy()
        flat, how, at = array.reshape(-1), rng.randrange(5), rng.randrange(array.size)
        if how == 0:
            flat[:] = 0
        elif how == 1:
            flat[:] = -flat if array.dtype.kind in "fi" else ~flat
        elif how == 2:
            flat[at] = rng.choice((0, 1, -1, 1e300, -1e300)) if array.dtype == np.float64 else rng.choice((0, 1, 100))
        elif how == 3:
            flat[:] = flat[::-1].copy()
        else:
            flat[:] = rng.choice((2, 1e150)) * flat if array.dtype == np.float64 else flat[at]
        arrays[name] = array
    return packed(kind, meta, arrays)


def _play(env: Any, agent: Any) -> None:
    """Three episodes as any loop plays them; every Q must be finite."""
    for _ in range(3):
        state, _ = env.reset(seed=0)
        agent.begin_episode()
        for h in range(agent.task.H):
            if not np.isfinite(agent.q_values(h, state)).all():
                raise AssertionError("a Q that is not finite")
            action = agent.act(h, state)
            following, reward, terminated, truncated, _ = env.step(action)
            agent.observe(h, state, action, float(reward), following, bool(terminated))
            if terminated or truncated:
                break
            state = following
        agent.end_episode()


def _agent_file(folder: Path, env_spec: str, spec: str) -> bytes:
    env = linmdp.make_env(env_spec)
    agent = linmdp.make_agent(spec, env, EPISODES)
    linmdp.run(env, agent, episodes=EPISODES)
    agent.save(folder / "agent")
    return (folder / "agent").read_bytes()


def _learner_file(folder: Path, env: str, spec: str) -> bytes:
    linmdp.Learner(env, spec).learn(EPISODES).save(folder / "learner")
    return (folder / "learner").read_bytes()


def _store(folder: Path, *, old: bool) -> bytes:
    """Six runs; `old`: as an older version wrote them, without checksums."""
    folder.mkdir()
    jobs = jobs_for("lock:H=3", ["lsvi-ucb:beta=0.1,lam=0.1", "random"], episodes=4, seeds=3)
    with contextlib.closing(Store(folder)) as store:
        store.add([(run_key(j), r) for j, r in zip(jobs, run_jobs(jobs, processes=1), strict=True)])
    with contextlib.closing(sqlite3.connect(folder / "runs.sqlite", isolation_level=None)) as db:
        if old:
            db.execute("UPDATE runs SET record = json_remove(record, '$.checksum')")
            db.execute("DELETE FROM meta WHERE key = 'runs'")
        db.execute("PRAGMA journal_mode = DELETE")
    return (folder / "runs.sqlite").read_bytes()


def _rows(folder: Path) -> list[Any]:
    with contextlib.closing(existing_store(folder)) as store:
        return list(run_rows(store))


def rows(trials: int, seed: int = 0) -> Iterator[Row]:
    """A third of the trials with each kind of file."""
    failures = collections.Counter[str]()
    with tempfile.TemporaryDirectory(prefix="linmdp-uses-", dir=fuzz.MEMORY) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        uses = Uses(Path(name))
        kinds = {
            "stores": (uses.store, "through table, CSV and report"),
            "agent files": (uses.agent, "loaded, played, taught, exported"),
            "learner files": (uses.learner, "loaded, taught, evaluated"),
        }
        for kind, (use, how) in kinds.items():
            failures.clear()
            refused = 0
            for number in range(trials // 3):
                uses.clear()
                tried = use(random.Random(f"{seed}-{number}"))
                refused += bool(tried.words)
                if tried.wrong:
                    failures[tried.wrong] += 1
                    print(f"{kind}, trial {number}: {tried.wrong}", file=sys.stderr)
            for words, count in failures.most_common(20):
                print(f"{count:6d}  {kind}: {words}", file=sys.stderr)
            yield Row(
                f"mutated {kind} give one line, and nothing wrong",
                trials // 3,
                failures.total(),
                f"{how}; {refused:,} refused",
            )


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000):
        print(f"{row.promise}: {row.trials:,} trials, {row.failures:,} failures ({row.how})", flush=True)
