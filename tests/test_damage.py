"""A store that was damaged: what is left is shown, what is not is named, and no row is read otherwise than written."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.errors import InvalidData, LinMDPError, OutputError
from linmdp.results import store as stores
from linmdp.results.run_folder import agent_file, run_rows
from linmdp.results.store import Store, existing_store
from linmdp.runner.batch import jobs_for
from linmdp.runner.sweep import run_sweep

JOBS = [("lock:H=4", ["lsvi-ucb:beta=0.1,lam=0.1", "random"]), ("riverswim:H=5", ["random"])]
OLD = Path(__file__).parent / "data" / "sweep-0.1.0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine runs."""
    folder = tmp_path_factory.mktemp("whole")
    jobs = [job for env, agents in JOBS for job in jobs_for(env, agents, episodes=20, seeds=3)]
    with closing(Store(folder)) as store:
        run_sweep(jobs, store, processes=1)
        store._db.execute("PRAGMA journal_mode = DELETE")
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def changed(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "runs.sqlite", isolation_level=None)) as db:
        db.execute(sql)


def rows_of(folder: Path) -> tuple[list[Any], list[str]]:
    """What can be read, and what is said to be damaged."""
    said: list[str] = []
    try:
        with closing(existing_store(folder)) as store:
            return list(run_rows(store, said.append)), said
    except LinMDPError as error:
        return [], [str(error)]


def one_run() -> Any:
    return next(iter(linmdp.compare("lock:H=3", ["random"], episodes=4, seeds=1, jobs=1, baselines=False)))


@pytest.mark.parametrize(("name", "value"), [("rewards", 1e39), ("rewards", np.nan), ("regret", np.inf)])
def test_a_run_that_is_not_finite_is_refused_and_its_neighbours_are_stored(
    name: str, value: float, tmp_path: Path
) -> None:
    bad, good = one_run(), one_run()
    bad.seed = 7
    setattr(bad, name, np.array([0.0, value, 0.0, 0.0]))
    with closing(Store(tmp_path)) as store:
        with pytest.raises(InvalidData, match=rf"The {name} of random in lock:H=3, seed 7, must .* finite"):
            store.add([("a", good), ("b", bad), ("c", good)])
        assert [run.key for run in store.stored()] == ["a", "c"]


def test_a_number_of_a_run_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    bad = one_run()
    bad.optimal_return = float("inf")
    with closing(Store(tmp_path)) as store, pytest.raises(InvalidData, match="optimal_return"):
        store.add([("b", bad)])


def test_no_flipped_bit_changes_a_row_without_a_word(whole: Path, tmp_path: Path) -> None:
    rng, data, (before, nothing) = random.Random(0), (whole / "runs.sqlite").read_bytes(), rows_of(whole)
    assert (len(before), nothing) == (9, [])
    named = 0
    for _ in range(300):
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for old in tmp_path.iterdir():
            old.unlink()
        (tmp_path / "runs.sqlite").write_bytes(flipped)
        found, said = rows_of(tmp_path)
        assert all(row in before for row in found)
        assert len(found) == 9 or said
        named += bool(said)
    assert named > 50


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE runs SET rewards = zeroblob(80) WHERE rowid = 2", "checksum"),
        ("UPDATE runs SET record = replace(record, '\"seed\": 1', '\"seed\": 2') WHERE rowid = 2", "checksum"),
        ("UPDATE runs SET finished = finished + 1 WHERE rowid = 2", "checksum"),
        ("UPDATE runs SET record = '{' WHERE rowid = 2", "JSON"),
        ("DELETE FROM runs WHERE rowid = 2", "must hold 9 runs. It holds 8"),
    ],
)
def test_a_damaged_row_is_named_beside_its_neighbours(sql: str, words: str, copy: Path) -> None:
    changed(copy, sql)
    found, said = rows_of(copy)
    assert len(found) == 8
    assert words in " ".join(said)
    csv = copy / "runs.csv"
    for line in (["table", str(copy), "--csv", str(csv)], ["table", str(copy)]):
        done = command(*line)
        assert done.status == 1
        assert words in done.err
        assert "Traceback" not in done.err
    assert len(csv.read_text().splitlines()) == 1 + 8
    assert "riverswim" in done.out


