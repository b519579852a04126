"""A store as a table: what is read back is what is stored, to the last digit."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from linmdp.errors import InvalidData, InvalidParameter, OutputError
from linmdp.report.comparison import Comparison, comparison_text
from linmdp.results.run_folder import BESIDE, CURVES, curve_rows, run_columns, run_rows, write_csv, write_parquet
from linmdp.results.store import Store, existing_store
from linmdp.results.summary import by_setting
from linmdp.runner.batch import jobs_for
from linmdp.runner.sweep import run_sweep

FIELDS = [
    *("env", "agent", "seed", "episodes", "eval_every", "final_regret", "regret_area", "reward", "agent_bytes"),
    *("planning_bytes", "feature_bytes", "cpu_seconds", "wall_seconds", "updates", "resets", "saturated", "tied"),
    "drift",
]

SAID = ("optimal_return", "verdict", "certified", "interactions")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight runs: numbers, words and nothing as parameters, and an environment without regret."""
    found = tmp_path_factory.mktemp("store")
    agents = ["lsvi-ucb:beta=0.1,lam=0.1", "lsvi-ucb:beta=published,lam=0.1", "random"]
    jobs = jobs_for("lock:H=4", agents, episodes=30, seeds=2)
    jobs += jobs_for("gym:FrozenLake-v1,H=10", ["random"], episodes=5, seeds=2)
    run_sweep(jobs, store := Store(found), processes=1)
    store.close()
    return found


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_gives_back_every_run(folder: Path, tmp_path: Path) -> None:
    store = existing_store(folder)
    rows = list(run_rows(store))
    write_csv(tmp_path / "runs.csv", run_columns(rows), rows)
    back = read_csv(tmp_path / "runs.csv")
    assert list(back[0])[:3] == ["env", "agent", "param.beta"]
    named = [name for name in back[0] if not name.startswith(("param.", "chosen."))]
    assert named == [*FIELDS, "switches", "random_return", *SAID, *BESIDE]
    for row, run in zip(back, store.stored(), strict=True):
        r = run.result
        assert (row["key"], row["env"], row["agent"], int(row["seed"])) == (run.key, r.env, r.agent, r.seed)
        assert (float(row["reward"]), float(row["cpu_seconds"])) == (r.reward, r.cpu_seconds)
        assert (float(row["final_regret"]) if row["final_regret"] else None) == r.final_regret
        assert row["param.lam"] == (repr(r.params["lam"]) if "lam" in r.params else "")
    assert [row["param.beta"] for row in back] == ["0.1"] * 2 + ["published"] * 2 + [""] * 4


