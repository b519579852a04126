"""No step is ever taken that a mask forbids: in Python, and in C."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from gymnasium.wrappers import TimeLimit

import linmdp
from test_export import STRICT, exported, needs_gcc
from test_learner import Doors

LONG = pytest.param(10**6, marks=pytest.mark.slow)
CENTRES = "lsvi-ucb:storage=centres,beta=0.1,lam=0.1,stationary=true,replan=1"
AGENTS = (
    "random",
    "q-learning",
    "psrl",
    "lsvi-ucb-rare-switch:beta=0.1,lam=1",
    "conservative:inner=q-learning,value=1",
)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("steps", [10**4, LONG])
def test_python_never_does_what_a_mask_forbids(agent: str, steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    """In each step each of six actions is open or not, by chance."""
    _never(agent, steps, capsys)


@pytest.mark.slow
def test_auto_never_does_what_a_mask_forbids_in_a_million_steps(capsys: pytest.CaptureFixture[str]) -> None:
    _never("auto", 10**6, capsys)


def _never(agent: str, steps: int, capsys: pytest.CaptureFixture[str]) -> None:
    env, begun = Doors(), time.perf_counter()
    learner = linmdp.Learner(TimeLimit(env, 20), agent)
    env.steps = env.violations = 0
    learner.learn(steps=steps)
    with capsys.disabled():
        if steps > 10**4:
            print(f"\n{agent}: {env.steps:,} steps, {env.violations} not allowed, {time.perf_counter() - begun:.0f} s")
    assert env.steps >= steps
    assert env.violations == 0


@needs_gcc
@pytest.mark.parametrize(
    ("env", "agent", "late"),
    [
        ("synthetic:S=12,A=3,d=5,H=5", "lsvi-ucb:storage=centres,lam=0.1,M=12,beta=0.3,cap=H", 0.4),
        ("gym:CartPole-v1,H=12,features=fourier,order=1", f"{CENTRES},M=40", 0.7),
        ("sensor:H=12", "lsvi-gp:states=20,features=10,levels=7,kept=3", 0.6),
    ],
)
@pytest.mark.parametrize("steps", [10**4, LONG])
def test_c_never_does_what_a_mask_forbids(env: str, agent: str, late: float, steps: int, tmp_path: Path) -> None:
    """Where its own action may be taken it is, and it learns: the last action is paid, and is open most of the time."""
    exported(env, agent, tmp_path, real="float", steps=1)
    program: Any = tmp_path / "masks"
    sources = [*tmp_path.glob("linmdp*.c"), Path(__file__).with_name("masks.c")]
    subprocess.run(["gcc", *STRICT, "-O2", f"-I{tmp_path}", "-o", program, *sources, "-lm"], check=True)
    done = subprocess.run([program, str(steps)], capture_output=True, text=True, check=True)
    found = {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}
    assert (found["steps"], found["wrong"]) == (steps, 0)
    assert found["other"] > 0.2 * steps
    assert found["late"] >= late