def test_the_report_shows_the_others_and_names_it(copy: Path) -> None:
    changed(copy, "UPDATE runs SET rewards = zeroblob(80) WHERE rowid = 2")
    done = command("report", str(copy))
    assert done.status == 1
    assert "its checksum is not that of its contents; it is left out" in done.err
    page = (copy / "report.html").read_text()
    assert "its checksum is not that of its contents" in page
    assert "riverswim" in page


def test_a_store_of_an_older_version_is_read_and_added_to(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OLD, tmp_path / "old"))
    before, nothing = rows_of(folder)
    assert before
    assert nothing == []
    with closing(Store(folder)) as store:
        store.add([("new", one_run())])
    found, nothing = rows_of(folder)
    assert found[:-1] == before
    assert nothing == []


def test_that_the_number_of_runs_is_lost_is_said(copy: Path) -> None:
    changed(copy, "DELETE FROM meta WHERE key = 'runs'")
    found, (said,) = rows_of(copy)
    assert len(found) == 9
    assert said.endswith("must hold a known number of runs. It holds 9")


@pytest.mark.parametrize("data", [b"", b"x", b"SQLite format 3"])
@pytest.mark.parametrize("what", ["table", "report"])
def test_a_file_that_was_cut_short_is_no_store_without_runs(what: str, data: bytes, tmp_path: Path) -> None:
    """SQLite takes it for an empty one, and would write over it."""
    (tmp_path / "runs.sqlite").write_bytes(data)
    done = command(what, str(tmp_path))
    assert (done.status, done.out) == (2, "")
    assert "no store" in done.err
    assert (tmp_path / "runs.sqlite").read_bytes() == data


@pytest.mark.parametrize("name", ["runs.sqlite", "runs.sqlite-wal", "runs.sqlite-journal"])
def test_a_symbolic_link_is_not_followed_out_of_the_folder(name: str, whole: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    if name != "runs.sqlite":
        shutil.copy(whole / "runs.sqlite", tmp_path / "in")
    (tmp_path / "in" / name).symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidData, match="It is a symbolic link"):
        Store(tmp_path / "in")
    assert not (tmp_path / "outside").exists()