def test_parquet_gives_back_every_run_with_types(folder: Path, tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    store = existing_store(folder)
    rows = list(run_rows(store))
    write_parquet(tmp_path / "runs.parquet", run_columns(rows), rows)
    found = parquet.read_table(tmp_path / "runs.parquet")
    for back, row in zip(found.to_pylist(), rows, strict=True):
        for name, value in back.items():
            there = row.get(name)
            assert value == (str(there) if name == "param.beta" and there is not None else there)
    kinds = {name: str(found.schema.field(name).type) for name in ("seed", "reward", "param.beta", "param.lam")}
    assert kinds == {"seed": "int64", "reward": "double", "param.beta": "string", "param.lam": "double"}


def test_curves_are_one_row_a_point(folder: Path, tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    store = existing_store(folder)
    write_csv(tmp_path / "c.csv", CURVES, curve_rows(store))
    write_parquet(tmp_path / "c.parquet", CURVES, curve_rows(store))
    text, typed = read_csv(tmp_path / "c.csv"), parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert len(text) == len(typed) == 6 * 30 + 2 * 5
    first = next(store.stored())
    mine = [row for row in typed if row["key"] == first.key]
    assert [row["episode"] for row in mine] == list(range(30))
    assert first.result.regret is not None
    np.testing.assert_array_equal([row["regret"] for row in mine], first.result.regret)
    np.testing.assert_array_equal([row["reward"] for row in mine], np.cumsum(first.result.rewards))
    assert [float(row["reward"]) for row in text] == [row["reward"] for row in typed]
    assert text[-1]["regret"] == ""
    assert typed[-1]["regret"] is None


def test_settings_are_the_stored_runs_one_setting_after_the_other(folder: Path, tmp_path: Path) -> None:
    """Also where their runs lie apart, and where a number is none, which is no plain JSON."""
    with closing(existing_store(folder)) as store:
        runs = list(store.stored())
    runs[4].result.tied = float("nan")
    with closing(Store(tmp_path)) as store:
        store.add([(run.key, run.result) for run in [*runs[::2], *runs[-1::-2]]])
        settings, expected = list(store.settings()), by_setting(store.results())
        assert [len(runs) for runs in settings] == [2] * 4
        for found, other in zip(chain(*settings), chain(*expected), strict=True):
            assert found.costs == []
            np.testing.assert_equal(vars(found) | {"costs": other.costs}, vars(other))
        assert comparison_text(settings) == Comparison(store.results()).table()


def test_costs_in_the_middle_of_a_record_or_in_a_parameter_are_read(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    with sqlite3.connect(copy / "runs.sqlite") as db:
        (text,) = db.execute("SELECT record FROM runs WHERE rowid = 1").fetchone()
        record = {"costs": [[1, 2, 3, 4]]} | json.loads(text) | {"chosen": {"costs": [[1]]}}
        del record["warnings"], record["checksum"]  # as an older version wrote it
        db.execute("UPDATE runs SET record = ? WHERE rowid = 1", (json.dumps(record),))
    with closing(existing_store(copy)) as store:
        assert next(store.stored(costs=False)).result.chosen == {"costs": [[1]]}
        assert next(store.settings())[0].chosen == {"costs": [[1]]}


def test_a_damaged_run_is_named_in_one_line(folder: Path, tmp_path: Path) -> None:
    for i, change in enumerate(("record = '{'", "record = '[1]'", "rewards = x'00'", "at = x'00'", "regret = x''")):
        copy = Path(shutil.copytree(folder, tmp_path / str(i)))
        with sqlite3.connect(copy / "runs.sqlite") as db:
            db.execute(f"UPDATE runs SET {change} WHERE rowid = 2")
        with closing(existing_store(copy)) as store, pytest.raises(InvalidData, match="is damaged at"):
            list(store.settings())
        with closing(existing_store(copy)) as store:
            runs = store.stored()
            assert next(runs).result.seed == 0
            with pytest.raises(InvalidData, match="is damaged at run"):
                next(runs)


def test_a_table_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old")

    def torn() -> Any:
        yield {"a": 1}
        raise InterruptedError

    with pytest.raises(OutputError):
        write_csv(path, {"a": int}, torn())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidParameter, match=r"linmdp\[parquet\]"):
        write_parquet(tmp_path / "t.parquet", {"a": int}, [])
    assert not list(tmp_path.iterdir())


def table(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from linmdp.cli import main; main()", "table", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_the_command_prints_a_comparison_or_writes_files(folder: Path, tmp_path: Path) -> None:
    shown = table(str(folder)).stdout
    assert "lock:H=4: 30 episodes" in shown
    assert "gym:FrozenLake-v1,H=10: 5 episodes" in shown
    assert shown.count("| random") == 2
    done = table(str(folder), "--csv", str(tmp_path / "a.csv"), "--curves")
    assert (done.returncode, done.stdout) == (0, "")
    assert len(read_csv(tmp_path / "a.csv")) == 190


def test_what_is_wrong_is_one_line_and_makes_nothing(folder: Path, tmp_path: Path) -> None:
    for arguments, words in (
        ([str(tmp_path)], "There is no store of a sweep"),
        ([str(folder), "--curves"], "'curves' parameter of table must be given with --csv or --parquet"),
        ([str(folder), "--csv", str(tmp_path / "no" / "a.csv")], "could not be written"),
    ):
        done = table(*arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidData):
        existing_store(tmp_path / "nowhere")
