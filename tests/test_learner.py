"""The learner: learning in pieces, acting, evaluating, files, raw and vector environments."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformObservation

import linmdp
from linmdp.envs.actions import Actions

LAKE, FAST, FAST_NUMBERS = "FrozenLake-v1", "q-learning", "stream-q"


def lake(**more: Any) -> linmdp.Learner:
    return linmdp.Learner(LAKE, FAST, **more)


def poles(n: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> SyncVectorEnv:
    make = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=60)] * n
    return SyncVectorEnv(make, autoreset_mode=mode)


class Corridor(gymnasium.Env[Any, Any]):
    """Ten fields; the last one pays. It knows no linmdp, and keeps no record of itself."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2, start=5)

    def __init__(self) -> None:
        self.at, self.actions = 0, list[Any]()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.at = max(0, self.at + (1 if action == 6 else -1))
        return self.at, float(self.at == 9), self.at == 9, False, {}


@pytest.mark.parametrize("env", [LAKE, "gym:FrozenLake-v1,H=30", "lock:H=4"])
@pytest.mark.parametrize("agent", ["auto", FAST])
def test_learning_in_pieces_with_evaluations_between_is_learning_at_once(env: str, agent: str) -> None:
    whole = linmdp.Learner(env, agent, seed=3).learn(12)
    parts = linmdp.Learner(env, agent, seed=3).learn(5)
    parts.evaluate(3)
    assert parts.verdict
    assert parts.learn(7) is parts
    assert parts.returns == whole.returns
    assert (parts.episodes, parts.steps) == (whole.episodes, whole.steps)
    np.testing.assert_equal(parts.agent.state_dict(), whole.agent.state_dict())


@pytest.mark.parametrize("agent", ["auto", "lsvi-ucb"])
@pytest.mark.parametrize("env", [LAKE, "lock:H=4", "gym:CartPole-v1,H=30"])
def test_a_saved_learner_goes_on_bit_for_bit(env: str, agent: str, tmp_path: Path) -> None:
    first = linmdp.Learner(env, agent, seed=2).learn(6)
    first.save(tmp_path / "x.safetensors")
    again = linmdp.Learner.load(tmp_path / "x.safetensors")
    assert (again.episodes, again.steps, again.spec) == (first.episodes, first.steps, first.spec)
    assert again.learn(4).returns == first.learn(4).returns
    np.testing.assert_equal(again.agent.state_dict(), first.agent.state_dict())


def test_a_learner_of_an_object_is_loaded_with_one(tmp_path: Path) -> None:
    first = linmdp.Learner(Corridor(), FAST).learn(3)
    first.save(tmp_path / "x.safetensors")
    with pytest.raises(linmdp.InvalidParameter, match="'env' of the learner"):
        linmdp.Learner.load(tmp_path / "x.safetensors")
    again = linmdp.Learner.load(tmp_path / "x.safetensors", Corridor())
    assert again.learn(3).returns == first.learn(3).returns
    with pytest.raises(linmdp.InvalidData, match="cannot be used here"):
        linmdp.Learner.load(tmp_path / "x.safetensors", "lock:H=4")


def test_an_agent_file_is_no_learner_file(tmp_path: Path) -> None:
    lake().agent.save(tmp_path / "x.safetensors")
    with pytest.raises(linmdp.InvalidData, match="must be a learner file"):
        linmdp.Learner.load(tmp_path / "x.safetensors")


def test_the_same_seed_learns_the_same_and_another_one_does_not() -> None:
    assert lake(seed=1).learn(20).returns == lake(seed=1).learn(20).returns
    one, other = (linmdp.Learner("CartPole-v1", "random", seed=seed).learn(5) for seed in (1, 2))
    assert one.returns != other.returns


def test_in_a_linear_mdp_it_learns_what_a_run_learns() -> None:
    env = linmdp.make_env("lock:H=4")
    result = linmdp.run(env, linmdp.make_agent("lsvi-ucb", env), episodes=15, seed=4)
    learner = linmdp.Learner("lock:H=4", "lsvi-ucb", seed=4).learn(15)
    assert learner.returns == result.rewards.tolist()


