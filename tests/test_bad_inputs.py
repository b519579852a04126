"""Every bad command line and spec of the table: status 2, one line on standard error, no traceback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import command
from bad_inputs import COMMANDS, SWEEPS


def refused(done: command.Done, words: str) -> None:
    assert done.status == 2, done
    lines = [line for line in done.err.splitlines() if ": chosen " not in line]  # said before the first episode
    assert len(lines) == 1, done.err
    assert lines[0].startswith("linmdp: ")
    assert words in done.err
    assert "Traceback" not in done.out + done.err
    assert done.out == ""


def test_the_table_is_long_and_has_no_row_twice() -> None:
    rows = [line for line, _ in COMMANDS] + [text for text, _ in SWEEPS]
    assert len(rows) == len(set(rows)) >= 150


@pytest.mark.parametrize(("line", "words"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_bad_command_line_is_refused_in_one_line(line: str, words: str, tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("this is no file of any kind")
    (store := tmp_path / "store").mkdir()
    (store / "runs.sqlite").write_bytes(b"this is no database" * 100)
    places = {"tmp": empty, "file": tmp_path / "file", "store": store}
    refused(command.linmdp(*shlex.split(line.format(**places))), words)
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(("text", "words"), SWEEPS, ids=range(len(SWEEPS)))
def test_a_bad_sweep_file_is_refused_in_one_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(text)
    refused(command.linmdp("sweep", str(tmp_path / "sweep.toml"), "--out", str(tmp_path / "out")), words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_a_path_that_no_system_has_is_refused(option: str) -> None:
    for path, words in (("a\0b", "embedded null byte"), ("x" * 300, "must be writable")):
        refused(command.linmdp("run", "lock", "random", "-k", "2", option, path), words)
