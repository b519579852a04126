"""Words in a file that someone else made are words: in C, in Markdown and in a spreadsheet nothing comes of them."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

import linmdp
from linmdp.errors import LinMDPError
from linmdp.export.numbers import in_comment, in_markdown
from linmdp.export.write import export_learner, export_policy
from linmdp.results.run_folder import write_csv
from linmdp.runner.saved import trained
from test_export import built, needs_gcc

INJECTIONS = (
    "*/int evil(void){return 1;}/*",
    "**//*/ int evil(void){return 1;} /*/",
    "*\\\n/ int evil(void){return 1;} /*",
    "`</p><script>evil()</script>`` ![x](http://evil)",
    "??/\n#define evil 1",
)


@needs_gcc
@pytest.mark.parametrize("words", INJECTIONS)
def test_nothing_is_compiled_from_the_words_about_a_run(words: str, tmp_path: Path) -> None:
    env = linmdp.make_env("lock:H=3")
    agent = linmdp.make_agent("lsvi-ucb:storage=centres,beta=0.5,lam=0.1", env)
    export_learner(agent, env, tmp_path, real="double", steps=6, run=words)
    program = built(tmp_path, "-O1", "-Wall", "-Werror")
    assert "evil" not in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    header = tmp_path / "linmdp_config.h"
    tokens = subprocess.run(["gcc", "-E", "-dD", header], capture_output=True, text=True, check=True).stdout
    assert "evil" not in tokens


@pytest.mark.parametrize("words", INJECTIONS)
def test_the_words_about_a_run_are_code_in_markdown(words: str, tmp_path: Path) -> None:
    agent = linmdp.make_agent("lsvi-ucb:lam=0.1", linmdp.make_env("lock:H=3"))
    export_policy(agent, tmp_path, real="double", run=words)
    line = next(x for x in (tmp_path / "README.md").read_text().splitlines() if "evil" in x)
    fence = line.removeprefix("From this run: ")
    ticks = len(fence) - len(fence.lstrip("`"))
    inside = fence[ticks : fence.rindex("`" * ticks)]
    assert ticks
    assert "evil" in inside
    assert "`" * ticks not in inside
    assert fence[ticks + len(inside) :] == "`" * ticks + "."


def test_plain_words_stay_as_they_are() -> None:
    words = "lsvi-ucb:beta=0.1 on lock:H=4, seed 1, after 60 episodes"
    assert in_comment(words) == words
    assert in_markdown(words) == f"`{words}`"


@pytest.mark.parametrize("env", ["gym:evil:Env-v0", "gym:os:x", "gym:id=evil:Env-v0"])
def test_an_agent_file_can_not_make_us_import_a_module(env: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    linmdp.make_agent("lsvi-ucb", linmdp.make_env("lock:H=3")).save(path, run={"env": env})
    with pytest.raises(LinMDPError, match="must not name a module"):
        trained(path)


@pytest.mark.parametrize("words", ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "=-1e400", "-inf"])
def test_no_cell_of_a_csv_is_a_formula(words: str, tmp_path: Path) -> None:
    rows = [{"a": words, "b": -0.5, "c": -7, "d": "-0.5", "e": "x=1"}]
    write_csv(tmp_path / "t.csv", dict.fromkeys(rows[0], str), rows)
    with (tmp_path / "t.csv").open(newline="") as file:
        (back,) = csv.DictReader(file)
    assert back == {"a": f"'{words}", "b": "-0.5", "c": "-7", "d": "-0.5", "e": "x=1"}
