"""The C library does what the Python agent does, and keeps what its header promises."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp import LSVIUCB, TableFeatures, Task
from linmdp.agents.base import Agent
from linmdp.export.learner import check_exportable
from linmdp.export.vectors import DeviceDraws, c_state
from linmdp.export.write import Exported, export_learner, export_policy
from linmdp.testing.agents import play_for

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
CLOSE = {"float": 1e-5, "double": 1e-10}
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

KINDS = [
    ("riverswim:H=10", "lsvi-ucb:storage=centres,lam=0.1,M=6"),
    ("riverswim:H=6", "lsvi-ucb:storage=centres,lam=0.1,M=4"),
    ("riverswim:H=6", "lsvi-ucb:storage=centres,lam=0.1,M=4,replan=0"),
    ("lock:H=1", "lsvi-ucb:storage=centres,lam=0.1,stationary=true"),
    ("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,M=60"),
    ("inventory", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.9,M=80"),
    ("synthetic:S=12,A=3,d=5,H=5", "lsvi-ucb:storage=centres,lam=0.1,M=12,beta=0.3,cap=H"),
    ("gym:CartPole-v1,H=12,features=fourier,order=1", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,M=40"),
    ("gym:CartPole-v1,H=8,features=auto,dim=8", "lsvi-ucb:storage=centres,lam=0.1,M=16"),
    ("gym:CartPole-v1,H=30,features=auto,dim=8", "lsvi-ucb:storage=centres,lam=0.1,M=40"),
    ("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,max_bytes=400KiB"),
    ("sensor:H=12", "lsvi-ucb:storage=centres,stationary=true,lookahead=5,M=24,lam=0.1"),
    ("sensor:H=12", "lsvi-ucb:storage=centres,beta=0.5,lam=0.1,stationary=true,discount=0.9"),
    ("synthetic:S=30,A=3,d=5,H=4", "lsvi-ucb:storage=centres,lam=0.1,M=8"),
    ("gym:CartPole-v1,H=8,features=auto,dim=16", "lsvi-ucb:storage=centres,beta=0.1,M=12,stationary=true,lookahead=3"),
]
CARTPOLE = (
    "gym:CartPole-v1,H=60,features=fourier,order=1",
    "lsvi-ucb:storage=centres,beta=0.1,lam=0.1,stationary=true,discount=0.9,M=40,replan=0.2",
)


def exported(env_spec: str, agent_spec: str, folder: Path, *, real: str, steps: int, episodes: int = 400) -> Exported:
    env = linmdp.make_env(env_spec)
    agent = linmdp.make_agent(agent_spec, env, episodes)
    agent.rng = np.random.default_rng(3)
    play_for(env, agent, 12)  # so that the frozen policy is one that has learned
    return export_learner(agent, env, folder, real=real, steps=steps, seed=5)


def built(folder: Path, *flags: str, compiler: str = "gcc", main: Path | None = None) -> Path:
    sources = [path for path in sorted(folder.glob("*.c")) if path.name != "selftest_main.c"]
    program = folder / "program"
    command = [compiler, *STRICT, *flags, f"-I{folder}", "-o", program, *sources, main or folder / "selftest_main.c"]
    done = subprocess.run([*map(str, command), "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def said_by(main: Path, *sources: Path) -> list[str]:
    """The words that a program of its own says."""
    program = main.with_name("said")
    command = ["gcc", *STRICT, f"-I{main.parent}", "-o", program, main, *sources, "-lm"]
    subprocess.run([*map(str, command)], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def report(program: Path, *prefix: str) -> dict[str, str]:
    done = subprocess.run([*prefix, str(program)], capture_output=True, text=True)
    found = {line.partition(" ")[0]: line.partition(" ")[2] for line in done.stdout.splitlines()}
    return found | {"status": str(done.returncode), "errors": done.stderr}


def assert_agrees(found: dict[str, str], real: str, *, strict: bool) -> None:
    assert found["status"] == "0", found
    assert found["errors"] == ""
    assert float(found["largest_error"]) <= CLOSE[real]
    assert found["other_actions"] == found["refused"] == found["policy_mistakes"] == "0"
    if strict:
        assert found["close_calls"] == "0"


OVERLAPPING = "gym:CartPole-v1,H=60,features=auto"
LOCK = "lsvi-ucb:storage=centres,beta=0.5"


@needs_gcc
def test_the_self_test_allows_for_the_size_of_q(tmp_path: Path) -> None:
    """A float has 24 bits: Q near 60 are off by more than Q near 1."""
    env = linmdp.make_env(OVERLAPPING)
    agent = linmdp.make_agent("lsvi-ucb:storage=centres,lam=1e-3,stationary=true,M=80", env)
    export_learner(agent, env, tmp_path, real="float", steps=150)
    found = report(built(tmp_path))
    assert found["status"] == "0", found
    assert 4e-7 < float(found["largest_error"]) <= 60 * CLOSE["float"]


@needs_gcc
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize(
    ("env", "agent"),
    [
        ("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,M=48"),
        ("synthetic:S=20,A=3,d=6,H=8", "lsvi-ucb:storage=centres,lam=0.1"),
    ],
)
def test_same_actions_for_10000_steps(tmp_path: Path, env: str, agent: str, real: str) -> None:
    exported(env, agent, tmp_path, real=real, steps=10_000)
    found = report(built(tmp_path, "-O2"))
    assert int(found["steps"]) >= 10_000
    # dense features in single precision: of actions whose Q differ by less than a float can hold, either is played
    assert_agrees(found, real, strict=real == "double" or env == "sensor")
    assert int(found["close_calls"]) <= 10


@needs_gcc
def test_same_actions_for_10000_steps_of_numbers_that_are_merged(tmp_path: Path) -> None:
    """In single precision: features are computed in double, or now and then another centre would be the nearest."""
    exported(*CARTPOLE, tmp_path, real="float", steps=10_000)
    found = report(built(tmp_path, "-O2"))
    assert int(found["steps"]) >= 10_000
    assert found["status"] == "0", found
    assert found["other_actions"] == "0"
    assert int(found["close_calls"]) <= 10
    assert "#define LINMDP_MERGES          1" in (tmp_path / "linmdp_config.h").read_text()


@needs_gcc
@pytest.mark.parametrize(("env", "agent"), KINDS)
def test_every_kind_agrees_in_the_bytes_that_are_stated(tmp_path: Path, env: str, agent: str) -> None:
    for real in ("double", "float"):
        wrote = exported(env, agent, tmp_path / real, real=real, steps=400)
        found = report(built(tmp_path / real))
        assert_agrees(found, real, strict=real == "double")
        assert int(found["bytes"]) == wrote.ram
        assert f"that it keeps | {wrote.ram:,} |" in (tmp_path / real / "README.md").read_text()


class RandomEnv:
    """Random states, rewards and ends, whatever is done: an agent need not know where its data come from."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.rng, self.unwrapped = task, np.random.default_rng(seed), self

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return int(self.rng.integers(self.task.S or 0)), {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        # rewards on a coarse grid, so that different actions often have exactly the same worth
        reward = float(self.rng.integers(3)) / 2
        return self.reset()[0], reward, bool(self.rng.random() < 0.1), bool(self.rng.random() < 0.1), {}


def random_agent(seed: int) -> Agent:
    rng = np.random.default_rng(seed)
    S, A, H, d = (int(rng.integers(low, high)) for low, high in ((1, 7), (1, 5), (1, 6), (1, 8)))
    table = rng.normal(size=(S, A, d)) * (rng.random((S, A, d)) < 0.6)
    table /= np.maximum(np.linalg.norm(table, axis=-1, keepdims=True), 1.0)
    task = Task(S=S, A=A, d=d, H=H, reward_range=(0.0, 1.0), features=TableFeatures(table, bound=1.0 + 1e-12))
    common: dict[str, Any] = {
        "lam": float(rng.choice([0.1, 1.0])),
        "beta": "auto" if rng.random() < 0.5 else float(rng.random()),
        "stationary": bool(rng.random() < 0.5),
        "ties": str(rng.choice(["random", "first"])),
    }
    if common["stationary"] and H > 1 and rng.random() < 0.5:
        common |= {"discount": float(rng.choice([0.5, 0.95]))}
    return LSVIUCB(task, storage="centres", M=int(rng.integers(2, 6)), **common)


@needs_gcc
@pytest.mark.parametrize("seed", range(10))
def test_random_tasks_agree_and_sanitizers_are_silent(tmp_path: Path, seed: int) -> None:
    agent = random_agent(seed)
    export_learner(agent, RandomEnv(agent.task, seed), tmp_path, real="double", steps=500, seed=seed)
    program = built(tmp_path, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert_agrees(report(program), "double", strict=False)


class Runaway:
    """State 0 leads to state 1, whose features are twice as long: discounted backups move ever farther."""

    def __init__(self) -> None:
        table = np.array([[[0.5]], [[1.0]]])
        self.task = Task(S=2, A=1, d=1, H=3, reward_range=(-1.0, 0.0), features=TableFeatures(table, bound=1.0))
        self.unwrapped = self

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 1, -1.0, False, True, {}


@needs_gcc
def test_backups_that_run_away_end_as_in_python(tmp_path: Path) -> None:
    env = Runaway()
    agent = LSVIUCB(env.task, storage="centres", beta=0.1, lam=0.1, stationary=True, discount=0.95)
    export_learner(agent, env, tmp_path, real="double", steps=8)
    assert_agrees(report(built(tmp_path)), "double", strict=True)
    config = tmp_path / "linmdp_config.h"
    config.write_text(config.read_text().replace("DIVERGING       10.0", "DIVERGING       1e99"))
    assert report(built(tmp_path))["status"] == "1"


@needs_gcc
@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind")
def test_valgrind_is_silent(tmp_path: Path) -> None:
    exported("lock:H=4", "lsvi-ucb:storage=centres,lam=0.1,M=8", tmp_path, real="float", steps=200)
    found = report(built(tmp_path, "-O1", "-g"), "valgrind", "-q", "--error-exitcode=9")
    assert_agrees(found, "float", strict=True)


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(("env", "agent"), KINDS[::2])
def test_clang_compiles_it_without_a_warning(tmp_path: Path, env: str, agent: str) -> None:
    exported(env, agent, tmp_path, real="float", steps=50)
    assert report(built(tmp_path, "-O2", compiler="clang"))["status"] == "0"


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_the_headers_can_be_included_from_cpp(tmp_path: Path) -> None:
    exported("lock:H=4", "lsvi-ucb:storage=centres,lam=0.1", tmp_path, real="float", steps=20)
    source = tmp_path / "firmware.cpp"
    source.write_text(
        '#include "linmdp.h"\n#include "linmdp_names.h"\n#include "linmdp_policy.h"\n'
        "static linmdp_learner learner;\nint begin() { return linmdp_init(&learner, 1); }\n"
    )
    done = subprocess.run(
        ["g++", "-Wall", "-Wextra", "-Werror", "-c", "-o", tmp_path / "f.o", source], capture_output=True
    )
    assert done.returncode == 0, done.stderr


@needs_gcc
@pytest.mark.parametrize(("env", "agent"), KINDS[::3])
def test_it_needs_math_alone_and_has_no_globals(tmp_path: Path, env: str, agent: str) -> None:
    exported(env, agent, tmp_path, real="float", steps=20)
    sources = [str(path) for path in tmp_path.glob("linmdp*.c")]
    subprocess.run(
        ["gcc", "-std=c99", "-O2", "-ffreestanding", "-r", "-nostdlib", "-o", tmp_path / "all.o", *sources], check=True
    )
    listed = subprocess.run(["nm", tmp_path / "all.o"], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in listed.splitlines()]
    needed = {name for kind, name in symbols if kind == "U"}
    own = {"memcpy", "memset"}  # of the compiler
    assert needed - own <= {"sqrt", "sqrtf", "log", "cos", "cosf", "exp", "expf", "floor"}
    assert not {name for kind, name in symbols if kind in "BbDdC"}


@needs_gcc
def test_the_self_test_fails_where_the_learner_is_wrong(tmp_path: Path) -> None:
    exported("lock:H=4", "lsvi-ucb:storage=centres,beta=0.5", tmp_path, real="double", steps=300)
    config = tmp_path / "linmdp_config.h"
    text = config.read_text()
    assert "0.1 /* of the ridge" in text
    config.write_text(text.replace("0.1 /* of the ridge", "0.1001 /* of the ridge"))
    assert report(built(tmp_path, "-O1"))["status"] == "1"


@needs_gcc
@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
@pytest.mark.parametrize(
    ("env", "agent"), [("sensor", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95"), CARTPOLE]
)
def test_it_fits_a_cortex_m4_with_64_kib_of_ram(tmp_path: Path, env: str, agent: str) -> None:
    exported(env, agent, tmp_path, real="float", steps=500)
    subprocess.run(["make", "-s", "-C", tmp_path, "m4"], check=True, capture_output=True)
    sizes = subprocess.run(
        ["arm-none-eabi-size", tmp_path / "selftest.elf"], capture_output=True, text=True, check=True
    )
    _, data, bss, *_ = map(int, sizes.stdout.splitlines()[1].split()[:3])
    assert data + bss < 64 * 1024
    if shutil.which("qemu-system-arm"):
        done = subprocess.run(["make", "-s", "-C", tmp_path, "qemu"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0
        assert "passed" in done.stdout + done.stderr


@needs_gcc
@pytest.mark.parametrize("agent", ["lsvi-ucb", "lsvi-ucb-adaptive", "optimal", "constant"])
def test_the_frozen_policy_of_any_agent_is_its_policy(tmp_path: Path, agent: str) -> None:
    env = linmdp.make_env("riverswim:H=5")
    made = linmdp.make_agent(agent, env, 50)
    linmdp.run(env, made, episodes=50)
    export_policy(made, tmp_path, real="float")
    (main := tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "linmdp_policy.h"\nint main(void) { for (unsigned h = 0; h < LINMDP_H; h++)'
        ' for (unsigned s = 0; s < LINMDP_S; s++) printf("%d ", linmdp_policy(h, s));'
        " return linmdp_policy(LINMDP_H, 0) != -1; }\n"
    )
    found = said_by(main, *tmp_path.glob("linmdp*.c"))
    policies = [made.policy(h) for h in range(5)]
    expected = [p if p.ndim == 1 else (p > 0).argmax(axis=1) for p in policies]
    assert [int(a) for a in found] == np.array(expected).ravel().tolist()


def test_the_draws_of_a_device_are_even() -> None:
    draws = DeviceDraws(1)
    uniform = draws.random(20_000)
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert np.histogram(uniform, 10, (0, 1))[0].min() > 1800


@needs_gcc
def test_a_stored_run_becomes_a_library(tmp_path: Path) -> None:
    ran = command("run", "lock:H=4", LOCK, "-k", "60", "--seeds", "2", "--out", str(tmp_path / "run"))
    assert ran.status == 0
    done = command("export", str(tmp_path / "run"), "--c", str(tmp_path / "c"), "--number", "2", "--steps", "100")
    assert done.status == 0, done.err
    assert "seed 1, after 60 episodes" in done.err
    assert_agrees(report(built(tmp_path / "c", "-O1")), "float", strict=True)
    refused = command("export", str(tmp_path / "run"), "--c", str(tmp_path / "c"), "--number", "0")
    assert refused.status == 2
    assert "'number' parameter of export must be a whole number in [1, 2]" in refused.err


def test_a_run_that_comes_out_otherwise_when_it_is_run_again_is_refused(tmp_path: Path) -> None:
    """With checkpoints a gym environment is seeded afresh on the way; the saved agent itself can be exported."""
    run, saved, c = str(tmp_path / "run"), str(tmp_path / "saved"), str(tmp_path / "c")
    agent = "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95,M=30"
    env = "gym:CartPole-v1,H=20,features=fourier,order=1"
    ran = command("run", env, agent, "-k", "20", "--checkpoint", saved, "--every", "5", "--out", run)
    assert ran.status == 0
    exported = command("export", run, "--c", c)
    assert exported.status == 0
    assert "training" not in exported.err
    shutil.rmtree(tmp_path / "run" / "agents")
    refused = command("export", run, "--c", c)
    assert refused.status == 2
    said, words = refused.err.strip().splitlines()
    assert f"no saved agent in {run}: training it again" in said
    assert "must give the same rewards when it is run again" in words
    file = f"{saved}/seed-0.episode-0000000020.safetensors"
    assert command("export", file, "--c", c, "--number", "1").status == 2
    done = command("export", file, "--c", c, "--steps", "100")
    assert done.status == 0, done.err


def test_a_saved_agent_is_exported_as_it_is(tmp_path: Path) -> None:
    env = linmdp.make_env("lock:H=4")
    agent = linmdp.make_agent(LOCK, env)
    linmdp.run(env, agent, episodes=40)
    agent.save(tmp_path / "agent.safetensors")
    line = ("export", str(tmp_path / "agent.safetensors"), "--c", str(tmp_path / "c"), "--steps", "40")
    assert command(*line).status == 0  # the file names the environment
    linmdp.LSVIUCB(env.task, beta=0.5, storage="centres").save(tmp_path / "nameless.safetensors")
    refused = command("export", str(tmp_path / "nameless.safetensors"), "--c", str(tmp_path / "d"))
    assert (refused.status, len(refused.err.splitlines())) == (2, 1)
    assert "must be given (--env)" in refused.err
    export_policy(agent, tmp_path / "policy", real="float")
    assert (tmp_path / "c" / "linmdp_policy.c").read_text() == (tmp_path / "policy" / "linmdp_policy.c").read_text()


@pytest.mark.parametrize(
    ("agent", "options", "words"),
    [
        ("lsvi-ucb-fixed", ("--only", "all"), "must be auto, lsvi-gp or lsvi-ucb"),
        ("random", ("--only", "policy"), "must choose an action"),
        ("lsvi-ucb:storage=centres,lam=0.1", ("--real", "half"), "'real' parameter"),
        ("lsvi-ucb:storage=centres,lam=0.1", ("--steps", "0"), "'steps' parameter"),
        ("lsvi-ucb:storage=centres,lam=0.1", ("--number", "2"), "'number' parameter"),
        ("lsvi-ucb:storage=centres,lam=0.1", ("--only", "learner"), "'only' parameter"),
    ],
)
def test_what_can_not_be_exported_is_refused_in_one_line(
    tmp_path: Path, agent: str, options: tuple[str, ...], words: str
) -> None:
    assert command("run", "lock:H=3", agent, "-k", "3", "--out", str(tmp_path / "run")).status == 0
    done = command("export", str(tmp_path / "run"), "--c", str(tmp_path / "c"), *options)
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    assert words in done.err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("lsvi-ucb:lam=0.1", "'storage' parameter of an exported lsvi-ucb must be 'centres'.* Got 'counts'"),
        (
            "lsvi-ucb:storage=centres",
            r"'lam' .* such as the [\d.e-]+ that was chosen here, unless '--only policy'\. Got 'auto'",
        ),
        ("lsvi-ucb:storage=centres,beta=1,inflate=1", "'inflate' parameter .* must be left out"),
    ],
)
def test_what_the_learner_in_c_does_not_do_is_named(agent: str, words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words):
        check_exportable(linmdp.make_agent(agent, linmdp.make_env("lock:H=4")))


@needs_gcc
@pytest.mark.filterwarnings("ignore::linmdp.errors.LinMDPWarning")  # a few episodes teach little
@pytest.mark.parametrize(
    "agent",
    [
        "lsvi-ucb:max_bytes=1MiB",  # beta and lam from the data, merged transitions, steps that share weights
        "lsvi-ucb:lookahead=9,stationary=true,storage=centres,beta=0.01,M=30",
    ],
)
def test_the_frozen_policy_of_numbers_is_that_of_the_agent(tmp_path: Path, agent: str) -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=20,features=fourier,order=1")
    made = linmdp.make_agent(agent, env, 25)
    linmdp.run(env, made, episodes=25)
    export_policy(made, tmp_path, real="double")
    rng = np.random.default_rng(0)
    steps, states = rng.integers(20, size=300), rng.normal(size=(300, 4)) * (0.5, 0.5, 0.05, 0.5)
    rows = ",".join(f"{{{h}, {c_state(state, 'double')}}}" for h, state in zip(steps, states, strict=True))
    (main := tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "linmdp_policy.h"\n'
        f"static const struct {{ unsigned h; linmdp_kept x; }} asked[] = {{{rows}}};\n"
        "int main(void) { for (int i = 0; i < 300; i++)"
        ' printf("%d ", linmdp_policy(asked[i].h, linmdp_recall(&asked[i].x))); return 0; }\n'
    )
    said = said_by(main, *tmp_path.glob("linmdp*.c"))
    tied = [made._tied(h, x) for h, x in zip(steps, states, strict=True)]  # type: ignore[attr-defined]
    assert [int(a) for a in said] == [int(first[0]) for first in tied]
    assert len(set(said)) == 2


def test_features_without_a_form_in_c_are_refused() -> None:
    class Mine:
        A, d, bound, nbytes = 2, 1, 1.0, 0

        def phi(self, state: Any) -> np.ndarray:
            return np.ones((2, 1))

        def batch(self, states: Any) -> np.ndarray:
            return np.ones((len(states), 2, 1))

    task = Task(S=None, A=2, d=1, H=2, reward_range=(0.0, 1.0), features=Mine())
    with pytest.raises(linmdp.InvalidParameter, match="must be a table of finite states, fourier"):
        export_learner(LSVIUCB(task, lam=0.1, storage="centres"), None, Path("nowhere"), real="float", steps=1)
    assert not Path("nowhere").exists()


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.parametrize("env", ["lock:H=4", "gym:CartPole-v1,H=20"])
@pytest.mark.parametrize("agent", ["lsvi-ucb:storage=centres", "lsvi-ucb:storage=centres,lam=0.1"])
def test_the_four_lines_of_its_readme_compile_and_run(env: str, agent: str, tmp_path: Path) -> None:
    """With no parameter it is the policy alone, and that is said; the command of the page has what must be linked."""
    made = linmdp.make_env(env)
    learner = linmdp.make_agent(agent, made)
    linmdp.run(made, learner, episodes=3)
    learner.save(tmp_path / "agent.safetensors")
    done = command("export", str(tmp_path / "agent.safetensors"), "--c", str(tmp_path / "c"), "--steps", "20")
    assert done.status == 0, done.err
    assert ("the policy alone" in done.err) == (agent == "lsvi-ucb:storage=centres")
    page = (tmp_path / "c" / "README.md").read_text()
    code, line = re.search("```c\n(.*?)```", page, re.DOTALL), re.search("`(cc .*?)`", page)
    assert code is not None
    assert line is not None
    assert code[1].count("\n") == 4
    (tmp_path / "c" / "main.c").write_text(code[1])
    assert subprocess.run(line[1], shell=True, cwd=tmp_path / "c").returncode == 0
    shown = subprocess.run(["./a.out"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert 0 <= int(shown.stdout) < made.task.A
