"""`certified`: how much more was possible, as a wider plan on the same data thinks, in results, tables and verdicts."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.results.store import Store
from linmdp.results.verdict import possible
from test_insured import inner_of, tables_env


@pytest.mark.parametrize("inner", ["random", "optimal", "lsvi-ucb"])
def test_a_certificate_is_above_what_was_missed(inner: str) -> None:
    for seed in range(8):
        env = tables_env(seed, H=2, S=2, start="fixed")
        agent = linmdp.Insured(env.task, inner=inner_of(inner, env), episodes=60, width="tables", mode="balanced")
        result = linmdp.run(env, agent, episodes=60, seed=seed)
        assert result.certified is not None
        assert result.certified >= env.optimum.V[0, 0] - result.rewards[-20:].mean() - 1e-9
        assert result.certified_kind in ("certified (95%, if linear)", "nothing certified")


def test_a_certificate_of_the_cap_says_nothing_and_one_below_it_does() -> None:
    env = tables_env(4, H=1, S=1, A=2, start="fixed")
    found = []
    for episodes in (20, 2000):
        agent = linmdp.Insured(env.task, inner=inner_of("optimal", env), width="tables", mode="balanced")
        found.append(linmdp.run(env, agent, episodes=episodes))
    assert [r.certified_kind for r in found] == ["nothing certified", "certified (95%, if linear)"]
    assert "; nothing certified" in possible(found[:1])
    assert "; certified (95%, if linear): at most 0." in possible(found[1:])


def test_at_a_practical_width_it_is_not_a_proof() -> None:
    env = tables_env(0)
    agent = linmdp.Insured(env.task, inner="random", width=0.1)
    assert linmdp.run(env, agent, episodes=100).certified_kind == "not a proof"
    small = tables_env(4, H=1, S=1, A=2, start="fixed")
    late = linmdp.Insured(small.task, inner="random", width="tables", episodes=1000)
    kinds = [linmdp.run(small, late, episodes=1000).certified_kind for _ in range(2)]
    assert kinds == ["certified (95%, if linear)", "not a proof"]  # the width is for 1000 episodes


@pytest.mark.parametrize(
    "spec", ["lsvi-gp", "lsvi-gp:every=2,budget=10,settled=1", "lsvi-ucb-scouts:budget=5,settled=1"]
)
def test_asking_changes_nothing(spec: str) -> None:
    env = linmdp.make_env("riverswim:H=6")
    agent = linmdp.make_agent(spec, env)
    result = linmdp.run(env, agent, episodes=30)
    before = agent.state_dict()
    found = agent.more_possible()
    assert found is not None
    assert result.certified == pytest.approx(found.gaps.mean())
    for name, array in agent.state_dict().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_plan_of_fewer_steps_than_an_episode_has_says_nothing() -> None:
    env = linmdp.make_env("riverswim:H=6")
    assert linmdp.run(env, linmdp.make_agent("lsvi-gp:levels=5", env), episodes=10).certified is None


def test_it_stands_in_json_in_stores_and_in_verdicts(tmp_path: Path) -> None:
    done = command("run", "riverswim:H=6", "lsvi-gp", "--episodes", "30", "--json", "--out", str(tmp_path))
    printed = json.loads(done.out)
    assert printed["certified_kind"] == "not a proof"
    assert printed["verdict"].count("more an episode is possible (not a proof)") == 1
    with closing(Store(tmp_path)) as store:
        (kept,) = store.results()
    assert kept.certified == pytest.approx(printed["certified"])
    low, high = kept.certified_interval or (np.inf, -np.inf)
    assert low <= printed["certified"] <= high
    plain = json.loads(command("run", "riverswim:H=6", "random", "--episodes", "3", "--json").out)
    assert plain["certified"] is None


def test_a_learner_says_it_too() -> None:
    learner = linmdp.Learner("riverswim:H=6", "lsvi-gp").learn(episodes=30)
    assert "possible (not a proof)" in learner.verdict


def test_no_more_is_possible_than_the_optimum_in_the_same_line() -> None:
    env = linmdp.make_env("lock:H=5")
    result = linmdp.run(env, linmdp.make_agent("auto:beta=0.02", env), episodes=60)
    assert result.optimal_return is not None
    assert result.certified is not None
    assert result.certified > 1 > result.optimal_return - result.rewards[-20:].mean()
    assert result.verdict.endswith("optimal 1; no more seems possible (not a proof)")
    swim = linmdp.make_env("riverswim:H=6")
    words = linmdp.run(swim, linmdp.make_agent("lsvi-gp", swim), episodes=30).verdict
    earned, best, more = (float(re.search(rf"{name} ([\d.]+)", words)[1]) for name in ("tell:", "optimal", "perhaps"))  # type: ignore[index]
    assert more == pytest.approx(best - earned, abs=1e-3)
