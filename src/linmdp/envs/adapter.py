"""Any discrete-action Gymnasium environment as a task of H steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NoReturn

import gymnasium
import numpy as np

from linmdp.envs.actions import Actions
from linmdp.envs.door import Door
from linmdp.envs.games import make_gym
from linmdp.envs.guard import Bare, Guard
from linmdp.envs.history import History, Window
from linmdp.envs.mapping import EnvView, finite_reading, map_by_name, map_parameters, usual_map
from linmdp.envs.names import gym_names
from linmdp.envs.observations import SIDE, Reading, counted, is_image, numbers, whole
from linmdp.envs.rewards import FEW_EPISODES, LONGEST_H, Pay, RewardRule, Trials
from linmdp.envs.spaces import leaves, text_notes
from linmdp.errors import InvalidParameter, check_flag, check_int, invalid
from linmdp.features.base import FeatureMap
from linmdp.types import BoolArray, State, Task

LONGEST_HISTORY = 1000
"""Observations together; more are a slip."""


def _refuse(given: Any) -> NoReturn:
    """What stands in the place of an environment, and what to give."""
    if isinstance(given, type) and issubclass(given, gymnasium.Env):
        fix = f"an environment, not its class: {given.__name__}(...)"
    elif isinstance(given, gymnasium.vector.VectorEnv):
        fix = "one environment, not a vector of them: gymnasium.make"
    else:
        fix = "a Gymnasium id, or an environment"
    invalid("GymTask", "id", fix, given)


class GymTask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment cut to H steps, with features: by name, or your own.

    Parameters
    ----------
    id : a Gymnasium id, or an environment
    H : steps per episode; default: the environment's own limit, which is also the maximum. Where it has none: twice
        the longest of 20 episodes of random play, at most 200
    reward_low, reward_high : the range of one reward; by default known, reported by the environment, or seen in
        random play
    reward : what to do with a reward outside its range: "error", "clip", or "auto": an error where reward_low and
        reward_high are given, else clip
    features : onehot, hashed, fourier, auto, or a FeatureMap from observations to (A, d); by default onehot where
        observations are whole numbers that can be counted, hashed where they cannot but recur, else auto. `ALE/` games
        are seen through their RAM
    order : of fourier
    coupling : of fourier, the most coordinates that one cosine joins
    dim, bandwidth : of auto
    scaling : of fourier, "bounds" of the space where it has some, or "data": the range seen in the warm-up
    warmup : steps of a random policy before the first episode, where coordinates have no bounds
    seed : seed of the warm-up and of auto
    actions : values of each coordinate of actions that are a Box; by default 5, or as many as make 1,024 in all at most
    history : how many observations are shown together, with the actions between them; 1: what is seen now
    continuing : whether a stretch of H steps goes on where the last one stopped, unless a seed or the environment says
        that it is over; of an id without the limit of steps that its name stands for
    masks : whether `info["action_mask"]` and `action_masks()` of the environment say which actions may be taken
    kwargs : parameters of a registered feature map; others are passed to `gymnasium.make`

    Attributes
    ----------
    action_map : how actions are numbered, and which may be taken
    notes : what a user should know about it, in words
    """

    made_from: str | None = None
    """The spec that it was made from, where there was one."""
    model = None  # unknown: no V*, hence no exact regret
    _read: Callable[[Any], State]
    as_it_is = False
    """Whether an episode may begin before features and rewards are known, since nobody has asked for them."""

    def __init__(
        self,
        id: str | gymnasium.Env[Any, Any],
        *,
        H: int | None = None,
        reward_low: float | None = None,
        reward_high: float | None = None,
        reward: str = "auto",
        features: str | FeatureMap | None = None,
        order: int | None = None,
        coupling: int | None = None,
        dim: int | None = None,
        bandwidth: float | None = None,
        scaling: str | None = None,
        warmup: int | None = None,
        seed: int | None = None,
        actions: int | None = None,
        history: int = 1,
        continuing: bool = False,
        masks: bool = True,
        **kwargs: Any,
    ) -> None:
        sizes = {"order": order, "coupling": coupling, "dim": dim, "bandwidth": bandwidth}
        others = {"scaling": scaling, "warmup": warmup, "seed": seed}
        given = {name: value for name, value in (sizes | others).items() if value is not None}
        if isinstance(features, str):  # a map that someone else registered has other parameters
            given |= {name: kwargs.pop(name) for name in map_parameters(features) if name in kwargs}
        if isinstance(id, gymnasium.Env):
            env, id = id, id.spec.id if id.spec else type(id.unwrapped).__name__
        else:
            if not isinstance(id, str):
                _refuse(id)
            if features is None and id.startswith("ALE/"):  # 128 bytes say more than a small picture
                kwargs.setdefault("obs_type", "ram")
            if continuing:
                kwargs.setdefault("max_episode_steps", -1)
            env = make_gym(id, kwargs)
        self.id, self._h, self.action_map = id, 0, Actions(id, env.action_space, actions, masks=masks)
        self.history = check_int(id, "history", history, low=1, high=LONGEST_HISTORY)
        env = self._remembering(env)
        self.continuing = check_flag("continuing", continuing)
        self._left: Any = None
        super().__init__(env)
        self._chosen, self._sizes = {name: dict[str, Any]() for name in ("H", "features", "rewards")}, tuple[int, ...]()
        A, self._door, self._between = self.action_map.A, Door(env.observation_space), True
        self._pay: Pay | None = None
        self.action_mask: BoolArray | None = None
        if self.action_map.each is not None and actions is None:
            self._chosen["H"]["actions"] = self.action_map.each
        self.action_space = gymnasium.spaces.Discrete(A)
        limit = env.spec.max_episode_steps if env.spec else None
        bare = Guard(env, Bare(A, S=1), read=self._unread, actions=self.action_map, during=" of random play")
        self._trial = Trials(bare, limit or LONGEST_H)
        if H is None and limit is None:
            H = self._chosen["H"]["H"] = self._trial.H(FEW_EPISODES)
        # no step beyond the environment's own limit is ever seen, and an optimistic agent would value it for ever
        H = check_int(id, "H", limit if H is None else H, low=1, high=limit)
        self._view = EnvView(id, env, self.action_map, H, self._door)
        rule = RewardRule(id, reward, reward_low, reward_high, getattr(env.unwrapped, "reward_range", None))
        find_rewards, find_features = partial(self._paid, rule), partial(self._mapped, features, given)
        later, known = dict[str, Callable[[], Any]](), dict[str, Any](A=A, H=H, stationary=True)
        if rule.known is None:
            later["reward_range"] = find_rewards
        else:
            known |= find_rewards()
        if features is None and not given and self._seen_plainly():
            later |= dict.fromkeys(("features", "d"), find_features)
            known |= self._described(None)
        else:
            known |= find_features()
        self.task = Task.put_off(later, **known) if later else Task(**known)

    def _remembering(self, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        return env if self.history == 1 else History(env, self.action_map, self.history)

    @property
    def outside(self) -> gymnasium.Env[Any, Any]:
        """The environment as it was given: it shows one observation at a time."""
        return self.env if self.history == 1 else self.env.env  # type: ignore[attr-defined]

    def reader(self) -> Callable[..., State]:
        """From what the environment as it was given shows, and the action before it, to a state.

        Without an action an episode begins. Each episode that goes on beside others needs a reader of its own.
        """
        if self.history == 1:
            return lambda observation, action=None: self.state_of(observation)
        window = Window(self.outside.observation_space, self.action_map, self.history)
        return lambda observation, action=None: self.state_of(window(observation, action))

    def _paid(self, rule: RewardRule) -> dict[str, Any]:
        """The range of rewards; random play where nobody knows it."""
        self._check_between()
        low, high, self._chosen["rewards"] = rule.found(self._trial)
        self._pay = None if rule.strict else Pay(low, high, warns=rule.warns)
        return {"reward_range": (low, high)}

    def _seen_plainly(self) -> bool:
        """Whether observations are vectors as long as nobody asks for features; they are read so then."""
        view = self._view
        finite = counted(view.id, view.space) if whole(view.space) else None
        if finite is not None and finite.S is not None:  # features that take no random play
            return False
        try:
            plain = numbers(view.id, view.space)
        except InvalidParameter:  # as they say who make the features
            return False
        self._read_by(plain)
        return True

    def _described(self, S: int | None) -> dict[str, Any]:
        """What is known of states as they are read."""
        shape = self.observation_space.shape
        names = gym_names(self.id, S, self.action_map.A, math.prod(shape or ()), self._sizes)
        size = None if shape is None else 8 * math.prod(shape)
        return {"S": S, "state_bytes": size, "state_fields": names.fields, "action_names": names.actions}

    def _check_between(self) -> None:
        """Random play would end an episode without a word to whoever plays it."""
        if self.as_it_is and not self._between:
            raise InvalidParameter(
                f"The features and the range of rewards of '{self.id}' must be asked for before an episode begins: "
                "random play may come first."
            )

    @property
    def chosen(self) -> dict[str, Any]:
        """What it chose, since it was neither given nor known."""
        self._settle()
        return {name: value for found in self._chosen.values() for name, value in found.items()}

    def _settle(self) -> None:
        """Find what was put off, unless it is to stay as it is."""
        if not self.as_it_is:
            self.task.reward_range, self.task.features  # noqa: B018

    def _mapped(self, features: str | FeatureMap | None, given: dict[str, Any]) -> dict[str, Any]:
        """Features and what is known of states; how observations are read follows them."""
        self._check_between()
        id, A, view = self.id, self.action_map.A, self._view
        if features is None or isinstance(features, str):
            name = usual_map(view, given) if features is None else features
            reading, phi = map_by_name(name, view, given)
            if features is None:
                self._chosen["features"] |= {"features": name, "d": phi.d}
            if any(is_image(part) for part in leaves(view.space).values()):
                self._chosen["features"]["image"] = f"{SIDE}x{SIDE} grey levels"
        else:
            if given:
                name, value = next(iter(given.items()))
                invalid(f"'{id}'", name, "left out where 'features' is a FeatureMap", value)
            if getattr(features, "A", A) != A:
                raise InvalidParameter(f"The features of '{id}' must be for {A} actions. Got {features.A}.")
            if not isinstance(features, FeatureMap):
                invalid(f"'{id}'", "features", "a name or a FeatureMap", features)
            phi, reading = features, finite_reading(view, features) or Reading(read=np.array, space=view.space)
        self._read_by(reading)
        return self._described(reading.S) | {"features": phi, "d": phi.d}

    def _read_by(self, reading: Reading) -> None:
        """From observations to states."""
        self._read, self.observation_space, self._sizes = reading.read, reading.space, reading.sizes

    def state_of(self, observation: Any) -> State:
        """The state that an agent sees for an observation."""
        return self._read(self._door(observation))

    def pay(self, reward: float) -> float:
        """The reward that an agent gets for one of the environment."""
        return reward if self._pay is None else float(self._pay(reward))

    def beside(self, env: gymnasium.Env[Any, Any]) -> GymTask:
        """The same task in another copy of the environment: what is read, paid and numbered is the same."""
        self._settle()
        other = copy(self)
        other.env, other._pay = self._remembering(env), copy(self._pay)
        return other

    def _unread(self, observation: Any) -> int:
        """Of random play before anything is learned: it looks at lengths and rewards, so that all states are one."""
        self._door(observation)
        return 0

    @property
    def interactions(self) -> int:
        """Steps that were played before the first episode: random play for lengths, rewards and features."""
        return self._trial.steps + self._view.steps

    @property
    def notes(self) -> list[str]:
        """What is left out of the observations, and whether rewards were."""
        found = text_notes(self.id, self.env.observation_space)
        if self._pay is not None and self._pay.warns and self._pay.clipped:
            low, high = self.task.reward_range
            fix = "give reward_low and reward_high"
            found.append(f"Rewards of '{self.id}' outside {low:g} to {high:g} were clipped to that range: {fix}.")
        if self._door.outside:
            found.append(f"An observation of '{self.id}' was outside its space: {self._door.outside}.")
        return found

    @property
    def earned(self) -> float | None:
        """The rewards of the episode so far as the environment paid them; None where they are passed on as they are."""
        return None if self._pay is None else self._pay.earned

    def random_rewards(self, episodes: int) -> tuple[float, ...]:
        """The different rewards of so many episodes of random play, from the least to the largest, in any range."""
        return self._trial.rewards(episodes)

    @property
    def most_return(self) -> float | None:
        """More than this no episode can earn; None where the largest reward was guessed."""
        guessed = not self.task.knows("reward_range") or "reward_high" in self._chosen["rewards"]
        return None if guessed else self.task.H * max(0.0, self.task.reward_range[1])

    @property
    def unwrapped(self) -> Any:
        """This adapter: what is inside has no task."""
        return self

    @property
    def _np_random(self) -> Any:  # type: ignore[override]
        """Gymnasium's checker looks for it in `unwrapped`, which is the adapter."""
        return self.env.unwrapped._np_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[State, dict[str, Any]]:
        self._between = True
        self._settle()
        self._h, self._between = 0, False
        if self._pay is not None:
            self._pay.earned = 0.0
        goes_on = self._left if seed is None else None
        state, info = goes_on or self.env.reset(seed=seed, options=options)
        self.action_mask = self.action_map.mask(self.env, info)
        return self.state_of(state), info

    def step(self, action: int) -> tuple[State, Any, bool, bool, dict[str, Any]]:
        """One step; truncated also after step H."""
        if not 0 <= action < self.task.A:
            raise InvalidParameter(f"The action of '{self.id}' must be in [0, {self.task.A - 1}]. Got {action!r}.")
        state, reward, terminated, truncated, info = self.env.step(self.action_map(action))
        self._h += 1
        if self._pay is not None:
            reward = self._pay(reward)
        ended, cut = check_flag("terminated", terminated), check_flag("truncated", truncated)
        self._left = (state, info) if self.continuing and not (ended or cut) else None
        cut |= self._h >= self.task.H
        self._between = ended or cut
        self.action_mask = None if self._between else self.action_map.mask(self.env, info)
        return self.state_of(state), reward, ended, cut, info
