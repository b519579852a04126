"""The public contract checks: what is right passes, and each way to break the contract is found and named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

import linmdp
from linmdp.agents.base import StateDict
from linmdp.envs.linear_mdps import LINEAR_MDPS
from linmdp.features import HashedFeatures, UnitFeatures
from linmdp.testing import check_agent, check_env, check_features
from linmdp.types import Array

TINY = "synthetic:S=6,A=3,d=3,H=3"


class Counting(linmdp.Agent):
    """Plays the action that has paid most so far in each state: a learner in twenty lines, with all that it owes."""

    name = "counting"
    test_parameters = ({}, {"first": 2})

    def __init__(self, task: linmdp.Task, *, first: int = 0) -> None:
        super().__init__(task)
        if task.S is None:
            raise linmdp.InvalidParameter("States must be finite for counting.")
        self.first = first
        self._sums: Array = np.zeros((task.S, task.A))
        self._sums[:, first] = 1e-9

    def act(self, h: int, state: Any) -> int:
        return int(self._sums[state].argmax())

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        self._sums[state, action] += reward

    def end_episode(self) -> None:
        self.policy_version += 1

    def q_values(self, h: int, state: Any) -> Array:
        q: Array = self._sums[state]
        return q

    def policy(self, h: int) -> Any:
        return self._sums.argmax(axis=1)

    @property
    def nbytes(self) -> int:
        return self._sums.nbytes

    def state_dict(self) -> StateDict:
        return super().state_dict() | {"sums": self._sums.copy()}

    def _load(self, state: Any) -> None:
        super()._load(state)
        if "sums" not in state:
            raise linmdp.InvalidData("The saved agent has no 'sums'.")
        self._sums = state["sums"].copy()


def test_a_correct_agent_passes() -> None:
    check_agent(Counting)
    check_agent("lsvi-ucb:beta=0.1", TINY)
    check_agent("random", linmdp.make_env("gym:MountainCar-v0,H=4"))


class Dice(Counting):
    def act(self, h: int, state: Any) -> int:
        return int(np.random.default_rng().integers(self.task.A))

    def policy(self, h: int) -> Any:
        return np.full((self.task.S or 1, self.task.A), 1 / self.task.A)


class Forgetful(Counting):
    def state_dict(self) -> StateDict:
        return super().state_dict() | {"sums": np.zeros_like(self._sums)}


class Careless(Counting):
    def _load(self, state: Any) -> None:
        linmdp.Agent._load(self, state)
        self._sums = state.get("sums", self._sums).copy()


class Modest(Counting):
    @property
    def nbytes(self) -> int:
        return 0

    def __init__(self, task: linmdp.Task, *, first: int = 0) -> None:
        super().__init__(task, first=first)
        self._more = np.ones(100_000)


class Greedy(Counting):
    def policy(self, h: int) -> Any:
        return np.zeros(self.task.S or 1, dtype=int)


class Short(Counting):
    def q_values(self, h: int, state: Any) -> Array:
        return super().q_values(h, state)[:-1]


class Vague(Counting):
    def act(self, h: int, state: Any) -> Any:
        return self._sums[state].argmax()


class Capped(Counting):
    def __init__(self, task: linmdp.Task, *, first: int = 0) -> None:
        super().__init__(task, first=first)
        self.caps = np.zeros(task.H)


class Growing(Counting):
    def bytes_after(self, episodes: int) -> int:
        return 1


class Renaming(Counting):
    def __init__(self, task: linmdp.Task, *, first: int = 0) -> None:
        super().__init__(task, first=first)
        self.first = str(first)  # type: ignore[assignment]


class Twins(Counting):
    shared = np.zeros((12, 3))

    def __init__(self, task: linmdp.Task, *, first: int = 0) -> None:
        super().__init__(task, first=first)
        self._sums = Twins.shared

    def __deepcopy__(self, memo: Any) -> Twins:
        return self


class Untested(Counting):
    test_parameters = ()  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Dice, "the same seed must give the same run; use self.rng"),
        (Forgetful, "a saved agent must go on as if nothing had happened"),
        (Careless, "a saved state without 'sums' must be refused"),
        (Modest, "nbytes must be what it allocates, 8"),
        (Greedy, "act must play what policy"),
        (Short, r"q_values\(h, state\) must have shape \(3,\)"),
        (Vague, r"act must return an int in \[0, 2\]"),
        (Capped, "q_values must be at most caps"),
        (Growing, "bytes_after must be at least"),
        (Renaming, "parameters must be kept verbatim"),
        (Untested, "test_parameters must not be empty"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_agent_is_found(cls: type[linmdp.Agent], words: str) -> None:
    with pytest.raises(AssertionError, match=f"counting: .*{words}"):
        check_agent(cls)


def test_a_copy_that_shares_what_changes_is_found() -> None:
    Twins.shared[:] = 0
    with pytest.raises(AssertionError, match=r"must go its own way|the same seed must give"):
        check_agent(Twins, linmdp.make_env("synthetic:S=12,A=3,d=4,H=5"))


OTHERS = ("synthetic:S=20,A=3,d=4,H=5,start=uniform", "gym:FrozenLake-v1,H=20", "gym:CartPole-v1,H=30,features=fourier")
UNIT = ("gym:Taxi-v3", "gym:Blackjack-v1,features=hashed")


@pytest.mark.parametrize("spec", [*(f for f in LINEAR_MDPS if f != "synthetic"), *OTHERS, *UNIT])
def test_every_family_and_other_environments_pass(spec: str) -> None:
    check_env(spec)


class Lying(linmdp.LinearMDPEnv):
    """Pays less than its model says."""

    def step(self, action: int) -> Any:
        state, reward, *rest = super().step(action)
        return state, 0.5 * reward, *rest


class Drifting(linmdp.LinearMDPEnv):
    """Starts anywhere, whatever the seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.offset = getattr(self, "offset", 0) + 1
        super().reset(seed=seed, options=options)
        self._state = self.offset % self.model.S
        return self._state, {}


