"""The C library that `linmdp export` writes: its sizes on a Cortex-M4, and how often it differs from Python.

    python benchmarks/device.py       sizes and costs

`device` yields rows for the table of promises: see benchmarks/trust.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import linmdp
from linmdp.export.write import Exported, export_learner
from linmdp.report.tables import markdown

STEPS = 10_000
TASKS = [
    ("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95"),
    ("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,M=48"),
    ("inventory", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95"),
    ("riverswim:H=20", "lsvi-ucb:storage=centres,lam=0.1"),
    ("lock", "lsvi-ucb:storage=centres,lam=0.1"),
    (
        "gym:CartPole-v1,H=200,features=fourier,order=1",
        "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95",
    ),
    ("sensor", "lsvi-ucb:storage=centres,beta=0.5,lam=0.1,stationary=true,discount=0.95"),
    (
        "gym:CartPole-v1,H=200,features=fourier,order=1",
        "lsvi-ucb:storage=centres,beta=0.1,lam=0.1,stationary=true,discount=0.95,M=150,replan=0.1",
    ),
]
EMULATED = [*TASKS[:3], *TASKS[-2:]]


class Row(NamedTuple):
    """A promise, how often it was tried, how often it failed, and how it was tried."""

    promise: str
    trials: int
    failures: int
    how: str


def exported(env_spec: str, agent_spec: str, folder: Path, *, real: str, steps: int, seed: int = 0) -> Exported:
    """The library of an agent that has learned nothing yet."""
    env: Any = linmdp.make_env(env_spec)
    agent = linmdp.make_agent(agent_spec, env, 5000)
    return export_learner(agent, env, folder, real=real, steps=steps, seed=seed, run=f"{agent_spec} on {env_spec}")


def said(command: list[str], folder: Path) -> dict[str, str]:
    """What a self-test says, by name; empty if it could not be built."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


def device(scale: float) -> Iterator[Row]:
    """Rows for the table of promises: agreement, compilers, sanitizers, and the microcontroller."""
    for real, close in (("double", "1e-10"), ("float", "1e-5")):
        yield agreement(real, close, max(1, round(3 * scale)))
    yield random_tasks(max(5, round(100 * scale)))
    if shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm"):
        yield microcontroller(max(1, round(len(EMULATED) * scale)))


def agreement(real: str, close: str, seeds: int) -> Row:
    """The tasks above, each seed 10,000 steps."""
    tried = failures = near = 0
    for env, agent in TASKS:
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as name:
                exported(env, agent, Path(name), real=real, steps=STEPS, seed=seed)
                found = said(["make", "-s"], Path(name))
            tried += int(found.get("steps", STEPS))
            failures += int(found.get("other_actions", STEPS)) + (0 if "passed" in found else 1)
            near += int(found.get("close_calls", 0))
    how = f"steps in {len(TASKS)} tasks; {near} times another action that is as good"
    return Row(f"in C ({real}): the same actions, Q within {close}", tried, failures, how)


def random_tasks(count: int) -> Row:
    """Random tables, parameters and ends under the sanitizers of gcc."""
    from test_export import RandomEnv, random_agent

    failures = 0
    flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    for seed in range(1000, 1000 + count):
        agent = random_agent(seed)
        with tempfile.TemporaryDirectory() as name:
            export_learner(agent, RandomEnv(agent.task, seed), Path(name), real="double", steps=500, seed=seed)
            failures += "passed" not in said(["make", "-s", f"CFLAGS={flags}"], Path(name))
    return Row(
        "no undefined behaviour, no access out of bounds",
        count,
        failures,
        "random tasks, 500 steps each, ASan and UBSan",
    )


def microcontroller(count: int) -> Row:
    """The self-test on an emulated Cortex-M4."""
    failures = 0
    for env, agent in EMULATED[:count]:
        with tempfile.TemporaryDirectory() as name:
            exported(env, agent, Path(name), real="float", steps=2000)
            failures += "passed" not in said(["make", "-s", "qemu"], Path(name))
    return Row("it runs on a Cortex-M4 in 64 KiB of RAM", count, failures, "self-test of 2,000 steps under QEMU")


def sizes() -> tuple[str, str]:
    """Flash and RAM of each task, and the instructions of a step, as two tables."""
    flash_ram, cost = [], []
    for env, agent in TASKS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            wrote = exported(env, agent, folder, real="float", steps=100)
            subprocess.run(["make", "-s", "library.size"], cwd=folder, check=True, capture_output=True)
            text = (folder / "library.size").read_text().splitlines()[-1].split()[0]
            found = said(["make", "-s", "cycles"], folder)
        measured = f"{int(found['act']) + int(found['observe']):,}" if "act" in found else "more than 64 KiB"
        flash_ram.append([env, f"`{agent}`", f"{int(text):,}", f"{wrote.ram:,}"])
        cost.append([env, f"`{agent}`", measured])
    return (
        markdown(["task", "agent", "flash: code and tables (bytes)", "RAM: the learner (bytes)"], flash_ram),
        markdown(["task", "agent", "instructions per step"], cost),
    )


def main() -> None:
    """Print both tables."""
    for program, package in (("arm-none-eabi-gcc", "gcc-arm-none-eabi"), ("qemu-system-arm", "qemu-system-arm")):
        if not shutil.which(program):
            raise SystemExit(f"sizes and instructions need {program}, which is not installed: {package}")
    print(*sizes(), sep="\n\n")


if __name__ == "__main__":
    main()