def test_steps_are_a_budget_of_whole_episodes() -> None:
    learner = lake().learn(steps=50)
    last = learner.steps - lake().learn(learner.episodes - 1).steps
    assert learner.steps - last < 50 <= learner.steps
    for wrong in ({}, {"episodes": 3, "steps": 3}):
        with pytest.raises(linmdp.InvalidParameter, match="'episodes' parameter of learn"):
            lake().learn(**wrong)  # type: ignore[arg-type]


def test_a_callback_hears_of_every_episode_and_can_stop() -> None:
    heard = list[linmdp.EpisodeRecord]()

    def stop_at_four(record: linmdp.EpisodeRecord) -> bool:
        heard.append(record)
        return len(heard) < 4

    learner = lake().learn(10, callback=stop_at_four)
    assert [record.episode for record in heard] == [0, 1, 2, 3]
    assert [record.reward for record in heard] == learner.returns
    assert learner.learn(2, callback=lambda record: None).episodes == 6


def test_a_callback_that_cannot_be_called_is_refused_before_anything_is_played() -> None:
    learner, given = lake(), {"callback": 3}
    with pytest.raises(linmdp.InvalidParameter, match="'callback' parameter of learn must be a function"):
        learner.learn(2, **given)  # type: ignore[arg-type]
    assert learner.episodes == 0


def test_a_callback_may_predict_and_evaluate() -> None:
    plain = linmdp.Learner("gym:CartPole-v1,H=30", "auto").learn(4)
    looked = linmdp.Learner("gym:CartPole-v1,H=30", "auto")

    def look(record: Any) -> None:
        looked.evaluate(1)
        looked.predict(np.zeros(4, dtype=np.float32))

    assert looked.learn(4, callback=look).returns == plain.returns


def test_predict_has_no_limit_and_answers_with_actions_of_the_environment() -> None:
    learner = linmdp.Learner(Corridor(), FAST).learn(30)
    obs, _ = learner.env.reset(seed=0)
    for _ in range(3 * learner.task.H):
        action, state = learner.predict(obs)
        assert state is None
        assert action in learner.env.action_space
    actions, _ = learner.predict(np.array([0, 1, 2]))
    assert actions.shape == (3,)
    assert {learner.predict(0, deterministic=False)[0] for _ in range(50)} <= {5, 6}


def test_where_the_step_matters_it_is_counted() -> None:
    learner = linmdp.Learner("lock:H=4", "lsvi-ucb", beta=0.05).learn(300)
    obs, earned = learner.env.reset(seed=0)[0], 0.0
    for h in range(4):
        action, _ = learner.predict(obs, episode_start=h == 0)
        obs, reward, *_ = learner.env.step(action)
        earned += float(reward)
    assert earned == 1
    begun = learner.env.reset(seed=0)[0]
    assert learner.predict(begun) == learner.predict(begun, episode_start=True)  # after H steps as at the first


def test_an_evaluation_is_the_policy_that_learned() -> None:
    learner = linmdp.Learner("lock:H=4", "lsvi-ucb", beta=0.05).learn(300)
    found = learner.evaluate(7)
    assert found.mean == 1
    assert found.interval == (1, 1)
    assert found.episodes.shape == (7,)
    assert learner.episodes == 300
    assert learner.verdict.startswith("learned: 1 an episode, random 0")


def test_it_learns_an_environment_that_knows_nothing_of_it_also_wrapped_within_and_without() -> None:
    for env in (Corridor(), TimeLimit(Corridor(), 40), RecordEpisodeStatistics(TimeLimit(Corridor(), 40))):
        learner = linmdp.Learner(env, "auto").learn(40)
        assert learner.evaluate(5).mean == 1
    around = RecordEpisodeStatistics(linmdp.GymTask(TimeLimit(Corridor(), 40)))
    assert linmdp.Learner(around, "auto").learn(40).evaluate(5).mean == 1