def test_another_writer_is_named(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PATIENCE", 0.2)
    with closing(Store(copy)) as store, closing(sqlite3.connect(copy / "runs.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutputError, match=r"another program has been writing to it for 0\.2 seconds"):
            store.add([("x", one_run())])
        other.execute("ROLLBACK")
        store.add([("x", one_run())])


def in_read_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where the file system of a folder cannot be written to, in a mount namespace of its own."""
    script = f'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec {sys.executable} -c "$1" "${{@:2}}"'
    line = ["unshare", "--mount", "--map-root-user", "bash", "-c", script, str(folder)]
    return subprocess.run(
        [*line, "from linmdp.cli import main; main()", *arguments], capture_output=True, text=True, timeout=300
    )


def can_mount(folder: Path) -> bool:
    try:
        return in_read_only(folder, "--help").returncode == 0
    except OSError:
        return False


@pytest.mark.parametrize("left", ["nothing", "a log"])
def test_a_store_on_a_read_only_file_system_is_read(left: str, copy: Path, tmp_path: Path) -> None:
    if not can_mount(copy):
        pytest.skip("no mount namespace of its own here")
    if left == "a log":  # of a writer that was killed: its last run is in the log alone
        program = (
            "import sqlite3, os; db = sqlite3.connect('runs.sqlite', isolation_level=None);"
            "db.execute('PRAGMA journal_mode = WAL'); db.execute('PRAGMA wal_autocheckpoint = 0');"
            "db.execute('DELETE FROM runs WHERE rowid = 9');"
            "db.execute(\"UPDATE meta SET value = 8 WHERE key = 'runs'\");"
            "os._exit(0)"
        )
        subprocess.run([sys.executable, "-c", program], cwd=copy, check=True)
        assert (copy / "runs.sqlite-wal").stat().st_size
    csv = tmp_path / "t.csv"
    done = in_read_only(copy, "table", str(copy), "--csv", str(csv))
    assert done.returncode == 0, done.stderr
    assert len(csv.read_text().splitlines()) == 1 + (9 if left == "nothing" else 8)
    refused = in_read_only(copy, "run", "lock:H=3", "random", "-k", "3", "--out", str(copy))
    assert refused.returncode != 0
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr


HOSTILE = {
    "a whole number of 400 digits": ("$.seed", 10**400),
    "one in a dict": ("$.params.beta", 10**400),
    "half a character": ("$.env", "\ud800"),
    "half a character as a name": ("$.params", {"\ud800": 1}),
    "a list in place of text": ("$.agent", ["a"]),
    "lists within lists": ("$.params", {"a": [[[[[[[[[[[[1]]]]]]]]]]]]}),
    "text in place of numbers": ("$.random_returns", ["x"]),
    "numbers in place of text": ("$.warnings", [1, [2]]),
    "no episodes": ("$.episodes", 0),
    "bytes below 0": ("$.peak_bytes", -5),
    "planning below 0": ("$.planning_bytes", -5),
    "time without end": ("$.cpu_seconds", 1e400),
}


@pytest.mark.parametrize("case", [*HOSTILE, "a day after the last", "a machine of lists", "a key that is no text"])
def test_a_hostile_record_is_named_and_nothing_more(case: str, copy: Path) -> None:
    """Without a checksum, as an older version wrote them: anybody can compute one."""
    with closing(sqlite3.connect(copy / "runs.sqlite", isolation_level=None)) as db:
        record = json.loads(db.execute("SELECT record FROM runs WHERE rowid = 2").fetchone()[0])
        del record["checksum"]
        if case in HOSTILE:
            path, value = HOSTILE[case]
            _, name, *inner = path.split(".")
            if inner:
                record[name][inner[0]] = value
            else:
                record[name] = value
        db.execute("UPDATE runs SET record = ? WHERE rowid = 2", (json.dumps(record),))
        if case == "a day after the last":
            db.execute("UPDATE runs SET finished = 1e308 WHERE rowid = 2")
        elif case == "a machine of lists":
            db.execute("""UPDATE runs SET machine = '{"commit": [["x"]]}' WHERE rowid = 2""")
        elif case == "a key that is no text":
            db.execute("UPDATE runs SET key = CAST(x'ff00fe' AS TEXT) WHERE rowid = 2")
    found, said = rows_of(copy)
    assert len(found) == 8
    assert len(said) == 1
    for line in (["table", str(copy)], ["table", str(copy), "--csv", str(copy / "t.csv"), "--curves"]):
        done = command(*line)
        assert done.status == 1, done.err
        assert len(done.err.strip().splitlines()) <= 2, done.err


def test_a_hostile_record_does_not_stop_a_report(copy: Path) -> None:
    for place, (name, value) in enumerate((("seed", 10**400), ("env", "\ud800"), ("agent", ["a"])), start=1):
        with closing(sqlite3.connect(copy / "runs.sqlite", isolation_level=None)) as db:
            record = json.loads(db.execute(f"SELECT record FROM runs WHERE rowid = {place}").fetchone()[0])
            del record["checksum"]
            db.execute(f"UPDATE runs SET record = ? WHERE rowid = {place}", (json.dumps(record | {name: value}),))
    done = command("report", str(copy))
    assert done.status == 1
    assert "Traceback" not in done.err
    assert done.err.count("it is left out") == 3


def test_the_umask_says_who_may_read_what_is_written(tmp_path: Path) -> None:
    line = f"{sys.executable} -c 'from linmdp.cli import main; main()'"
    run = "run lock:H=3 lsvi-ucb -k 5 --out out"
    subprocess.run(["bash", "-c", f"umask 077; {line} {run}"], cwd=tmp_path, check=True, capture_output=True)
    open_to_all = [p for p in (tmp_path / "out").rglob("*") if p.stat().st_mode & 0o077]
    assert open_to_all == []
    subprocess.run(["bash", "-c", f"umask 022; {line} {run}2"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out2" / "results.jsonl").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("what", ["agents", "file"])
def test_a_linked_agent_is_not_followed(what: str, tmp_path: Path) -> None:
    outside, key = tmp_path / "outside", "a" * 64
    outside.mkdir()
    (outside / f"{key}.safetensors").write_bytes(b"x")
    folder = tmp_path / "run"
    (folder if what == "agents" else folder / "agents").mkdir(parents=True)
    link = folder / "agents" if what == "agents" else folder / "agents" / f"{key}.safetensors"
    link.symlink_to(outside if what == "agents" else outside / f"{key}.safetensors")
    with pytest.raises(InvalidData, match="It is a symbolic link"):
        agent_file(folder, key)
