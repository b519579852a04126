"""A conservative start: whatever the learner does, no more is lost than was allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.envs.planning import policy_value
from test_insured import tables_env
from test_learner import Doors

LAKE = "gym:FrozenLake-v1,is_slippery=false,H=30"
PATH = {0: 1, 4: 1, 8: 2, 9: 1, 13: 2, 14: 2}


class Worst(linmdp.RandomAgent):
    """Learns nothing, and plays the action that it is told is worst."""

    name = "worst"

    def __init__(self, task: linmdp.Task, *, Q: Any) -> None:
        super().__init__(task)
        self._Q = Q

    def q_values(self, h: int, state: Any) -> Any:
        return -self._Q[h, state]

    def act(self, h: int, state: Any) -> int:
        return int(self._Q[h, state].argmin())

    def policy(self, h: int) -> Any:
        return self._Q[h].argmin(axis=1)


def played(env: Any, agent: Any, episodes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Who played each episode (1: the baseline), and what it earned."""
    agent.rng, who, earned = np.random.default_rng(seed), list[int](), list[float]()
    for k in range(episodes):
        agent.begin_episode()
        who.append(agent._plays)
        state, _ = env.reset(seed=seed if k == 0 else None)
        earned.append(0.0)
        for h in range(env.task.H):
            action = agent.act_within(h, state, None)
            after, reward, ended, _, _ = env.step(action)
            agent.observe(h, state, action, float(reward), after, ended)
            state, earned[-1] = after, earned[-1] + float(reward)
            if ended:
                break
        agent.end_episode()
    return np.array(who), np.array(earned)


def inner_of(name: str, env: Any) -> Any:
    return Worst(env.task, Q=env.optimum.Q) if name == "worst" else name


INNER = ("worst", "random", "constant", "lsvi-ucb:beta=0.1;lam=1", "auto")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    inner=st.sampled_from(INNER),
    rule=st.sampled_from(({"below": 0.1}, {"below": 0.6}, {"alpha": 0.05}, {"alpha": 0.3}, {"alpha": 0.0})),
)
def test_with_a_known_value_the_learner_never_loses_more_than_allowed(
    seed: int, inner: str, rule: dict[str, Any]
) -> None:
    """After every episode, for every learner and draw of the task: no probability is in it."""
    env = tables_env(seed)
    actions = np.random.default_rng(seed).integers(2, size=3)
    b = float(policy_value(env.model, lambda _: actions)[0].mean())
    agent: Any = linmdp.Conservative(
        env.task, inner=inner_of(inner, env), baseline=lambda s: actions[s], value=b, **rule
    )
    who, earned = played(env, agent, 60, seed % 1000)
    k, mine = np.arange(1, 61), who == 0
    allowed = rule["below"] if "below" in rule else rule["alpha"] * b
    assert (np.cumsum(earned * mine) - b * np.cumsum(mine) >= -allowed * k - 1e-9).all()
    assert agent.turns == (mine.sum(), 60 - mine.sum())


@pytest.mark.parametrize("inner", INNER)
def test_where_the_baseline_knows_no_chance_the_return_is_never_below_its_share(inner: str) -> None:
    """Its value is read off its own episodes, with bounds; what it earns each time is 1."""
    env: Any = linmdp.make_env(LAKE)
    learner = inner if inner != "worst" else "constant"  # which never leaves the start
    agent: Any = linmdp.Conservative(env.task, inner=learner, baseline=lambda s: PATH.get(s, 0), alpha=0.2, least=0.0)
    _, earned = played(env, agent, 300, 1)
    assert (np.cumsum(earned) >= 0.8 * np.arange(1, 301) - 1e-9).all()
    assert agent.turns[0] > 20  # and yet it may try


def test_with_bounds_from_its_own_episodes_it_holds_in_nearly_all_runs() -> None:
    kept = list[bool]()
    for seed in range(200):
        env = tables_env(seed)
        actions = np.random.default_rng(seed).integers(2, size=3)
        b = float(policy_value(env.model, [actions, actions, actions].__getitem__)[0].mean())
        agent: Any = linmdp.Conservative(
            env.task, inner=inner_of("worst", env), baseline=actions.__getitem__, below=0.3
        )
        who, earned = played(env, agent, 150, seed)
        mine = who == 0
        kept.append(bool((np.cumsum(earned * mine) - b * np.cumsum(mine) >= -0.3 * np.arange(1, 151) - 1e-9).all()))
    assert sum(kept) >= 190


def test_a_learner_that_is_better_ends_up_playing_and_one_that_is_not_does_not() -> None:
    env: Any = linmdp.make_env("riverswim:H=12")
    value = float(policy_value(env.model, lambda h: np.zeros(6, dtype=int))[0][0])
    share = {}
    for inner in ("lsvi-ucb", "random"):
        agent: Any = linmdp.Conservative(env.task, inner=inner, baseline="constant:action=0", value=value, alpha=0.1)
        who, _ = played(env, agent, 600, 0)
        share[inner] = float(np.mean(who[-100:] == 0))
    assert share["lsvi-ucb"] == 1
    assert share["random"] < 0.5


