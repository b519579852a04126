"""Every promise of reliability, tried many times: a table of promise, trials and failures.

    python benchmarks/trust.py [SCALE]          default: 1; 0.1 tries a tenth
    python benchmarks/trust.py SCALE PART ...   some parts again; their rows of the table are replaced

The table is printed and written to docs, reliability. A part of it is a function of SCALE that yields rows; add
one to PARTS and it is in the table.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

import device
import faults
import fuzz
import fuzz_envs
import fuzz_uses
import numpy as np
import soak
from faults import Row

import linmdp
from linmdp.report.tables import in_pages, into_pages
from linmdp.types import RunResult

TIMES = ("cpu_seconds", "wall_seconds", "costs")


class Interrupted(Exception):
    """What stops a run at a chosen episode."""


def resumes(scale: float) -> Iterator[Row]:
    """Checkpointed runs of any agent in any environment, stopped at random episodes and given again."""
    from test_contracts import ENVS, SPECS

    rng, wanted = random.Random(0), max(10, round(450 * scale))
    pairs = [(env, spec) for env in ENVS for spec in SPECS if not (env.startswith("gym") and spec == "optimal")]
    points = failures = 0
    folder = Path(tempfile.mkdtemp(prefix="linmdp-trust-"))
    try:
        while points < wanted:
            env, spec = rng.choice(pairs)
            every, stops = rng.randint(1, 12), sorted(rng.sample(range(1, 40), rng.randint(1, 4)))
            calm = _run(folder / "calm", env, spec, every)
            for stop in stops:
                _run(folder / "stopped", env, spec, every, stop)
                _maybe_damage(folder / "stopped", rng)
            failures += not _same(_run(folder / "stopped", env, spec, every), calm)
            points += len(stops)
            for name in ("calm", "stopped"):
                shutil.rmtree(folder / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    how = f"stopped at random episodes, {len(pairs)} pairs of environment and agent, one newest file in ten damaged"
    yield Row("a checkpointed run goes on bit for bit", points, failures, how)


def _run(folder: Path, env_spec: str, spec: str, every: int, stop: int | None = None) -> RunResult | None:
    env: Any = linmdp.make_env(env_spec)

    def at(record: Any) -> None:
        if stop is not None and record.episode + 1 == stop:
            raise Interrupted

    agent = linmdp.make_agent(spec, env, episodes=40)
    try:
        return linmdp.run(env, agent, episodes=40, seed=3, checkpoint=folder, every=every, on_episode=at)
    except Interrupted:
        return None


def _maybe_damage(folder: Path, rng: random.Random) -> None:
    """The newest of two checkpoints cut short, now and then: the one before it must do."""
    there = sorted(folder.glob("*.safetensors"))
    if len(there) == 2 and rng.random() < 0.1:
        data = there[-1].read_bytes()
        there[-1].write_bytes(data[: rng.randrange(len(data))])


def _same(one: RunResult | None, two: RunResult | None) -> bool:
    assert one is not None
    assert two is not None
    names = (f.name for f in fields(RunResult) if f.name not in (*TIMES, "warnings"))
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


def kills(scale: float) -> Iterator[Row]:
    """A real process under SIGKILL at random moments, then given again until it is done."""
    rng, wanted, points, failures = random.Random(1), max(4, round(50 * scale)), 0, 0
    folder = Path(tempfile.mkdtemp(prefix="linmdp-trust-"))
    settings = (
        "lsvi-ucb-fixed:storage=features",
        "lsvi-ucb",
        "lsvi-ucb:storage=centres",
        "lsvi-ucb-adaptive:storage=states",
    )
    try:
        number = 0
        while points < wanted:
            spec, number = settings[number % len(settings)], number + 1
            calm = subprocess.run(_line(folder / "calm", spec), capture_output=True, text=True, check=True).stdout
            for _ in range(5):
                process, before = faults.quiet(_line(folder / "killed", spec)), _newest(folder / "killed")
                while process.poll() is None and _newest(folder / "killed") == before:
                    time.sleep(0.002)  # until it has gone on from where it was
                time.sleep(0.15 * rng.random())
                process.send_signal(signal.SIGKILL)
                points += process.wait() == -signal.SIGKILL
            done = subprocess.run(_line(folder / "killed", spec), capture_output=True, text=True).stdout
            failures += _numbers(done) != _numbers(calm)
            for name in ("calm", "killed"):
                shutil.rmtree(folder / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield Row(
        "a run under SIGKILL goes on bit for bit", points, failures, "real processes, between and during checkpoints"
    )


def _newest(folder: Path) -> str:
    return max((path.name for path in folder.glob("*.safetensors")), default="")


def _line(folder: Path, spec: str) -> list[str]:
    env = "synthetic:S=80,A=4,d=10,H=12"
    rest = ["run", env, spec, "-k", "600", "--json", "--checkpoint", str(folder), "--every", "7"]
    return [sys.executable, "-c", faults.MAIN, *rest]


def _numbers(text: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in text.splitlines()]


def files(scale: float) -> Iterator[Row]:
    """Mutated files, to every reader."""
    cases = max(1000, round(100_000 * scale))
    failed = fuzz.fuzz(cases)
    for words in sorted(set(failed))[:10]:
        print(words, file=sys.stderr)
    yield Row("a hostile file is read or refused in one line", cases, len(failed), "no crash, no hang, under 64 MiB")
    if find_spec("atheris") is None:
        print("atheris is not installed (the extra 'fuzz'): its row is left out", file=sys.stderr)
        return
    line = [sys.executable, str(ROOT / "benchmarks" / "fuzz.py"), str(cases), "--atheris"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=tempfile.gettempdir())
    whole = f"Done {cases} runs" in done.stderr
    if not whole:
        print("\n".join(done.stderr.splitlines()[-20:]), file=sys.stderr)
    yield Row("the same, inputs led by coverage", cases, int(done.returncode != 0 or not whole), "atheris")


def sweeps(scale: float) -> Iterator[Row]:
    """Sweeps under faults."""
    yield from faults.rows(max(100, round(2000 * scale)), kills=max(4, round(60 * scale)))


def inputs(scale: float) -> Iterator[Row]:
    """Bad command lines and specs, and environments that misbehave: the tests themselves."""
    for promise, name in (
        ("a bad command line or spec is status 2 and one line", "test_bad_inputs.py"),
        ("an environment that misbehaves is named in one line", "test_hostile_envs.py"),
    ):
        line = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(ROOT / "tests" / name)]
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            subprocess.run([*line, f"--junitxml={report}"], capture_output=True, cwd=ROOT)
            yield Row(promise, *_counted(report), f"tests/{name}")


def _counted(report: Path) -> tuple[int, int]:
    import xml.etree.ElementTree as ET

    suite = next(ET.parse(report).getroot().iter("testsuite")).attrib
    return int(suite["tests"]), int(suite["failures"]) + int(suite["errors"])


def environments(scale: float) -> Iterator[Row]:
    """Random faults of environments through every loop that plays one."""
    yield from fuzz_envs.rows(max(100, round(3000 * scale)))


def uses(scale: float) -> Iterator[Row]:
    """Mutated stores, agents and learners through all that is done with one."""
    yield from fuzz_uses.rows(max(600, round(30_000 * scale)))


Part = Callable[[float], Iterator[Row]]
PARTS: list[Part] = [resumes, kills, files, uses, sweeps, inputs, environments, soak.rows, soak.merging, device.device]


def table(found: list[Row], scale: float, before: str = "") -> str:
    """The rows as Markdown, behind the rows of other promises in a table from before."""
    lines = ["| promise | trials | failures | how |", "|---|---:|---:|---|"]
    promises = {row.promise for row in found}
    others = (line for line in before.splitlines()[2:] if line.startswith("|"))
    lines += [line for line in others if line.split("|")[1].strip() not in promises]
    lines += [f"| {row.promise} | {row.trials:,} | {row.failures:,} | {row.how} |" for row in found]
    size = "" if scale == 1 else f" {scale:g}"
    return "\n".join(lines) + f"\n\n`python benchmarks/trust.py{size}` wrote this table.\n"


def main(scale: float, names: Sequence[str] = ()) -> int:
    """Try everything, or some parts; 1 if a promise was broken."""
    parts = {part.__name__: part for part in PARTS}
    for name in names:
        if name not in parts:
            raise SystemExit(f"a part is one of {', '.join(parts)}. Got {name!r}.")
    found, docs = list[Row](), sorted((ROOT / "docs").glob("*.md"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linmdp.LinMDPWarning)
        for part in [parts[name] for name in names or parts]:
            before = time.monotonic()
            for row in part(scale):
                found.append(row)
                print(f"{row.promise}: {row.trials:,} trials, {row.failures} failures ({row.how})", flush=True)
            print(f"  {part.__name__}: {time.monotonic() - before:.0f} s", file=sys.stderr, flush=True)
    text = table(found, scale, in_pages(docs, "trust") if names else "")
    into_pages(docs, "trust", text)
    print("\n" + text)
    return int(any(row.failures for row in found))


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, sys.argv[2:]))
