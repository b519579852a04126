"""Agents with tables, UCBVI, PSRL, UCRL2 and LSVI-UCB++: each is its literal transcription, and learns."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp import PSRL, UCBVI, UCRL2, UCRLVTR, LSVIUCBPlusPlus, Task
from linmdp.agents.tabular.ucrl2 import favourable
from linmdp.types import Array
from reference_family import ReferencePlusPlus, ReferencePSRL, ReferenceUCBVI, ReferenceUCRL2, ReferenceVTR
from test_agents_against_reference import assert_same, many, runs, tasks

Parameters = dict[str, Any]
widths = st.sampled_from((0.0, 0.003, 0.05, 0.4, 1.0))


@many
@given(
    task=tasks(),
    run=runs,
    c=widths,
    delta=st.floats(0.01, 0.9),
    bonus=st.sampled_from(("hoeffding", "bernstein")),
    stationary=st.booleans(),
)
def test_ucbvi_is_its_paper(task: Task, run: Parameters, c: float, delta: float, bonus: str, stationary: bool) -> None:
    own: Parameters = {"c": c, "delta": delta, "bonus": bonus, "stationary": stationary}
    fast = UCBVI(task, episodes=run["episodes"], **own)
    # a variance of zero that rounding makes 1e-17 is 1e-8 in its root
    assert_same(fast, ReferenceUCBVI(task, K=run["episodes"], **own), task, **run, tolerance=1e-6)


@many
@given(task=tasks(), run=runs, c=widths, delta=st.floats(0.01, 0.9), stationary=st.booleans())
def test_ucrl2_is_its_paper(task: Task, run: Parameters, c: float, delta: float, stationary: bool) -> None:
    own: Parameters = {"c": c, "delta": delta, "stationary": stationary}
    fast = UCRL2(task, episodes=run["episodes"], **own)
    assert_same(fast, ReferenceUCRL2(task, K=run["episodes"], **own), task, **run)


@many
@given(task=tasks(), run=runs, prior=st.floats(0.1, 5.0), stationary=st.booleans())
def test_psrl_is_its_paper(task: Task, run: Parameters, prior: float, stationary: bool) -> None:
    own: Parameters = {"prior": prior, "stationary": stationary}
    assert_same(PSRL(task, **own), ReferencePSRL(task, K=1, **own), task, **run)


@many
@given(task=tasks(), run=runs, beta=st.floats(0.0, 3.0), lam=st.floats(0.01, 2.0), theory=st.booleans())
def test_plusplus_is_its_paper(task: Task, run: Parameters, beta: float, lam: float, theory: bool) -> None:
    lam *= 1 + np.pi * 1e-6  # away from determinants that are exactly doubled
    own: Parameters = {"constants": "theory" if theory else "practical", "beta": None if theory else beta, "lam": lam}
    fast = LSVIUCBPlusPlus(task, episodes=run["episodes"], **own)
    slow = ReferencePlusPlus(task, K=run["episodes"], delta=0.1, **own)
    assert_same(fast, slow, task, **run, tolerance=1e-6)
    for h in range(task.H):
        np.testing.assert_allclose(fast._Sigma[h], slow.matrix(h), rtol=1e-6)
        np.testing.assert_allclose(fast._low[h], slow.lower[h], atol=1e-6)


class Known(NamedTuple):
    """A base model as arrays, r (H, S, A) and P (H, S, A, S)."""

    r: Array
    P: Array

    def q(self, h: int, V: Array) -> Array:
        found: Array = (self.r[h] + self.P[h] @ V).T
        return found

    def value(self, h: int, state: int, action: int, V: Array) -> float:
        return float(self.r[h, state, action] + self.P[h, state, action] @ V)


@many
@given(
    task=tasks(),
    run=runs,
    J=st.integers(1, 4),
    own=st.fixed_dictionaries(
        {
            "c": widths,
            "lam": st.sampled_from((None, 0.05, 2.0)),
            "W": st.sampled_from((None, 1, 3, 10)),
            "delta": st.floats(0.01, 0.9),
        }
    ),
)
def test_ucrl_vtr_is_its_paper(task: Task, run: Parameters, J: int, own: Parameters) -> None:
    rng, S = np.random.default_rng(run["seed"]), task.S or 0
    r, P = rng.random((J, task.H, S, task.A)), rng.dirichlet(np.ones(S), size=(J, task.H, S, task.A))
    known = replace(task, base_models=tuple(Known(*pair) for pair in zip(r, P, strict=True)))
    assert_same(UCRLVTR(known, **own), ReferenceVTR(task, r=r, P=P, **own), task, **run, tolerance=1e-6)


def test_ucrl_vtr_finds_the_weights_of_a_mixture() -> None:
    env = linmdp.make_env("drift:base=riverswim,kind=drift,every=1000000,S=4,H=8")
    agent = UCRLVTR(env.task)
    result = linmdp.run(env, agent, episodes=200, seed=0)
    random = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=200, seed=0)
    assert result.final_regret < 0.1 * random.final_regret  # type: ignore[operator]
    assert agent.nbytes < 8 * (4 * 2 * 8 + 9 * 4 + 2 * 2 + 2 + 8) + 1
    with pytest.raises(linmdp.InvalidParameter, match="needs a task that offers base models"):
        linmdp.make_agent("ucrl-vtr", linmdp.make_env("riverswim"))


def test_noisy_samples_count_less() -> None:
    """In state 0 one action leads to state 2, which pays nothing, the other there or to state 1, which always pays."""
    rng, features = np.random.default_rng(0), linmdp.one_hot(3, 2)
    agent = LSVIUCBPlusPlus(Task(S=3, A=2, d=6, H=20, reward_range=(0.0, 1.0), features=features), beta=0.1)
    for _ in range(200):
        agent.begin_episode()
        state = 0
        for h in range(20):
            action, gamble = int(rng.integers(2)), int(rng.integers(1, 3))
            after = state or (gamble if action else 2)
            agent.observe(h, state, action, float(state == 1), after, False)
            state = after
        agent.end_episode()
    agent.begin_episode()
    certain, noisy = (agent._deviation(0, features.phi(0)[a]) for a in range(2))
    assert noisy == pytest.approx(19 / 2, rel=0.1)  # of 0 or 19, each with the same chance
    assert certain < noisy / 3


@given(
    p=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    radius=st.floats(0.0, 2.5),
    seed=st.integers(0, 1000),
)
def test_no_distribution_in_reach_is_better_than_the_favourable_one(p: list[float], radius: float, seed: int) -> None:
    rng, P = np.random.default_rng(seed), np.array(p) / sum(p)
    V = np.sort(rng.random(len(P)))
    best = favourable(P, np.array(radius))
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1.0)
    assert np.abs(best - P).sum() <= radius + 1e-9
    for other in rng.dirichlet(np.ones(len(P)), size=50):
        step = min(1.0, radius / max(float(np.abs(other - P).sum()), 1e-12))
        assert (P + step * (other - P)) @ V <= best @ V + 1e-9


@pytest.mark.parametrize("agent", ["ucbvi", "ucbvi:bonus=hoeffding", "psrl", "ucrl2", "lsvi-ucb++"])
def test_each_solves_riverswim_without_a_parameter(agent: str) -> None:
    env = linmdp.make_env("riverswim:S=4,H=12")
    result = linmdp.run(env, linmdp.make_agent(agent, env, episodes=1500), episodes=1500, seed=0)
    assert result.regret is not None
    random = linmdp.run(env, linmdp.make_agent("random", env), episodes=10, seed=0).final_regret
    assert random is not None
    assert result.regret[-1] - result.regret[-101] < 0.3 * 100 * random / 10


def test_ucrl2_switches_rarely() -> None:
    env = linmdp.make_env("riverswim")
    result = linmdp.run(env, linmdp.make_agent("ucrl2", env, episodes=500), episodes=500, seed=0)
    assert 5 < result.switches < 12 * (1 + np.log2(500 * 20))


@pytest.mark.parametrize("agent", ["ucbvi", "psrl", "ucrl2", "lsvi-ucb++"])
def test_continuous_states_are_refused(agent: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=f"{re.escape(agent)} needs finite states"):
        linmdp.make_agent(agent, linmdp.make_env("gym:MountainCar-v0,H=9"))


@pytest.mark.parametrize(
    "spec", ["ucbvi:bonus=none", "ucbvi:c=-1", "ucrl2:delta=0", "psrl:prior=0", "psrl:stationary=7"]
)
def test_bad_parameters_are_named(spec: str) -> None:
    name, _, rest = spec.partition(":")
    with pytest.raises(linmdp.InvalidParameter, match=f"'{rest.partition('=')[0]}' parameter of {name}"):
        linmdp.make_agent(spec, linmdp.make_env("riverswim"))
