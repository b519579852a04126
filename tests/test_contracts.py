"""What every agent owes, on every environment."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.base import Agent
from linmdp.runner.registry import AGENTS
from linmdp.runner.spec import written_spec
from linmdp.testing.agents import (
    LARGE,
    Case,
    check_copy,
    check_damaged,
    check_nbytes,
    check_parameters,
    check_policy,
    check_run,
    check_same_seed,
    check_saved,
    play_for,
)

ENVS = (
    "synthetic:S=12,A=3,d=4,H=5",
    "synthetic:S=12,A=3,d=4,H=5,start=uniform",
    "synthetic:S=12,A=3,d=4,H=5,start=adversarial",
    "hypercube:d=3,H=4",
    "lock:H=4,A=3",
    "riverswim:H=6",
    "sensor:H=5",
    "inventory:H=5,capacity=3",
    "drift:S=12,A=3,d=4,H=5,every=7,start=adversarial",
    "gym:FrozenLake-v1,H=12",
    "linearized:model=phoenix,mode=model,H=4,anchors=8",
)
SPECS: tuple[str, ...] = (
    "lsvi-ucb",
    "lsvi-ucb:beta=published,cap=H,ties=first",
    "lsvi-ucb:beta=theory",
    "lsvi-ucb:lam=0.1,storage=features",
    "lsvi-ucb:lam=0.1,storage=states,dtype=float32",
    "lsvi-ucb:lam=0.1,dtype=float32",
    "lsvi-ucb-fixed:rho=0.6",
    "lsvi-ucb-fixed:rho=0.6,storage=features",
    "lsvi-ucb-adaptive:rho=0.7,budget=0.6,m=3",
    "lsvi-ucb-adaptive:rho=0.7,budget=5,m=3,tau_rel=0.05,storage=states",
    "lsvi-ucb-adaptive:rho=0.7,m=2,proxy=phase,tau_c=0.01,storage=features",
    "lsvi-ucb:storage=centres,lam=0.1,M=4",
    "lsvi-ucb:storage=centres,beta=0.1,M=4",
    "lsvi-ucb:storage=centres,lam=0.1,stationary=true,M=20",
    "lsvi-ucb:storage=centres,lam=0.1,stationary=true,discount=0.9,M=20",
    "lsvi-ucb:beta=0.1",
    "lsvi-ucb:lam=0.1,stationary=true",
    "lsvi-ucb:lam=0.1,stationary=true,discount=0.8,storage=features,dtype=float32",
    "lsvi-ucb-fixed:rho=0.6,stationary=true,storage=states",
    "lsvi-ucb-adaptive:rho=0.7,budget=0.6,m=3,stationary=true",
    "lsvi-ucb:storage=centres,lam=0.1,M=5,replan=0,dtype=float32",
    "lsvi-ucb-fixed:rho=0.6,storage=centres,M=5",
    "lsvi-ucb-adaptive:rho=0.7,budget=0.6,m=3,storage=centres,M=5",
    "lsvi-ucb:storage=states,stationary=false",
    "lsvi-ucb-fixed:lam=auto,rho=0.6",
    "lsvi-ucb-rare-switch:eta=2,beta=0.1,storage=states",
    "lsvi-ucb-rare-switch:stationary=true",
    "lsvi-ucb-rare-switch:storage=centres,M=6,growth=0.5",
    "q-learning",
    "q-learning:stationary=true,c=0.1",
    "q-learning-greedy",
    "q-learning-greedy:epsilon=0.3,alpha=0,stationary=true,discount=0.9",
    "random",
    "constant:action=1",
    "optimal",
)
named = {spec.partition(":")[0] for spec in SPECS}
declared = tuple(
    written_spec(name, parameters)
    for name, cls in AGENTS.items()
    if name not in named or "test_parameters" in vars(cls)
    for parameters in cls.test_parameters
)
SPECS = tuple(dict.fromkeys((*SPECS, *declared)))
"""Those of old, and those that a class names itself: a new agent is under contract without a line here."""

every_agent = pytest.mark.parametrize("spec", SPECS)
in_turn = pytest.mark.parametrize(
    ("env_spec", "spec"),
    [
        pytest.param(env_spec, spec, marks=[pytest.mark.slow] if (i + k) % 3 else [])
        for i, env_spec in enumerate(ENVS)
        for k, spec in enumerate(SPECS)
    ],
)
"""Every agent on a third of the environments, each on another third than its neighbours; the others are slow."""


pytestmark = pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")


def case_of(env_spec: str, spec: str, episodes: int = 40) -> Case:
    if env_spec.startswith("gym") and spec == "optimal":
        pytest.skip("no model, no optimum")
    if spec.startswith("ucrl-vtr") and not env_spec.startswith("drift"):
        if not env_spec.startswith("synthetic:S"):
            pytest.skip("no base models")
        env_spec = env_spec.replace("synthetic:", "drift:")  # it is the first of two, which are offered
    return Case(lambda: linmdp.make_env(env_spec), lambda env: linmdp.make_agent(spec, env, episodes=episodes))


def make(env_spec: str, spec: str, episodes: int = 40) -> tuple[Any, Agent]:
    return case_of(env_spec, spec, episodes).fresh()


def test_every_agent_is_under_contract() -> None:
    assert {spec.partition(":")[0] for spec in SPECS} == set(AGENTS)


@in_turn
def test_runs_and_reports(env_spec: str, spec: str) -> None:
    check_run(case_of(env_spec, spec))


@in_turn
def test_the_same_seed_gives_the_same_run(env_spec: str, spec: str) -> None:
    check_same_seed(case_of(env_spec, spec))


@in_turn
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(env_spec: str, spec: str) -> None:
    check_saved(case_of(env_spec, spec))


@every_agent
def test_a_copy_goes_its_own_way(spec: str) -> None:
    check_copy(case_of(ENVS[0], spec))


@every_agent
def test_a_copy_in_another_process_goes_its_own_way(spec: str) -> None:
    """Agents travel to the processes of --jobs as joblib sends them."""
    env, agent = case_of(ENVS[0], spec).fresh()
    play_for(env, agent, 9)
    before = [agent.q_values(0, s).copy() for s in range(12)]
    play_for(env, pickle.loads(pickle.dumps(agent)), 5)
    np.testing.assert_array_equal([agent.q_values(0, s) for s in range(12)], before)


@in_turn
def test_policy_q_values_and_actions_agree(env_spec: str, spec: str) -> None:
    check_policy(case_of(env_spec, spec))


@every_agent
def test_nbytes_is_what_the_agent_allocates(spec: str) -> None:
    check_nbytes(case_of(LARGE, spec))


@every_agent
def test_a_damaged_state_is_refused_and_changes_nothing(spec: str) -> None:
    check_damaged(case_of(ENVS[0], spec))


@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith("lsvi-gp")])
def test_transitions_grow_up_to_a_bound(spec: str) -> None:
    env, agent = make(ENVS[0], spec, episodes=400)
    bound = agent.bytes_after(10**6)
    play_for(env, agent, 60)
    assert agent.nbytes <= agent.bytes_after(60) <= bound == agent.bytes_after(10**9)


@pytest.mark.parametrize("spec", [s for s in SPECS if "storage" not in s and not s.startswith("lsvi-gp")])
def test_counts_do_not_grow_with_the_episodes(spec: str) -> None:
    env, agent = make(ENVS[0], spec, episodes=400)
    before, most = agent.nbytes, agent.bytes_after(400)
    play_for(env, agent, 60)
    assert agent.nbytes == before
    play_for(env, agent, 60)
    assert agent.nbytes <= most


@pytest.mark.parametrize("cls", AGENTS.values(), ids=AGENTS)
def test_parameters_are_keyword_only_and_kept_verbatim(cls: type[Agent]) -> None:
    if cls not in (linmdp.OptimalAgent, linmdp.UCRLVTR):  # which are told Q and base models
        check_parameters(cls)


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ("random", "must have agent='lsvi-ucb-fixed', as this one. Got 'random'"),
        ("lsvi-ucb-fixed:rho=0.6", "must have rho=0.75"),
        ("lsvi-ucb-fixed:storage=features", "must have storage='auto'"),
        ("lsvi-ucb-fixed:lam=7", "must have lam=0.1"),
    ],
)
def test_a_state_of_another_agent_is_refused(saved: str, words: str) -> None:
    env, fixed = make(ENVS[0], "lsvi-ucb-fixed")
    play_for(env, fixed, 5)
    before = fixed.state_dict()
    with pytest.raises(linmdp.InvalidData, match=words):
        fixed.load_state_dict(make(ENVS[0], saved)[1].state_dict())
    assert_same_state(fixed.state_dict(), before)


def assert_same_state(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize("spec", [s for s in SPECS if s.startswith("lsvi")])
@pytest.mark.parametrize(
    ("step", "words"),
    [
        ((1, 0, 0, 0.5, 1, False), "Steps must be observed in order"),
        ((0, 0, 5, 0.5, 1, False), r"The action must be in \[0, 2\]"),
        ((0, 0, -1, 0.5, 1, False), r"The action must be in \[0, 2\]"),
        ((0, 0, 0, float("nan"), 1, False), r"The reward of step 0 must be in \[0, 1\]"),
        ((0, 0, 0, 99.0, 1, False), r"The reward of step 0 must be in \[0, 1\]"),
    ],
)
def test_an_agent_refuses_observations_that_make_no_sense(spec: str, step: tuple[Any, ...], words: str) -> None:
    _, agent = make(ENVS[0], spec)
    with pytest.raises(linmdp.InvalidData, match=r"begin_episode\(\)"):
        agent.observe(0, 0, 0, 0.5, 1, False)
    agent.begin_episode()
    with pytest.raises(linmdp.InvalidData, match=words):
        agent.observe(*step)
    agent.observe(0, 0, 0, 0.5, 1, False)
    with pytest.raises(linmdp.InvalidData, match="Got step 0, expected step 1"):
        agent.observe(0, 0, 0, 0.5, 1, False)