def test_predict_reads_what_the_wrapped_environment_shows() -> None:
    inner = gymnasium.make("CartPole-v1", max_episode_steps=30)
    space = gymnasium.spaces.Box(-1.0, 1.0, (2, 2), np.float32)
    env = TransformObservation(inner, lambda o: np.clip(o, -1, 1).astype(np.float32).reshape(2, 2), space)
    learner = linmdp.Learner(env, "auto").learn(3)
    obs, _ = env.reset(seed=0)
    assert learner.predict(obs)[0] in (0, 1)
    assert learner.predict(np.stack([obs, obs]))[0].shape == (2,)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_every_stream_of_a_vector_environment_is_learned(mode: AutoresetMode) -> None:
    env = poles(3, mode)
    learner = linmdp.Learner(env, "auto").learn(9)
    assert linmdp.Learner(poles(3, mode)).learn(9).episodes == 9
    assert learner.episodes == 9
    assert learner.steps == sum(learner.returns)  # a step pays 1
    assert all(1 < length <= 60 for length in learner.returns)
    assert learner.agent.updates > 0
    actions, _ = learner.predict(env.reset(seed=0)[0])
    assert actions.shape == (3,)
    assert learner.evaluate(2).episodes.shape == (2,)
    assert linmdp.Learner(poles(3, mode), "auto").learn(9).returns == learner.returns


