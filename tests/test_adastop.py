"""`--seeds auto`: how often it is wrong, how soon it knows, and what commands make of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.report.html import write_report
from linmdp.report.section_data import sections_of
from linmdp.results.run_folder import opened_folder
from linmdp.results.stats import GROUP, GROUPS, WRONG, AdaStop, aggregate, improvement
from linmdp.types import Array

Draw = Callable[[np.random.Generator], Array]
DRAWS: dict[str, Draw] = {
    "normal": lambda rng: rng.normal(size=GROUP),
    "skewed": lambda rng: rng.exponential(size=GROUP),
    "won or lost": lambda rng: (rng.random(GROUP) < 0.5).astype(np.float64),
    "all the same": lambda rng: np.ones(GROUP),
}
RUNS, PERMUTATIONS = 600, 500


def after_all(agents: str, draw: Callable[[str], Array], permutations: int = PERMUTATIONS) -> AdaStop:
    test = AdaStop(agents, permutations=permutations)
    while test.wanted:
        test.add({agent: draw(agent) for agent in test.wanted})
    return test


@pytest.mark.parametrize("agents", ["ab", "abcd"])
@pytest.mark.parametrize("name", DRAWS)
def test_agents_that_are_the_same_are_told_apart_no_more_often_than_allowed(name: str, agents: str) -> None:
    rng = np.random.default_rng(0)
    wrong = np.mean([bool(after_all(agents, lambda _: DRAWS[name](rng)).decided) for _ in range(RUNS)])
    assert wrong <= WRONG + 3 * np.sqrt(WRONG * (1 - WRONG) / RUNS)


def test_beside_agents_that_differ_the_same_ones_are_told_apart_no_more_often() -> None:
    rng, at, wrong = np.random.default_rng(0), {"a": 9.0, "b": -9.0}, 0
    for _ in range(300):
        test = after_all("abcde", lambda agent: rng.normal(size=GROUP) + at.get(agent, 0.0))
        assert len([pair for pair in test.decided if set(pair) & set("ab")]) == 7
        wrong += any(set(pair) <= set("cde") for pair in test.decided)
    assert wrong / 300 <= WRONG + 3 * np.sqrt(WRONG * (1 - WRONG) / 300)


@pytest.mark.parametrize(("gap", "power", "seeds"), [(1.0, 0.85, 20), (2.0, 0.98, 12), (20.0, 1.0, 5.5)])
def test_a_gap_is_found_the_sooner_the_larger_it_is(gap: float, power: float, seeds: float) -> None:
    rng = np.random.default_rng(0)
    tests = [after_all("ab", lambda agent: rng.normal(size=GROUP) + gap * (agent == "a"), 10_000) for _ in range(100)]
    assert np.mean([bool(test.decided) for test in tests]) >= power
    assert np.mean([test.seeds for test in tests]) <= seeds
    assert all(("b", "a") not in test.decided for test in tests)


def test_who_is_decided_against_all_others_gets_no_more_seeds() -> None:
    rng, test = np.random.default_rng(0), AdaStop("abc")
    test.add({agent: rng.normal(size=GROUP) + 50 * (agent == "c") for agent in "abc"})
    assert test.wanted == ["a", "b"]
    assert dict(test.decided) == {("c", "a"): GROUP, ("c", "b"): GROUP}


def seeds_of(found: Sequence[linmdp.RunResult], agent: str) -> list[int]:
    return [r.seed for r in found if r.agent == agent]


def test_a_comparison_runs_as_many_seeds_as_it_needs() -> None:
    agents = ["lsvi-ucb:beta=1,lam=1", "random", "lsvi-ucb:beta=1.0,lam=1"]
    found = linmdp.compare("lock:H=5", agents, episodes=60, seeds="auto", seed=3, jobs=1, verdict=False)
    assert seeds_of(found, "random") == seeds_of(found, "optimal") == list(range(3, 8))
    assert seeds_of(found, agents[0]) == seeds_of(found, agents[2]) == list(range(3, 3 + GROUP * GROUPS))
    assert len(found.decisions) == 4
    assert "LSVI-UCB (beta=1, lam=1) has less regret than random: decided by 5 seeds." in found.decisions
    assert found.decisions[2].endswith("are not told apart by 25 seeds.")
    assert str(found).endswith(found.decisions[-1])
    plain = linmdp.compare("lock:H=5", agents[0], episodes=60, seeds=8, jobs=1, verdict=False)
    auto = {r.seed: r.final_regret for r in found if r.agent == agents[0]}
    assert all(auto[r.seed] == r.final_regret for r in plain if r.agent == agents[0] and r.seed >= 3)


def test_the_command_goes_on_from_what_is_stored_and_decides_the_same(tmp_path: Path) -> None:
    what = ("compare", "lock:H=5", "lsvi-ucb:beta=1,lam=1", "q-learning", "-k", "60", "--seeds", "auto", "-j", "1")
    first = command(*what, "--out", str(tmp_path), "--json")
    again = command(*what, "--out", str(tmp_path))
    assert first.status == again.status == 0
    runs = [json.loads(line) for line in first.out.splitlines()]
    assert len(runs) in {2 * n * GROUP + 2 * GROUP for n in range(1, GROUPS + 1)}
    assert "(AdaStop)" in again.out
    assert "(AdaStop)" in (tmp_path / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["q-learning", "--seeds", "auto"], "'auto' compares two or more"),
        (["q-learning", "random", "--seeds", "many"], "'seeds' parameter of compare must be a whole number"),
        (["q-learning", "random", "--seeds", "0"], "'seeds' parameter of compare must be a whole number"),
    ],
)
def test_what_cannot_be_decided_is_refused_in_one_line(arguments: list[str], words: str) -> None:
    done = command("compare", "lock:H=4", *arguments, "-k", "3")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert words in done.err


def test_tables_say_the_middle_of_the_runs_and_who_beats_whom() -> None:
    found = linmdp.compare("lock:H=5", ["lsvi-ucb:beta=1,lam=1", "q-learning"], episodes=60, seeds=6, jobs=1)
    ours, theirs = (np.array([r.final_regret for r in found if r.agent == s.agent]) for s in found.summaries[:2])
    middle, often = aggregate(ours[:, None]), improvement(-theirs[:, None], -ours[:, None])
    assert f"IQM of the regret: LSVI-UCB (beta=1, lam=1) {middle.mean:.3g} [" in str(found)
    assert f"q-learning is better than LSVI-UCB (beta=1, lam=1) in {often.mean:.2f}" in str(found)
    few = linmdp.compare("lock:H=5", ["lsvi-ucb:beta=1,lam=1", "q-learning"], episodes=20, seeds=3, jobs=1)
    assert "IQM" not in str(few)  # of three runs it is the mean


def test_a_report_has_the_share_of_runs_that_are_better_than_each_value(tmp_path: Path) -> None:
    what = ("lock:H=5", "lsvi-ucb:beta=1,lam=1", "q-learning", "-k", "60", "--seeds", "6", "-j", "1")
    assert command("compare", *what, "--out", str(tmp_path)).status == 0
    with opened_folder(tmp_path) as folder:
        (section,) = sections_of(folder.results, folder.read)
    assert list(section.profiles) == ["lsvi-ucb:beta=1,lam=1", "q-learning"]
    for summary in section.learners:
        curve = section.profiles[summary.agent]
        assert curve.mean.tolist() == [np.mean(summary.scores > -x) for x in curve.episode]
        assert (curve.low <= curve.mean).all()
        assert (curve.mean <= curve.high).all()
    assert '"profile":[{"agent":0' in (write_report(tmp_path).page).read_text()
