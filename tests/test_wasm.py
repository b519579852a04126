"""The exported learner as WebAssembly: the same learner, in any host of .wasm."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import linmdp
from command import linmdp as command
from linmdp.export.numbers import FOLDER
from linmdp.export.wasm import FLAGS, export_wasm
from linmdp.export.write import Exported

CLANG = shutil.which("clang") and shutil.which("wasm-ld")
needs_wasm = pytest.mark.skipif(not (CLANG and shutil.which("node")), reason="needs clang, wasm-ld and node")

KINDS = [
    ("sensor:H=12", "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.95,M=40", "float"),
    (
        "gym:CartPole-v1,H=12,features=fourier,order=1",
        "lsvi-ucb:storage=centres,stationary=true,M=40,beta=0.1",
        "double",
    ),
    ("gym:CartPole-v1,H=8,features=auto,dim=8", "lsvi-ucb:storage=centres,lam=0.1,M=20", "float"),
]


def exported(env_spec: str, agent_spec: str, folder: Path, real: str = "float", steps: int = 300) -> Exported:
    env = linmdp.make_env(env_spec)
    agent = linmdp.make_agent(agent_spec, env, 400)
    return export_wasm(agent, env, folder, real=real, steps=steps, seed=5)


def node(script: Path, *arguments: str) -> str:
    done = subprocess.run(["node", str(script), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def asked(folder: Path, code: str) -> Any:
    """What `code` makes of a new learner, as JSON."""
    script = folder / "asked.mjs"
    script.write_text(
        'import { readFileSync } from "node:fs";\nimport { Learner } from "./linmdp.mjs";\n'
        f'const learner = await Learner.from(readFileSync("{folder}/linmdp.wasm"), 7);\n'
        f"const found = await (async () => {{ {code} }})();\nconsole.log(JSON.stringify(found));\n"
    )
    return json.loads(node(script))


@needs_wasm
@pytest.mark.parametrize(("env", "agent", "real"), KINDS)
def test_it_does_what_the_python_agent_does(tmp_path: Path, env: str, agent: str, real: str) -> None:
    wrote = exported(env, agent, tmp_path, real)
    said = dict(line.split() for line in node(tmp_path / "selftest.mjs").splitlines()[:-1])
    assert int(said["steps"]) >= 300
    assert int(said["bytes"]) == wrote.ram  # as much as on any other device
    assert float(said["largest_error"]) <= {"float": 1e-5, "double": 1e-10}[real]


@needs_wasm
def test_the_loader_learns_refuses_saves_and_restores(tmp_path: Path) -> None:
    wrote = exported("lock:H=4,A=2", "lsvi-ucb:storage=centres,beta=0.5,M=20", tmp_path)
    found = asked(
        tmp_path,
        """
        const code = [1, 0, 0, 1], returns = [];   // state 0: on the code; state 1: off it, for good
        const episode = () => {
          let state = 0, paid = 0;
          learner.beginEpisode();
          for (let h = 0; h < learner.H; h++) {
            const action = learner.act(h, state), right = state === 0 && action === code[h];
            const next = right ? 0 : 1, reward = right && h === 3 ? 1 : 0;
            learner.observe(h, state, action, reward, next);
            [state, paid] = [next, paid + reward];
          }
          learner.endEpisode();
          return paid;
        };
        const message = (call) => { try { call(); return ""; } catch (error) { return error.message; } };
        for (let k = 0; k < 60; k++) returns.push(episode());
        const saved = learner.save(), q = learner.qValues(0, 0);
        const refused = [() => learner.act(0, -1), () => learner.observe(0, 0, 0, 0, 0),
                         () => learner.restore(new Uint8Array(3))].map(message);
        learner.beta = 0.25;
        const beta = learner.beta;
        learner.reset(7);
        const forgotten = learner.qValues(0, 0);
        learner.restore(saved);
        const { H, A, d, S, N, bytes } = learner;
        return { returns, q, again: learner.qValues(0, 0), forgotten, refused, beta, sizes: { H, A, d, S, N, bytes } };
        """,
    )
    task = linmdp.make_env("lock:H=4,A=2").task
    assert found["sizes"] == {"H": 4, "A": 2, "d": task.d, "S": task.S, "N": 0, "bytes": wrote.ram}
    assert sum(found["returns"][-20:]) >= 18  # a random code is right once in 16
    assert found["q"] == found["again"] != found["forgotten"]
    assert found["beta"] == 0.25
    assert [words.split(" ")[0] for words in found["refused"]] == ["no", "the", "a"]


@needs_wasm
def test_a_width_from_the_data_cannot_be_set(tmp_path: Path) -> None:
    exported("lock:H=3,A=2", "lsvi-ucb:storage=centres,lam=0.1", tmp_path, steps=20)
    said = asked(tmp_path, "try { learner.beta = 1; } catch (error) { return error.message; }")
    assert said == "beta comes from the data"


@needs_wasm
def test_the_series_of_the_math_are_exact_to_rounding(tmp_path: Path) -> None:
    source = tmp_path / "series.c"
    kinds = {"cos": "double", "cosf": "float", "exp": "double", "expf": "float", "log": "double"}
    calls = "".join(
        f'__attribute__((export_name("{name}"), used)) {real} own_{name}({real} x) {{ return {name}(x); }}\n'
        for name, real in kinds.items()
    )
    source.write_text(f'#include "math.h"\n{calls}')
    wasm, folder = tmp_path / "series.wasm", FOLDER / "wasm"
    line = ["clang", *FLAGS, "-Wl,--no-entry", f"-I{folder}", "-o", wasm, source, folder / "math.c"]
    subprocess.run(list(map(str, line)), check=True)
    points = {
        "cos": [x / 128 for x in range(-900, 900)] + [1e3, -1e3],
        "cosf": [x / 128 for x in range(-900, 900)],
        "exp": [x / 8 for x in range(-5600, 5600, 7)] + [-1e6, -745.0],
        "expf": [x / 8 for x in range(-690, 690)] + [-1e6],
        "log": [x / 8 for x in range(1, 4000, 3)] + [1e-300, 1e300],
    }
    (tmp_path / "points.json").write_text(json.dumps(points))
    script = tmp_path / "series.mjs"
    script.write_text(
        'import { readFileSync as read } from "node:fs";\n'
        f'const points = JSON.parse(read("{tmp_path}/points.json"));\n'
        f'const wasm = (await WebAssembly.instantiate(read("{wasm}"))).instance.exports;\n'
        "console.log(JSON.stringify(Object.entries(points).map(([name, at]) => at.map(wasm[name]))));\n"
    )
    for (name, at), found in zip(points.items(), json.loads(node(script)), strict=True):
        for x, y in zip(at, found, strict=True):
            exact = getattr(math, name.removesuffix("f"))(x)
            scale = 1.0 if name.startswith("cos") else max(abs(exact), 1e-300)
            assert abs(y - exact) <= {"double": 1e-15, "float": 1e-7}[kinds[name]] * scale, (name, x)


@needs_wasm
def test_a_stored_run_becomes_c_and_webassembly(tmp_path: Path) -> None:
    run, c, wasm = (str(tmp_path / name) for name in ("run", "c", "wasm"))
    assert command("run", "lock:H=4", "lsvi-ucb:storage=centres,beta=0.5", "-k", "20", "--out", run).status == 0
    done = command("export", run, "--c", c, "--wasm", wasm, "--steps", "50")
    assert done.status == 0, done.err
    assert {path.name for path in Path(wasm).iterdir()} == {
        "linmdp.wasm",
        "linmdp.mjs",
        "selftest.wasm",
        "selftest.mjs",
    }
    assert (Path(c) / "linmdp.h").exists()
    assert f"4 files in {wasm}" in done.err
    assert node(Path(wasm) / "selftest.mjs").endswith("passed\n")


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(tmp_path / "run")
    assert command("run", "lock:H=3", "lsvi-ucb:storage=centres,beta=0.5", "-k", "3", "--out", run).status == 0
    nowhere = command("export", run)
    assert nowhere.status == 2
    assert "'--c' or the '--wasm' of export must be given" in nowhere.err
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = command("export", run, "--wasm", str(tmp_path / "wasm"))
    assert refused.status == 2
    assert len(refused.err.splitlines()) == 1
    assert "install clang and lld" in refused.err
    assert not (tmp_path / "wasm").exists()