class NoTask(gymnasium.Env[Any, Any]):
    """An environment without features."""


def unlinear() -> linmdp.LinearMDPEnv:
    model = LINEAR_MDPS["riverswim"]()
    return linmdp.LinearMDPEnv(replace(model, theta=2 * model.theta, reward_range=(0.0, 1.0)))


def small_task() -> linmdp.LinearMDPEnv:
    env = linmdp.LinearMDPEnv(LINEAR_MDPS["lock"](H=4))
    env.model = LINEAR_MDPS["lock"](H=5)
    return env


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lying(LINEAR_MDPS["inventory"]()), "random play must earn what the model says: it is off by"),
        (lambda: Drifting(LINEAR_MDPS["riverswim"]()), "must pass Gymnasium's env_checker|the same seed"),
        (NoTask, "must have a 'task'"),
        (unlinear, "it must be a linear MDP|must earn what the model says"),
        (small_task, "the size of the task|must earn what the model says|env_checker"),
    ],
)
def test_a_broken_environment_is_found(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_env(make())


class Map:
    """A correct map of vectors in [0, 1]^2."""

    A, d, bound = 2, 4, 1.0
    nbytes = 0

    def phi(self, state: Array) -> Array:
        return np.kron(np.eye(2), np.asarray(state) / 2)

    def batch(self, states: Array) -> Array:
        return np.stack([self.phi(s) for s in states])


class Long(Map):
    bound = 0.1


class Flat(Map):
    def phi(self, state: Array) -> Array:
        return super().phi(state).ravel()


class Moody(Map):
    calls = 0

    def phi(self, state: Array) -> Array:
        Moody.calls += 1
        return super().phi(state) / Moody.calls


class Unlike(Map):
    def batch(self, states: Array) -> Array:
        return super().batch(states) / 2


class Eager(Map):
    def batch(self, states: Array) -> Array:
        found = super().batch(states)
        states *= 0
        return found


class NoBytes:
    A, d, bound = 2, 4, 1.0


POINTS = np.random.default_rng(0).random((7, 2))


def test_correct_features_pass() -> None:
    check_features(Map(), POINTS)
    check_features(linmdp.one_hot(3, 2))
    env: Any = linmdp.make_env("gym:MountainCar-v0,H=9,features=fourier")
    check_features(env.task.features, [env.reset(seed=i)[0] for i in range(5)])


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (Long(), "must have norm at most 0.1"),
        (Flat(), r"must have shape \(..., 2, 4\)"),
        (Moody(), "must equal phi of each state|the same whenever"),
        (Unlike(), "must equal phi of each state"),
        (Eager(), "the states must not be changed"),
        (NoBytes(), "must have A, d, bound, nbytes, phi and batch"),
    ],
)
def test_broken_features_are_found(features: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_features(features, POINTS.copy())


def test_states_are_asked_for() -> None:
    with pytest.raises(AssertionError, match="states to check it on must be given"):
        check_features(Map())


def test_the_checks_need_no_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None\nimport linmdp.testing as t; t.check_agent('random', 'lock:H=3')"
    subprocess.run([sys.executable, "-c", code], check=True)


class Shared(UnitFeatures):
    """Two actions with the same vector."""

    def index(self, state: int) -> Any:
        return super().index(state) // 2


def test_unit_vectors_are_checked_by_their_places() -> None:
    check_features(UnitFeatures(300, 4))
    check_features(UnitFeatures(10**5, 4))
    check_features(HashedFeatures(3), np.array([5, 2**40 - 1, 5]))
    with pytest.raises(AssertionError, match="no two states or actions may share an index"):
        check_features(Shared(9, 2))
    with pytest.raises(AssertionError, match="index\\(state\\) must be in"):
        check_features(HashedFeatures(3), np.array([2**40]))
