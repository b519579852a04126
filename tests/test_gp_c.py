"""`lsvi-gp` in C does what it does in Python, and keeps to its memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import linmdp
from linmdp.export.gp import gp_bytes, inner
from linmdp.export.write import Exported, export_learner
from test_export import STRICT, built, report

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

KINDS = [
    ("gym:FrozenLake-v1", "lsvi-gp"),  # scouts are sent
    ("gym:CartPole-v1", "lsvi-gp:states=60,features=12"),  # transitions are merged
    ("sensor:H=12", "lsvi-gp:states=40,features=20,levels=7,kept=3"),
    ("riverswim:H=6", "lsvi-gp:beta=0,evidence=1,scout=0"),
    ("gym:MountainCar-v0,H=60", "lsvi-gp:states=30,features=6"),
]


def exported(env_spec: str, spec: str, folder: Path, *, real: str, steps: int) -> Exported:
    env = linmdp.make_env(env_spec)
    return export_learner(linmdp.make_agent(spec, env), env, folder, real=real, steps=steps, seed=5)


@pytest.mark.parametrize(("env", "spec"), KINDS)
def test_it_does_in_double_precision_what_it_does_in_python(tmp_path: Path, env: str, spec: str) -> None:
    wrote = exported(env, spec, tmp_path, real="double", steps=900)
    found = report(built(tmp_path))
    assert found["status"] == "0", found
    assert found["other_actions"] == found["refused"] == found["policy_mistakes"] == found["far"] == "0"
    assert int(found["bytes"]) == wrote.ram


def test_it_does_nearly_the_same_in_single_precision(tmp_path: Path) -> None:
    wrote = exported(*KINDS[1], tmp_path, real="float", steps=900)
    found = report(built(tmp_path))
    assert found["status"] == "0", found
    assert int(found["bytes"]) == wrote.ram


@pytest.mark.parametrize("real", ["float", "double"])
def test_its_bytes_are_those_of_its_struct(tmp_path: Path, real: str) -> None:
    env = linmdp.make_env("gym:CartPole-v1")
    agent = inner(linmdp.make_agent("auto:states=33,features=7,kept=3", env))
    assert isinstance(agent, linmdp.agents.LSVIGP)
    wrote = export_learner(agent, env, tmp_path, real=real, steps=1)
    assert report(built(tmp_path))["bytes"] == str(wrote.ram) == str(gp_bytes(agent, real)["learner"])


@pytest.mark.parametrize(("env", "spec"), [KINDS[1], KINDS[2]])
def test_random_inputs_right_and_wrong_harm_nothing(tmp_path: Path, env: str, spec: str) -> None:
    exported(env, spec, tmp_path, real="double", steps=1)
    program = tmp_path / "random"
    sources = [*tmp_path.glob("linmdp*.c"), Path(__file__).with_name("gp_random.c")]
    checks = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    command = [*STRICT, *checks, f"-I{tmp_path}", "-o", program, *sources, "-lm"]
    subprocess.run(["gcc", *map(str, command)], check=True)
    done = subprocess.run([str(program), "3000"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    refused = next(line for line in done.stdout.splitlines() if line.startswith("refused"))
    assert int(refused.split()[1]) > 100
