"""Folders of `run`, `compare` and `sweep`: one store, resumed by the same command, with agents that are read back."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.errors import InvalidData, InvalidParameter, LinMDPWarning
from linmdp.results.curves import POINTS, thinned, whole
from linmdp.results.run_folder import LINES, agent_file, read_folder, run_columns, run_rows
from linmdp.results.store import Store, existing_store, opened_store
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.execute import run_into, saving
from linmdp.runner.measured import RunStopped
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import RunResult, column

ENV, AGENT = "lock:H=3", "lsvi-ucb:storage=centres,beta=0.5"
OLD = Path(__file__).parent / "data"
TIMES = ("cpu_seconds", "wall_seconds")


def old(folder: Path) -> Path:
    """A copy of a folder that version 0.1.0 wrote."""
    shutil.copytree(OLD / "sweep-0.1.0", folder)
    return folder


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LINES).read_text().splitlines()]


def contents(folder: Path) -> list[tuple[Any, ...]]:
    """Every run without the times, which differ."""
    with closing(sqlite3.connect(folder / "runs.sqlite")) as db:
        return db.execute("SELECT key, at, regret, rewards FROM runs ORDER BY rowid").fetchall()


def agents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "agents").iterdir()}


# --- a result is described once


def test_a_field_of_a_result_is_a_column_everywhere(tmp_path: Path) -> None:
    """Stores, JSON and tables ask the fields and have no list of their own."""
    wider: Any = make_dataclass(
        "Wider", [("extra", int, field(default=7, metadata=column(int, "extra")))], bases=(RunResult,), kw_only=True
    )
    assert list(wider.columns())[-1] == "extra"
    (result,) = run_jobs(jobs_for(ENV, ["random"], episodes=4, seeds=1), processes=1)
    assert list(wider(**vars(result)).to_json()) == [*result.to_json(), "extra"]
    with closing(Store(tmp_path)) as store:
        store.add([("x", result)])
        (row,) = run_rows(store)
        record = json.loads(store._db.execute("SELECT record FROM runs").fetchone()[0])
    stored = {name for name, c in RunResult.columns().items() if c.kind is not None}
    assert set(record) - {"checksum"} == stored == set(RunResult.columns()) - {"regret", "rewards"}
    columns = [c for c in RunResult.columns().values() if c.kind is not dict]
    shown = [name for c in columns for name in c.table if not c.optional or row.get(name) is not None]
    assert [name for name in run_columns([row]) if "." not in name] == [*shown, "key", "commit", "finished"]


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # the adaptive one stops to learn
def test_switches_and_choices_are_measured_alone_and_in_lockstep() -> None:
    specs = ["lsvi-ucb:beta=1", "lsvi-ucb-fixed:beta=1,rho=0.5", "lsvi-ucb-adaptive:beta=1,m=2,rho=0.6,tau_rel=0.05"]
    for together in run_jobs(jobs_for(ENV, specs, episodes=30, seeds=4), processes=1):
        env = linmdp.make_env(ENV)
        agent = linmdp.make_agent(together.agent, env, 30)
        alone = linmdp.run(env, agent, episodes=30, seed=together.seed)
        assert together.switches == alone.switches == agent.policy_version > 0
        assert together.chosen == alone.chosen
        assert together.chosen["storage"] == "counts"
    env = linmdp.make_env(ENV)
    agent = linmdp.make_agent("lsvi-ucb:storage=centres,max_bytes=128KiB", env)
    first, second = (linmdp.run(env, agent, episodes=30) for _ in range(2))
    assert second.chosen == agent.chosen  # type: ignore[attr-defined]  # beta is that of the end
    assert first.chosen["M"] > 0
    assert first.switches + second.switches == agent.policy_version
    assert 0 < first.switches <= 30


def test_a_checkpoint_keeps_the_count_of_switches(tmp_path: Path) -> None:
    env = linmdp.make_env(ENV)
    through = linmdp.run(env, linmdp.make_agent(AGENT, env), episodes=30)
    for episodes in (30, 30):
        result = linmdp.run(env, linmdp.make_agent(AGENT, env), episodes=episodes, checkpoint=tmp_path, every=7)
        (tmp_path / "seed-0.episode-0000000030.safetensors").unlink()
    assert result.switches == through.switches


def test_a_store_of_the_version_before_opens_with_defaults(tmp_path: Path) -> None:
    folder, agent = old(tmp_path / "old"), "lsvi-ucb-fold:beta=0.5"
    with closing(existing_store(folder)) as store:
        fold, random = store.results()
        assert (fold.agent, random.agent, fold.seed, fold.episodes) == (agent, "random", 0, 12)
        assert (fold.switches, fold.chosen, random.switches, random.chosen) == (0, {}, 0, {})
        assert fold.regret is not None
        assert fold.to_json()["switches"] == 0
        run_sweep(jobs_for(ENV, [agent, "random"], episodes=12, seeds=1), store, processes=1)
        assert len(store.keys()) == 2  # the keys are still the same
    assert "| random" in command("table", str(folder)).out
    assert command("table", str(folder), "--csv", str(tmp_path / "runs.csv")).status == 0


def test_a_store_with_a_field_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    folder = old(tmp_path / "old")
    with sqlite3.connect(folder / "runs.sqlite") as db:
        db.execute("""UPDATE runs SET record = json_set(record, '$.speed', 9)""")
    with pytest.raises(InvalidData, match="must have known fields, each of its type, not speed"):
        read_folder(folder)


# --- one store


@pytest.mark.parametrize("how", ["run", "compare", "sweep"])
def test_table_report_and_export_read_every_folder(how: str, tmp_path: Path) -> None:
    spec, out, c = tmp_path / "s.toml", str(tmp_path / "out"), str(tmp_path / "c")
    spec.write_text(f'name = "x"\n[[runs]]\nenv = "{ENV}"\nagents = ["{AGENT}"]\nepisodes = 12')
    call = [how, str(spec)] if how == "sweep" else [how, ENV, AGENT, "-k", "12", "--seeds", "1"]
    assert command(*call, "--out", out).status == 0
    assert AGENT in command("table", out).out
    exported = command("export", out, "--c", c, "--number", "1", "--steps", "20")
    assert exported.status == 0, exported.err
    assert (f"no saved agent in {out}: training it again" in exported.err) == (how == "sweep")
    assert command("table", out, "--jsonl", str(tmp_path / "x.jsonl")).status == 0
    records = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert records[0]["agent"] == AGENT
    assert len(records[0]["regret"]) == 12
    if how != "sweep":
        exact = lines(tmp_path / "out")[0]
        rounded = {name: pytest.approx(exact[name], rel=1e-6) for name in ("regret", "final_regret", "reward")}
        assert records[0] == exact | rounded
    pytest.importorskip("plotly")
    report = command("report", out)
    assert report.status == 0
    assert f"linmdp {how}" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("how", ["run", "compare"])
def test_the_same_command_again_runs_nothing_and_shows_the_same(how: str, tmp_path: Path) -> None:
    call = [how, ENV, AGENT, "-k", "12", "--seeds", "2", "--json", "--out", str(tmp_path)]
    first, saved = command(*call), agents(tmp_path)
    written = (tmp_path / LINES).read_bytes()
    before = contents(tmp_path)
    second = command(*call)
    assert (first.status, second.status) == (0, 0)
    assert contents(tmp_path) == before
    assert agents(tmp_path) == saved
    assert (tmp_path / LINES).read_bytes() == written
    for a, b in zip(map(json.loads, first.out.splitlines()), map(json.loads, second.out.splitlines()), strict=True):
        assert a["cpu_seconds"] == b["cpu_seconds"]  # it is the run of before
        np.testing.assert_allclose(a.pop("regret"), b.pop("regret"), rtol=1e-6)
        assert a == b | {name: pytest.approx(a[name], rel=1e-6) for name in ("final_regret", "reward")}
    more = command(*call, "--seed", "1")
    assert [json.loads(line)["seed"] for line in more.out.splitlines()][:2] == [1, 2]
    assert len(lines(tmp_path)) == len(contents(tmp_path)) == len(before) * 3 // 2


def test_results_come_in_order_and_only_fresh_ones_are_tracked(tmp_path: Path) -> None:
    jobs, seen = jobs_for(ENV, [AGENT], episodes=6, seeds=4), list[int]()
    list(run_into(tmp_path, [jobs[2], jobs[1]], command="a", processes=1))
    found = run_into(tmp_path, jobs, command="b", processes=1, on_run=lambda r: seen.append(r.seed))
    assert [r.seed for r in found] == [0, 1, 2, 3]
    assert seen == [0, 3]
    assert [line["seed"] for line in lines(tmp_path)] == [r.seed for r in read_folder(tmp_path).results] == [2, 1, 0, 3]
    with closing(Store(tmp_path)) as store:
        assert store.notes("command") == ["a", "b"]


def test_a_run_killed_again_and_again_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    call = [sys.executable, "-c", "from linmdp.cli import main; main()", "run", "synthetic:S=40,A=3,d=6,H=10"]
    call += [
        "lsvi-ucb:storage=centres,beta=0.1,M=20",
        "-k",
        "150",
        "--seeds",
        "12",
        "--jobs",
        "1",
        "--out",
    ]  # one by one
    calm, hit = tmp_path / "calm", tmp_path / "hit"
    subprocess.run([*call, str(calm)], check=True, capture_output=True)
    there, kills = 0, 0
    for more in (1, 4, 7):  # each time when that many runs are stored
        process = subprocess.Popen([*call, str(hit)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list((hit / "agents").glob("*.safetensors"))) <= more:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait(timeout=600) != 0
        now = len(contents(hit))
        assert now >= max(there, more)
        there = now
    assert kills == 3
    done = subprocess.run([*call, str(hit)], check=True, capture_output=True, text=True)
    assert contents(hit) == contents(calm)
    assert agents(hit) == agents(calm)  # and nothing half-written beside them
    assert len(lines(hit)) == 12
    assert str(hit / "runs.sqlite") in done.stderr


def test_long_curves_are_whole_again_in_lines(tmp_path: Path) -> None:
    K = 2 * POINTS + 1
    (fresh,) = run_into(tmp_path, jobs_for("lock:H=2,A=2", ["random"], episodes=K, seeds=1), command="x")
    assert fresh.regret is not None
    with closing(Store(tmp_path)) as store:
        (back,) = map(whole, store.results())
    assert back.regret is not None
    assert len(back.regret) == len(back.rewards) == K
    np.testing.assert_allclose(back.regret[thinned(K)], fresh.regret[thinned(K)], rtol=1e-6)
    assert back.reward == pytest.approx(fresh.reward, rel=1e-6)
    assert lines(tmp_path)[0]["regret"] == fresh.regret.tolist()  # written by the process that ran it
    (tmp_path / LINES).unlink()
    assert command("table", str(tmp_path), "--jsonl", str(tmp_path / LINES)).status == 0
    np.testing.assert_allclose(lines(tmp_path)[0]["regret"], fresh.regret, rtol=1e-3)


def test_a_folder_made_for_nothing_is_removed(tmp_path: Path) -> None:
    found = run_into(tmp_path / "new", jobs_for(ENV, ["random"], episodes=3, seeds=1), command="x")
    found.close()
    found = run_into(tmp_path / "new", jobs_for(ENV, ["random"], episodes=3, seeds=1), command="x")
    next(found)
    found.close()
    assert len(contents(tmp_path / "new")) == 1  # a run was finished: it stays
    hostile = jobs_for("gym:Taxi-v3,H=9,reward_low=0,reward_high=1", ["random"], episodes=3, seeds=1)
    with pytest.raises(RunStopped, match="must be in"):
        next(run_into(tmp_path / "gone", hostile, command="x"))
    assert not (tmp_path / "gone").exists()


def test_compare_refuses_an_agent_that_is_given_twice(tmp_path: Path) -> None:
    done = command("compare", ENV, AGENT, "random", AGENT, "--out", str(tmp_path / "o"))
    refusal = f"linmdp: Each agent of a comparison must be given once. Got '{AGENT}' twice.\n"
    assert (done.status, done.err) == (2, refusal)
    assert not (tmp_path / "o").exists()


# --- saved agents


def test_the_saved_agent_is_the_one_of_the_run(tmp_path: Path) -> None:
    call = ["run", ENV, AGENT, "-k", "20", "--seeds", "2", "--seed", "3", "--out", str(tmp_path)]
    assert command(*call).status == 0
    env = linmdp.make_env(ENV)
    for number, seed in ((1, 3), (2, 4)):
        mine = linmdp.make_agent(AGENT, env, 20)
        linmdp.run(env, mine, episodes=20, seed=seed)
        for where in (env, env.task, None):
            loaded = linmdp.load_agent(tmp_path, where, number=number)
            for name, array in mine.state_dict().items():
                np.testing.assert_array_equal(loaded.state_dict()[name], array)
    file = next((tmp_path / "agents").iterdir())
    assert linmdp.load_agent(file).updates > 0  # the file names its environment
    with pytest.raises(
        InvalidParameter, match=r"'number' of the run in .* must be given: it has 2 runs, 1 to 2 lsvi-ucb"
    ):
        linmdp.load_agent(tmp_path, env)
    with pytest.raises(InvalidParameter, match="must be left out for a file"):
        linmdp.load_agent(file, env, number=1)


def test_without_a_saved_agent_it_is_trained_again_and_says_so(tmp_path: Path) -> None:
    folder = old(tmp_path / "sweep")
    with pytest.warns(LinMDPWarning, match=f"no saved agent in {folder}: training it again .*seed 0, after 12"):
        agent = linmdp.load_agent(folder, number=1)
    assert agent.updates > 0


def test_a_sweep_saves_its_agents_if_asked(tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text(f'name = "x"\n[[runs]]\nenv = "{ENV}"\nagents = ["lsvi-ucb:beta=1"]\nepisodes = 5\nseeds = 4')
    out = tmp_path / "out"
    assert command("sweep", str(spec), "--save", "--out", str(out), "--jobs", "1").status == 0
    assert len(agents(out)) == 4
    assert linmdp.load_agent(out, number=4).updates == 5 * 3


def test_agents_are_left_out_if_asked(tmp_path: Path) -> None:
    call = ("run", ENV, "lsvi-ucb:beta=1", "-k", "12", "--seeds", "4", "--jobs", "1", "--out", str(tmp_path))
    assert command(*call, "--no-save").status == 0
    assert not (tmp_path / "agents").exists()
    assert len(contents(tmp_path)) == 4


def test_agents_that_cannot_be_saved_run_all_the_same(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    done = command("run", ENV, "sb3-dqn:learning_starts=5", "-k", "4", "--out", str(tmp_path))
    assert (done.status, "warning" in done.err) == (0, False)
    assert not (tmp_path / "agents").exists()


def test_the_key_of_a_run_does_not_depend_on_where_its_agent_goes(tmp_path: Path) -> None:
    (job,) = jobs_for(ENV, [AGENT], episodes=5, seeds=1)
    assert run_key(saving(tmp_path, job)) == run_key(job)
    assert saving(tmp_path, job).save == str(agent_file(tmp_path, run_key(job)))
    assert saving(tmp_path, job._replace(device="cuda")).save is not None, "in lockstep, too"


@pytest.mark.parametrize("key", ["../../x", "", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_a_key_that_is_none_is_no_path(key: str, tmp_path: Path) -> None:
    assert agent_file(tmp_path, key) is None


def test_a_policy_predicts_and_counts_the_steps_itself(tmp_path: Path) -> None:
    env = linmdp.make_env("riverswim:H=6")
    agent = linmdp.make_agent("lsvi-ucb:beta=0.5", env)
    linmdp.run(env, agent, episodes=40)
    agent.save(tmp_path / "agent")
    policy = linmdp.load_policy(tmp_path / "agent", env)
    for episode in range(3):
        observation, _ = env.reset(seed=episode)
        if episode:
            policy.reset()
        for h in range(env.task.H):
            action, state = policy.predict(np.array(observation))
            assert (action, state) == (policy(h, observation), None)
            observation, *_ = env.step(action)
    assert policy.predict(observation) == (policy(0, observation), None)  # as if an episode began
    assert policy.predict(0, episode_start=np.array([True])) == (policy(0, 0), None)


def test_a_folder_that_was_made_for_nothing_goes_and_one_with_notes_stays(tmp_path: Path) -> None:
    for note, stays in ((None, False), ("command", False), ("score", True)):
        folder = tmp_path / f"store-{note}"
        with opened_store(folder) as store:
            if note:
                store.note(note, "a line")
        assert folder.exists() == stays
    with opened_store(tmp_path / "store-score") as store:
        assert store.notes("score") == ["a line"]