def test_a_vector_environment_that_takes_one_seed_is_learned_too() -> None:
    learner = linmdp.Learner(gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point"), "auto")
    assert learner.learn(4).episodes == 4


def test_streams_are_episodes_of_the_environment_itself() -> None:
    """With the same seeds and actions the streams show what single environments show."""
    seen = list[Any]()

    class Noting(linmdp.ConstantAgent):
        name = "noting"

        def observe(self, h: int, state: Any, *more: Any) -> None:
            seen.append((h, np.array(state), more))

    learner = linmdp.Learner(poles(2), Noting, action=1).learn(4)
    singles = [gymnasium.make("CartPole-v1", max_episode_steps=60) for _ in range(2)]
    first = np.stack([env.reset(seed=learner._course._seed_of(2, 0) + i)[0] for i, env in enumerate(singles)])
    starts = [state for h, state, _ in seen if h == 0]
    np.testing.assert_array_equal(starts[:2], first)
    for env, length in zip(singles, learner.returns, strict=False):
        steps = 0
        while not any(env.step(1)[2:4]):
            steps += 1
        assert steps + 1 == length


def test_a_vector_environment_without_end_says_what_to_do() -> None:
    env = SyncVectorEnv([Corridor, Corridor])
    with pytest.raises(linmdp.InvalidData, match="TimeLimit"):
        linmdp.Learner(env, linmdp.ConstantAgent, action=0).learn(1)


def test_after_a_fault_learning_goes_on() -> None:
    class Failing(Corridor):
        fails = False

        def step(self, action: int) -> Any:
            if self.fails and self.at == 2:
                raise RuntimeError("out of order")
            return super().step(action)

    env = Failing()
    learner = linmdp.Learner(TimeLimit(env, 30), "auto").learn(2)
    env.fails = True
    with pytest.raises(linmdp.InvalidData, match="out of order"):
        learner.learn(50)
    env.fails = False
    before = learner.episodes
    assert learner.learn(3).episodes == before + 3


def test_run_compare_and_make_agent_take_raw_environments() -> None:
    for env in (TimeLimit(Corridor(), 20), SyncVectorEnv([lambda: TimeLimit(Corridor(), 20)] * 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = linmdp.run(env, linmdp.make_agent(FAST, env), episodes=5, seed=0)
            assert result.episodes == 5
            assert all(finding.ok for finding in linmdp.check_env(env, episodes=3))
            assert len(list(linmdp.compare(env, FAST, episodes=3, seeds=1, jobs=1))) == 2


def test_wrong_environments_and_agents_are_refused_in_one_line() -> None:
    for env, agent, words in [
        (3, FAST, "An environment must be text such as .* Got 3"),
        (LAKE, "nobody", "no agent 'nobody'"),
        (LAKE, "sb3-ppo", "one that learns from its own steps"),
        ("NoSuchLake-v1", FAST, "no environment 'NoSuchLake-v1'"),
    ]:
        with pytest.raises(linmdp.LinMDPError, match=words) as error:
            linmdp.Learner(env, agent)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("env", ["FrozenLake-v1", "lock:H=4", "gym:CartPole-v1,H=30"])
def test_with_no_parameter_it_says_what_it_has_become(env: str) -> None:
    learner = linmdp.Learner(env, seed=5).learn(5)
    assert learner.agent.name == "auto"
    assert learner.reasons
    assert len(repr(learner)) < 120
    assert linmdp.Learner(env, learner.spec, seed=5).learn(5).returns == learner.returns


def test_its_spec_makes_the_same_agent() -> None:
    learner = linmdp.Learner("lock:H=4", "lsvi-ucb:lam=0.5", beta=0.05)
    assert learner.spec == "lsvi-ucb:beta=0.05,lam=0.5"
    assert linmdp.Learner("lock:H=4", learner.spec).learn(20).returns == learner.learn(20).returns
    assert any(line.startswith("d=") for line in linmdp.Learner("CartPole-v1", "lsvi-ucb").reasons)
    given = linmdp.Learner(linmdp.make_env("gym:CartPole-v1,features=fourier")).reasons[0]
    assert given.endswith("; it does without the features that were given")
    assert "features" not in linmdp.Learner("CartPole-v1").reasons[0]
    assert len(repr(learner).splitlines()) == 1


def test_it_is_exported_as_the_command_does(tmp_path: Path) -> None:
    learner = linmdp.Learner("sensor", "lsvi-ucb", storage="centres", M=20, lam=0.1).learn(5)
    assert any(path.name == "linmdp_learner.c" for path in learner.export_c(tmp_path / "c", steps=50).files)
    assert learner.export_c(tmp_path / "policy", only="policy").ram == 0
    other = linmdp.Learner("sensor", FAST).learn(5)
    with pytest.warns(linmdp.LinMDPWarning, match="the policy alone"):
        other.export_c(tmp_path / "other")
    with pytest.raises(linmdp.InvalidParameter, match="export"):
        linmdp.Learner("CartPole-v1", "stream-q").learn(2).export_wasm(tmp_path / "wasm")


class Doors(gymnasium.Env[Any, Any]):
    """Six doors, of which an open one must be taken: which are open is drawn anew at each step. The last one pays."""

    observation_space = gymnasium.spaces.MultiBinary(6)

    def __init__(self, says: str = "info", space: gymnasium.Space[Any] | None = None) -> None:
        self.action_space = space or gymnasium.spaces.Discrete(6, start=2)
        self.says, self.violations, self.steps, self.h = says, 0, 0, 0
        self.open = np.ones(6, dtype=np.int8)
        if says == "method":
            self.action_masks = lambda: self.open.astype(bool)

    def _shown(self) -> tuple[Any, dict[str, Any]]:
        self.open = (self.np_random.random(6) < 0.4).astype(np.int8)
        self.open[self.np_random.integers(6)] = 1
        return self.open.copy(), {"action_mask": self.open.copy()} if self.says == "info" else {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.h = 0
        return self._shown()

    def step(self, action: Any) -> Any:
        self.h, self.steps = self.h + 1, self.steps + 1
        self.violations += not self.open[action - 2]
        shown, info = self._shown()
        return shown, float(action == 7), False, self.h == 20, info


@pytest.mark.parametrize("says", ["info", "method"])
@pytest.mark.parametrize("agent", ["auto", "random", "lsvi-ucb", "stream-q", "constant"])
def test_no_agent_ever_does_what_the_mask_forbids(agent: str, says: str) -> None:
    env = Doors(says)
    learner = linmdp.Learner(TimeLimit(env, 20), agent).learn(10)
    assert learner.verdict is not None
    learner.evaluate(3)
    assert env.steps > 250
    assert env.violations == 0
    obs, _ = env.reset(seed=1)
    for deterministic in (True, False):
        assert learner.predict(obs, action_masks=np.arange(6) == 4, deterministic=deterministic) == (6, None)


def test_masks_hold_in_streams_and_in_runs_and_can_be_left_alone() -> None:
    made = [Doors() for _ in range(2)]
    env = SyncVectorEnv([lambda one=one: TimeLimit(one, 20) for one in made])  # type: ignore[misc]
    linmdp.Learner(env, "auto").learn(6)
    assert made[0].violations == 0  # the others copy the first one in random play
    alone = Doors()
    linmdp.run(TimeLimit(alone, 20), linmdp.make_agent("random", TimeLimit(Doors(), 20)), episodes=5)
    assert alone.steps
    assert alone.violations == 0
    free = Doors()
    linmdp.run(
        linmdp.GymTask(TimeLimit(free, 20), masks=False),
        linmdp.make_agent("random", TimeLimit(Doors(), 20)),
        episodes=5,
    )
    assert free.violations > 0


def test_an_agent_is_told_what_may_be_done_next() -> None:
    told = list[Any]()

    class Told(linmdp.RandomAgent):
        name = "told"

        def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
            told.append((self.mask, next_state, h))

    learner = linmdp.Learner(TimeLimit(Doors(), 20), Told).learn(3)
    for mask, next_state, h in told:
        assert (mask is None) == (h == 19)
        if mask is not None:
            assert mask.tolist() == [bit == 1 for bit in np.unravel_index(next_state, (2,) * 6)]
    assert learner.agent.mask is None


@pytest.mark.parametrize("mask", [np.zeros(6), np.ones(5)])
def test_a_mask_that_is_none_is_refused_in_one_line(mask: Any) -> None:
    env = Doors("method")
    env.action_masks = lambda: mask
    with pytest.raises(linmdp.InvalidData, match=r"action mask .* must be 6 flags"):
        linmdp.Learner(TimeLimit(env, 20), "random").learn(1)


def test_a_mask_of_several_choices_is_taken_choice_by_choice() -> None:
    actions = Actions("it", gymnasium.spaces.MultiDiscrete([2, 3]))
    assert np.flatnonzero(actions.mask_of([1, 0, 0, 1, 1])).tolist() == [1, 2]
    assert np.flatnonzero(actions.mask_of((np.array([0, 1]), np.array([1, 0, 0])))).tolist() == [3]
    assert np.flatnonzero(actions.mask_of([0, 0, 0, 0, 1, 0])).tolist() == [4]


def test_a_box_of_actions_is_cut_into_a_grid() -> None:
    box = gymnasium.spaces.Box(np.array([-2, 0], np.float32), np.array([2, 1], np.float32))
    actions = Actions("it", box)
    assert actions.A == 25
    made = np.array([actions(a) for a in range(25)])
    assert all(action in box for action in made)
    assert sorted(set(made[:, 0].tolist())) == [-2, -1, 0, 1, 2]
    assert [actions.nearest(action + 0.1) for action in made] == list(range(25))
    assert Actions("it", box, 3).A == 9
    for n, A in ((1, 5), (4, 625), (5, 1024), (7, 128), (10, 1024)):
        assert Actions("it", gymnasium.spaces.Box(-1, 1, (n,))).A == A
    for wrong, each, words in [
        (gymnasium.spaces.Box(-1, 1, (11,)), None, "at most 10 coordinates"),
        (gymnasium.spaces.Box(-np.inf, 1, (1,)), None, "must have bounds: use RescaleAction"),
        (box, 33, "at most 1024 combinations. Got 1089"),
        (box, 1, "'actions' parameter of 'it' must be a whole number in"),
        (gymnasium.spaces.Discrete(3), 5, "left out where actions are no Box"),
        (gymnasium.spaces.Tuple((gymnasium.spaces.Discrete(2), box)), None, "TransformAction"),
        (gymnasium.spaces.Dict({"a": box}), None, "TransformAction"),
    ]:
        with pytest.raises(linmdp.InvalidParameter, match=words) as error:
            Actions("it", wrong, each)
        assert "\n" not in str(error.value)


def test_pendulum_is_played_and_predicted_with_its_own_actions() -> None:
    for env in ("Pendulum-v1", "gym:Pendulum-v1,H=200", gymnasium.make("Pendulum-v1")):
        learner = linmdp.Learner(env, FAST_NUMBERS, seed=1, actions=3).learn(2)
        assert learner.task.A == 3
        obs, _ = learner.env.reset(seed=0)
        action, _ = learner.predict(obs)
        assert action in learner.env.action_space
    assert "actions=5" in linmdp.Learner("Pendulum-v1", FAST_NUMBERS).reasons
