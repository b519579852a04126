"""Parts of a sweep on machines that know nothing of each other: joined, they are the sweep."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import linmdp

SPEC = """
name = "small"
[[runs]]
env = ["lock:H=4", "gym:FrozenLake-v1,H=20"]
agents = ["lsvi-ucb", "lsvi-ucb-fixed", "random"]
grid.rho = [0.5, 0.75]
episodes = {episodes}
seeds = 4
"""
TIMES = ("cpu_seconds", "wall_seconds", "costs")
"""What differs between two runs of the same configuration."""


def spec(folder: Path, episodes: str = "[20, 30]") -> str:
    path = folder / "sweep.toml"
    path.write_text(SPEC.replace("{episodes}", episodes))
    return str(path)


def contents(folder: Path) -> list[tuple[Any, ...]]:
    """Every run in its place, with all that is stored of it but times and the checksum, which covers them."""
    with sqlite3.connect(folder / "runs.sqlite") as db:
        rows = db.execute("SELECT rowid, key, at, regret, rewards, record FROM runs ORDER BY rowid").fetchall()
    said = [{k: v for k, v in json.loads(row[-1]).items() if k not in (*TIMES, "checksum")} for row in rows]
    return [(*row[:-1], record) for row, record in zip(rows, said, strict=True)]


def test_parts_joined_are_the_sweep_in_one_piece_bit_for_bit(tmp_path: Path) -> None:
    file, whole = spec(tmp_path), tmp_path / "whole"
    assert linmdp("sweep", file, "--out", str(whole), "-j", "1").status == 0
    parts = [tmp_path / f"part-{i}" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        assert linmdp("sweep", file, "--shard", f"{i}/3", "--out", str(part), "-j", "1").status == 0
    sizes = [len(contents(part)) for part in parts]
    assert sum(sizes) == len(contents(whole)) == 64
    assert min(sizes) > 10
    for out, order in (("joined", parts), ("backwards", parts[::-1])):
        done = linmdp("merge", *map(str, order), "--out", str(tmp_path / out))
        assert (done.status, done.err) == (0, f"64 runs of 3 folders are in {tmp_path / out / 'runs.sqlite'}\n")
        assert contents(tmp_path / out) == contents(whole)
    assert linmdp("table", str(tmp_path / "joined")).status == 0
    again = linmdp("sweep", file, "--out", str(tmp_path / "joined"))
    assert again.err.startswith("64 runs, 0 to do")
    first = linmdp("merge", str(whole), *map(str, parts))  # without --out the first folder takes the rest
    assert (first.status, len(contents(whole))) == (0, 64)


def test_a_part_that_was_killed_goes_on_and_the_whole_is_the_same(tmp_path: Path) -> None:
    file = spec(tmp_path, "400")
    assert linmdp("sweep", file, "--out", str(tmp_path / "whole"), "-j", "1").status == 0
    one, two = (["sweep", file, "--shard", f"{i}/2", "--out", str(tmp_path / str(i)), "-j", "1"] for i in (1, 2))
    process = subprocess.Popen(
        [sys.executable, "-c", "from linmdp.cli import main; main()", *one], stderr=subprocess.DEVNULL
    )
    store = tmp_path / "1" / "runs.sqlite"
    while process.poll() is None and not (store.is_file() and store.stat().st_size and stored(store)):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = stored(store)
    assert 0 < killed < 16
    assert linmdp(*two).status == 0
    early = linmdp("merge", str(tmp_path / "1"), str(tmp_path / "2"), "-o", str(tmp_path / "joined"))
    assert f"'{tmp_path / '1'}' is not finished: " in early.err
    assert len(contents(tmp_path / "joined")) < 32
    assert linmdp(*one).status == 0
    late = linmdp("merge", str(tmp_path / "1"), str(tmp_path / "2"), "-o", str(tmp_path / "joined"))
    assert "not finished" not in late.err
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")


def stored(store: Path) -> int:
    with sqlite3.connect(store) as db:
        try:
            return int(db.execute("SELECT count(*) FROM runs").fetchone()[0])
        except sqlite3.OperationalError:  # not yet
            return 0


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of two parts."""
    folder = tmp_path_factory.mktemp("half")
    assert linmdp("sweep", spec(folder, "3"), "--shard", "1/2", "--out", str(folder / "1"), "--save").status == 0
    return folder


def test_what_is_missing_is_said_and_agents_come_along(half: Path, tmp_path: Path) -> None:
    done = linmdp("merge", str(half / "1"), "--out", str(tmp_path))
    assert "not among these folders: shard 2/2" in done.err
    saved = sorted(path.name for path in (half / "1" / "agents").iterdir())
    assert saved == sorted(path.name for path in (tmp_path / "agents").iterdir())
    assert saved


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep", "S", "--shard", "3/2", "--out", "1"], "'shard' parameter of sweep must be i/n with 1 <= i <= n"),
        (["sweep", "S", "--shard", "2/2", "--out", "1"], "a folder of its own for each shard: '1' is that of 1/2"),
        (["merge", "1"], "'DIR' parameter of merge must be one folder or more beside that of --out"),
        (["merge", "1", "nowhere", "--out", "new"], "There is no store"),
        (["merge", ".", "--out", "1"], "There is no store"),
        (["merge", "1", "2"], "'out' parameter of merge must be a folder that is not itself one part"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_one_line(
    half: Path, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(half)
    before = contents(half / "1")
    if arguments[-1] == "2":
        assert linmdp("sweep", "sweep.toml", "--out", "2").status == 0
    done = linmdp(*("sweep.toml" if word == "S" else word for word in arguments))
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert words in done.err
    assert not (half / "new").exists()
    assert contents(half / "1") == before


def test_a_damaged_run_of_a_part_is_told_and_left_out(half: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "runs.sqlite").write_bytes((half / "1" / "runs.sqlite").read_bytes())
    with sqlite3.connect(part / "runs.sqlite") as db:
        db.execute("UPDATE runs SET rewards = zeroblob(12) WHERE rowid = (SELECT min(rowid) FROM runs)")
    done = linmdp("merge", str(part), "--out", str(tmp_path / "joined"))
    assert done.status == 1
    assert "checksum" in done.err
    assert len(contents(tmp_path / "joined")) == len(contents(part)) - 1
