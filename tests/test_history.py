"""History: what was seen and done lately, as one observation, wherever an environment is played or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, TimeLimit, TransformObservation

import linmdp
from linmdp.envs.raw import RawEpisodes

NUMBERS = spaces.Box(-5, 5, (2,), np.float32)


class Recall(gymnasium.Env[Any, Any]):
    """The first observation (1 or 2) is the action that pays two steps later, when nothing but 0 is seen."""

    def __init__(self, space: Any = None, actions: Any = None, late: int = 2) -> None:
        self.observation_space = spaces.Discrete(3) if space is None else space
        self.action_space = spaces.Discrete(2) if actions is None else actions
        self.late, self.cue, self.h, self.played = late, 0, 0, list[Any]()
        self._buffer = np.zeros(2, dtype=np.float32)

    def shown(self) -> Any:
        seen = self.cue if self.h == 0 else 0
        if isinstance(self.observation_space, spaces.Box):
            self._buffer[:] = seen, self.h
            return self._buffer  # the same array again and again
        return seen

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.cue, self.h = int(self.np_random.integers(1, 3)), 0
        return self.shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.played.append(action)
        self.h += 1
        over = self.h > self.late
        return self.shown(), float(over and np.ravel(action)[0] == self.cue - 1), over, False, {}


@pytest.mark.parametrize(("history", "value"), [(1, 0.5), (2, 0.5), (3, 1.0)])
def test_what_an_agent_cannot_remember_it_cannot_be_paid_for(history: int, value: float) -> None:
    learner = linmdp.Learner(TimeLimit(Recall(), 3), "q-learning", history=history).learn(400)
    assert learner.evaluate(100).mean == pytest.approx(value, abs=0.15)


def states(env: Any, actions: list[int], seed: int = 0) -> list[Any]:
    return [env.reset(seed=seed)[0], *(env.step(a)[0] for a in actions)]


def test_numbers_stand_oldest_first_with_the_actions_between_them() -> None:
    env: Any = linmdp.make_env(TimeLimit(Recall(NUMBERS), 3), history=3)
    cue = env.reset(seed=0)[0][0]
    assert states(env, [1, 0]) == [
        pytest.approx([cue, 0, cue, 0, cue, 0, 0, 0, 0, 0]),
        pytest.approx([cue, 0, cue, 0, 0, 1, 0, 0, 0, 1]),
        pytest.approx([cue, 0, 0, 1, 0, 2, 0, 1, 1, 0]),
    ]
    assert env.observation_space.shape == (10,)


@pytest.mark.parametrize(
    ("space", "actions", "S", "width"),
    [
        (None, spaces.Discrete(2, start=0), 27 * 9, None),
        (None, spaces.MultiDiscrete([2, 3]), 27 * 49, None),
        (None, spaces.MultiBinary(2), 27 * 25, None),
        (None, spaces.Box(-1, 1, (1,)), 27 * 36, None),
        (NUMBERS, spaces.Discrete(2), None, 6 + 2 * 2),
        (NUMBERS, spaces.MultiDiscrete([2, 3]), None, 6 + 2 * 5),
        (NUMBERS, spaces.MultiBinary(2), None, 6 + 2 * 2),
        (NUMBERS, spaces.Box(0.5, 1, (2,)), None, 6 + 2 * 2),
    ],
)
def test_every_space_has_a_history(space: Any, actions: Any, S: int | None, width: int | None) -> None:
    env = linmdp.make_env(TimeLimit(Recall(space, actions), 3), history=3)
    assert env.task.S == S
    seen = [np.asarray(state) for state in states(env, [0, env.task.A - 1, 0])]
    assert len({state.tobytes() for state in seen}) == 4
    if S is None:
        assert {state.shape for state in seen} == {(width,)}
        assert all(state in env.observation_space for state in seen)
    else:
        assert all(0 <= state < S for state in seen)
    learner = linmdp.Learner(TimeLimit(Recall(space, actions), 3), "q-learning" if S else "stream-q", history=3)
    assert learner.learn(3).episodes == 3


def test_dicts_and_specs_and_registered_names_have_one() -> None:
    wrapped = TransformObservation(Recall(NUMBERS), lambda o: {"x": o}, spaces.Dict({"x": NUMBERS}))
    assert linmdp.make_env(TimeLimit(wrapped, 3), history=2).observation_space.shape == (6,)
    flat = linmdp.make_env(TimeLimit(FlattenObservation(Recall(NUMBERS)), 3), history=2)
    assert RawEpisodes(flat).observation_space.shape == (6,)  # as DQN and PPO see it
    assert linmdp.make_env("gym:CartPole-v1,history=3").observation_space.shape == (16,)
    assert linmdp.make_env("gym:FrozenLake-v1", history=2).task.S == 16 * 16 * 5
    plain, known = (linmdp.make_env(f"general:umbrella{more}") for more in ("", ",history=2"))
    assert known.observation_space != plain.observation_space
    assert linmdp.Learner("CartPole-v1", "stream-q", history=3).learn(2).env.observation_space.shape == (4,)


def test_one_is_what_there_was_before() -> None:
    plain, one = (linmdp.Learner("FrozenLake-v1", "q-learning", **more).learn(20) for more in ({}, {"history": 1}))
    assert plain.returns == one.returns
    np.testing.assert_equal(plain.agent.state_dict(), one.agent.state_dict())


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_stream_of_a_vector_environment_has_its_own(mode: AutoresetMode) -> None:
    def make() -> Any:
        return TimeLimit(Recall(), 3)

    vector = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    learner = linmdp.Learner(vector, "q-learning", history=3).learn(600)
    assert learner.evaluate(60).mean > 0.85
    cues, _ = vector.reset(seed=5)
    actions = learner.predict(cues, episode_start=True)[0]
    for _ in range(2):
        seen, *_ = vector.step(actions)
        actions = learner.predict(seen)[0]
    assert actions.tolist() == (cues - 1).tolist()


def test_predict_remembers_what_it_was_shown_and_what_it_answered() -> None:
    learner = linmdp.Learner(TimeLimit(Recall(), 3), "q-learning", history=3).learn(400)
    env, won = TimeLimit(Recall(), 3), 0.0
    for k in range(20):
        seen, _ = env.reset(seed=k)
        for h in range(3):
            action, _ = learner.predict(seen, episode_start=h == 0)
            seen, reward, *_ = env.step(action)
            won += float(reward)
    assert won == 20


def test_logged_data_are_read_with_it() -> None:
    rng, env, rows = np.random.default_rng(0), Recall(), list[tuple[Any, ...]]()
    for k in range(200):
        seen, over = env.reset(seed=k)[0], False
        while not over:
            action = int(rng.integers(2))
            then, reward, over, _, _ = env.step(action)
            rows.append((seen, action, reward, over, then))
            seen = then
    names = ("observations", "actions", "rewards", "terminations", "next_observations")
    data = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    made = linmdp.Learner(TimeLimit(Recall(), 3), "lsvi-ucb", history=3).learn_from(data)
    assert made.evaluate(100).mean == 1.0
    assert made.evaluate_offline(made, data).mean > 0.9


def test_a_learner_is_saved_with_it(tmp_path: Path) -> None:
    for env in ("gym:FrozenLake-v1,H=30", TimeLimit(Recall(), 3)):
        first = linmdp.Learner(env, "q-learning", history=2).learn(5)
        first.save(tmp_path / "x.safetensors")
        again = linmdp.Learner.load(tmp_path / "x.safetensors", None if isinstance(env, str) else env)
        assert again.learn(4).returns == first.learn(4).returns


def test_what_has_a_task_has_no_history() -> None:
    with pytest.raises(linmdp.InvalidParameter, match="'history' parameter of LinearMDPEnv must be left out"):
        linmdp.make_env(linmdp.make_env("lock:H=4"), history=2)
