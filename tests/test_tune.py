"""`linmdp tune`: the search finds what is better, judges it with other seeds, and runs nothing twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import linmdp
from command import linmdp as command
from linmdp.results.store import Store
from linmdp.runner.registry import AGENTS
from linmdp.runner.spec import parse_spec
from linmdp.runner.tune import FAILED, FIRST_SEED, Search, Tuned

LOCK = "lock:H=3,A=2"
SIZES: dict[str, Any] = {"episodes": 18, "seeds": 2, "budget": 120}


class Guesser(linmdp.ConstantAgent):
    """Action 1 if beta is 0.1, else action 0; it fails if beta is 0.3."""

    name = "guesser"

    def __init__(self, task: linmdp.Task, *, beta: float = 0.0) -> None:
        super().__init__(task, action=int(beta == 0.1))
        self.beta = beta

    def act(self, h: int, state: Any) -> int:
        if self.beta == 0.3:
            raise linmdp.InvalidData("It has no idea.")
        return super().act(h, state)


def tuned(folder: Path, search: Search) -> Tuned:
    with closing(Store(folder)) as store:
        return search.run(store, processes=1)


def rows(folder: Path) -> dict[str, float]:
    """When each run was finished."""
    with sqlite3.connect(folder / "runs.sqlite") as db:
        return dict(db.execute("SELECT key, finished FROM runs").fetchall())


def test_the_best_is_judged_with_seeds_that_the_search_has_not_seen(tmp_path: Path) -> None:
    found = tuned(tmp_path, Search(LOCK, "lsvi-ucb", **SIZES))
    with closing(Store(tmp_path)) as store:
        runs = list(store.results())
    assert {run.seed for run in runs if run.episodes < 18} == {FIRST_SEED, FIRST_SEED + 1}
    assert [run.seed for run in found.runs[found.best]] == [run.seed for run in found.runs[found.default]] == [0, 1]
    assert {run.episodes for run in runs} == {2, 6, 18}
    assert found.default == (LOCK, "lsvi-ucb")
    searched = sum(run.episodes for run in runs if run.seed >= FIRST_SEED)
    assert searched <= SIZES["budget"]


def test_a_tune_that_was_killed_goes_on_and_runs_nothing_twice(tmp_path: Path) -> None:
    search = Search(LOCK, "lsvi-ucb", **SIZES)
    whole, before = tuned(tmp_path, search), rows(tmp_path)
    with sqlite3.connect(tmp_path / "runs.sqlite") as db:  # as if it had not come further than half of it
        db.execute("DELETE FROM runs WHERE rowid > (SELECT count(*) / 2 FROM runs)")
    kept = rows(tmp_path)
    again = tuned(tmp_path, search)
    assert again.best == whole.best
    assert again.gain == whole.gain
    after = rows(tmp_path)
    assert set(after) == set(before)
    assert {key: after[key] for key in kept} == kept
    tuned(tmp_path, search)
    assert rows(tmp_path) == after


def test_what_is_better_is_found_and_what_fails_is_left_out(tmp_path: Path) -> None:
    with AGENTS.temporarily("guesser", Guesser):
        env = "hypercube:H=3"
        search = Search(env, "guesser", episodes=9, seeds=2, budget=200)
        assert {setting.agent for setting in search.settings} >= {"guesser", "guesser:beta=0.1", "guesser:beta=0.3"}
        with pytest.warns(
            linmdp.LinMDPWarning, match="'hypercube:H=3 guesser:beta=0.3' is left out, since .* to its end"
        ):
            found = tuned(tmp_path, search)
        scores = {
            a: linmdp.compare(env, [a], episodes=9, seeds=2, jobs=1)[0].reward for a in ("guesser", "guesser:beta=0.1")
        }
        assert found.best.agent == max(scores, key=lambda a: scores[a])
        with closing(Store(tmp_path)) as store:
            assert store.notes(FAILED) == [f"{env} guesser:beta=0.3"]


def test_given_parameters_stay_as_they_are() -> None:
    search = Search("gym:CartPole-v1,H=20,features=fourier", "lsvi-ucb:storage=centres,beta=0.5", **SIZES)
    for setting in search.settings:
        assert parse_spec(setting.env)[1]["features"] == "fourier"
        assert parse_spec(setting.agent)[1]["beta"] == 0.5
    assert len(set(search.settings)) == len(search.settings) == SIZES["budget"] // (3 * 2 * 2)


def test_feature_maps_are_tried_where_states_are_not_finite_and_the_agent_asks_for_features() -> None:
    tried = Search("gym:CartPole-v1,H=20", "auto", episodes=18, seeds=2, budget=400).settings
    assert {setting.env for setting in tried} == {"gym:CartPole-v1,H=20"}
    assert len(tried) > 1
    tried = Search("gym:CartPole-v1,H=20", "lsvi-ucb", episodes=18, seeds=2, budget=400).settings
    maps = {parse_spec(setting.env)[1].get("features") for setting in tried}
    assert {None, "auto", "fourier"} <= maps
    lake = Search("gym:FrozenLake-v1,H=20", "lsvi-ucb", **SIZES).settings
    assert {setting.env for setting in lake} == {"gym:FrozenLake-v1,H=20"}


def test_the_command_shows_best_default_and_random(tmp_path: Path) -> None:
    words = ("tune", LOCK, "lsvi-ucb", "--episodes", "18", "--seeds", "2", "--budget", "120", "--jobs", "1")
    done = command(*words, "--out", str(tmp_path))
    assert done.status == 0
    names = [line.split("|")[1].strip() for line in done.out.splitlines() if line.startswith("|")]
    assert names[2:] in (["best", "default", "random"], ["default", "random"])
    assert done.out.splitlines()[-1].startswith(f"try: linmdp run {LOCK} lsvi-ucb")
    assert command(*words, "--out", str(tmp_path)).out == done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((LOCK, "lsvi-ucb", "--budget", "3"), "The 'budget' parameter of tune must be at least 24 here. Got 3."),
        ((LOCK, "lsvi-ucb", "--seeds", "1"), "The 'seeds' parameter of tune must be a whole number >= 2. Got 1."),
        ((LOCK, "lsvi-ucb", "--episodes", "0"), "The 'episodes' parameter of tune must be a whole number >= 1. Got 0."),
        ((LOCK, "q-learning-greedy"), "'q-learning-greedy' has nothing to tune"),
        (("gym:CartPole-v1,H=20", "random"), "'random' has nothing to tune"),
        ((LOCK, "lsvi-ucbb"), "Did you mean 'lsvi-ucb'?"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    sizes = () if "--episodes" in words else ("--episodes", "18")
    done = command("tune", *words, *sizes, "--out", str(tmp_path / "new"))
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "new").exists()