@pytest.mark.parametrize("kind", ["file", "agent", "learner"])
def test_a_saved_agent_and_whatever_predicts_may_be_the_baseline(kind: str, tmp_path: Path) -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=30)
    first = linmdp.Learner(env, "lsvi-ucb").learn(80)
    assert first.evaluate(1).mean == 1
    given: Any = first if kind == "learner" else first.agent
    if kind == "file":
        given = str(tmp_path / "first.safetensors")
        first.agent.save(given)
    if kind == "agent":
        second = linmdp.Learner(env, linmdp.Conservative)
        agent = linmdp.Conservative(second.task, inner="random", baseline=_of_task(first, second.task), value=1.0)
        _, earned = played(second._task_env, agent, 20, 0)
        assert earned.mean() >= 0.9
        return
    second = linmdp.Learner(env, "conservative", inner="random", baseline=given, value=1.0).learn(20)
    assert np.mean(second.returns) >= 0.9
    if kind == "file":
        second.save(tmp_path / "second.safetensors")
        again = linmdp.Learner.load(tmp_path / "second.safetensors", env)
        assert again.learn(5).returns == second.learn(5).returns


def _of_task(learner: linmdp.Learner, task: linmdp.Task) -> linmdp.Agent:
    made = linmdp.LSVIUCB(task)
    made.load_state_dict(learner.agent.state_dict())
    return made


def test_the_command_line_takes_it() -> None:
    env = linmdp.make_env("riverswim:H=8")
    agent = linmdp.make_agent("conservative:inner=lsvi-ucb:beta=0.1;lam=1,baseline=constant:action=1,below=0.1", env)
    result = linmdp.run(env, agent, episodes=30)
    assert result.regret is not None
    assert result.diagnostics["n_A"] + result.diagnostics["n_B"] == 30


def test_neither_of_them_does_what_a_mask_forbids() -> None:
    doors = Doors()
    rule: dict[str, Any] = {"inner": "lsvi-ucb", "baseline": "constant:action=2", "value": 2.0, "below": 0.5}
    learner: Any = linmdp.Learner(TimeLimit(doors, 20), "conservative", **rule).learn(40)
    assert min(learner.agent.turns) > 0
    assert doors.violations == 0


def test_a_log_teaches_and_counts_for_nobody() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=30)
    names = ("observations", "actions", "rewards", "terminations", "next_observations")
    right: Any = (
        [0, 4, 8, 9, 13, 14],
        [1, 1, 2, 1, 2, 2],
        [0, 0, 0, 0, 0, 1],
        [False] * 5 + [True],
        [4, 8, 9, 13, 14, 15],
    )
    log = {name: column * 30 for name, column in zip(names, right, strict=True)}
    rule: dict[str, Any] = {"inner": "lsvi-ucb", "baseline": lambda s: PATH.get(s, 0), "value": 1.0, "alpha": 0.2}
    learner: Any = linmdp.Learner(env, "conservative", **rule).learn_from(log)
    assert learner.agent.turns == (0, 0)
    learner.learn(50)
    assert sum(learner.agent.turns) == 50
    assert (np.cumsum(learner.returns) >= 0.8 * np.arange(1, 51) - 1e-9).all()


def test_where_nobody_could_say_whose_an_episode_is_it_is_refused() -> None:
    with pytest.raises(linmdp.InvalidParameter, match="'env' parameter of Learner must be one environment, and not"):
        linmdp.Learner(gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync"), "conservative")
    env: Any = linmdp.make_env(LAKE)
    with pytest.raises(linmdp.InvalidParameter, match="'agent' parameter of Late must be"):
        linmdp.Late(linmdp.Conservative(env.task))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"below": -1.0}, "'below' parameter of conservative must be"),
        ({"alpha": "much"}, "'alpha' parameter of conservative must be"),
        ({"value": -3.0}, "'value' parameter of conservative must be"),
        ({"baseline": 7}, "'baseline' parameter of conservative must be a spec, an agent"),
        ({"baseline": "function"}, "'baseline' parameter of conservative must be an agent or its file"),
        ({"baseline": "optimal"}, "'baseline' parameter of conservative must be an agent, or the spec"),
        ({"baseline": "nobody.safetensors"}, "nobody.safetensors"),
        ({"baseline": lambda s: 9}, "'baseline' parameter of conservative must be a policy whose actions are 0 to 1"),
        ({"inner": "conservative"}, "'inner' parameter of conservative must be"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(parameters: dict[str, Any], words: str) -> None:
    env: Any = tables_env(0)
    with pytest.raises(linmdp.LinMDPError, match=words) as found:
        linmdp.run(env, linmdp.Conservative(env.task, **parameters), episodes=1)
    assert "\n" not in str(found.value)
