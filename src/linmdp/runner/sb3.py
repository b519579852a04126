"""Stable-Baselines3's DQN and PPO as agents: what a user would pick, on raw observations, for as many episodes.

The library drives the environment itself, so these agents bring their own loop (`SB3Agent.learn`); `linmdp.run` calls
it. Everything of the library is imported when an agent is made, never before.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Agent, StateDict, check_reward
from linmdp.agents.budget import OBJECTS, Choice, chosen_within, descending
from linmdp.errors import InvalidParameter, check_int, check_number, invalid
from linmdp.runner.progress import Advance, progress_bar
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import Array, EpisodeRecord, IntArray, RunResult, State, cost_points

OURS = ("self", "policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size")
"""What we say ourselves; a user's parameters are the others that can be written in a spec."""

LARGEST_BUFFER = 1_000_000
"""The library's default. A run that is shorter gets room for its own steps: more would never be filled."""


class SB3Agent(Agent):
    """An agent of Stable-Baselines3, with the library's own parameters and defaults (policy "MlpPolicy").

    It learns on the raw observations of the environment, not on features. Each run starts anew.
    """

    algorithm: ClassVar[str]
    sized: ClassVar[str]
    """The parameter that says how many steps its buffer holds."""

    def __init__(self, env: Any, *, episodes: int | None = None, **parameters: Any) -> None:
        from linmdp.envs.raw import Nobody, RawEpisodes, Scaler

        super().__init__(env.unwrapped.task)
        self.max_bytes, self.chosen = parameters.pop("max_bytes", None), Choice()
        self._given, known = parameters, self.parameters()
        for name, value in parameters.items():
            _check_value(self.name, known[name], value)
        self._scaler = Scaler(env)
        steps = None if episodes is None else episodes * self.task.H
        raw = RawEpisodes(env, self._scaler, 0, Nobody())
        if self.max_bytes is not None:
            self._fit(raw, steps)
        self._model = self._made(raw, steps, seed=0)

    def _fit(self, raw: Any, steps: int | None) -> None:
        """Choose the size of the buffer that `max_bytes` leaves room for; the networks are what they are."""
        given = {name: p.default for name, p in self.parameters().items()} | self._filled(steps)
        most, least = int(given[self.sized]), min(int(given[self.sized]), int(given["batch_size"]))
        held = {}
        for size in (least, 2 * least):
            self.chosen = {self.sized: size}
            held[size] = trained_bytes(self._made(raw, steps, seed=0))
        each = (held[2 * least] - held[least]) / least

        def bytes_of(choice: Choice) -> int:
            size = int(choice[self.sized])
            return math.ceil(held[least] + each * (size - least)) + OBJECTS

        self.chosen = chosen_within(
            self.name, self.max_bytes, ({self.sized: size} for size in descending(most, least)), bytes_of
        )

    @classmethod
    def library(cls) -> Any:
        """The class in stable_baselines3."""
        try:
            import stable_baselines3
        except ModuleNotFoundError as error:
            raise InvalidParameter(
                f"{cls.name} needs {error.name}, which is not installed: pip install 'linmdp[baselines]'."
            ) from error
        return getattr(stable_baselines3, cls.algorithm)

    @classmethod
    def parameters(cls) -> dict[str, inspect.Parameter]:
        """The parameters of the library's constructor that a spec can give."""
        found = inspect.signature(cls.library().__init__).parameters
        own = {n: p for n, p in found.items() if n not in OURS and not n.endswith(("_class", "_kwargs", "_model"))}
        return own | {"max_bytes": inspect.Parameter("max_bytes", inspect.Parameter.KEYWORD_ONLY, default=None)}

    def get_params(self) -> dict[str, Any]:
        """Every parameter: as given, or the library's default."""
        defaults = {name: p.default for name, p in self.parameters().items()}
        return defaults | self._filled(None) | {"max_bytes": self.max_bytes}

    def _filled(self, steps: int | None) -> dict[str, Any]:
        """What is passed to the library."""
        return self._given | {name: value for name, value in self.chosen.items() if name != "bytes"}

    def _made(self, env: Any, steps: int | None, seed: int) -> Any:
        from stable_baselines3.common.vec_env import DummyVecEnv

        given = self._filled(steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # its advice: sizes of batches, memory of buffers
            try:
                return self.library()("MlpPolicy", DummyVecEnv([lambda: env]), seed=seed, device="cpu", **given)
            except (AssertionError, TypeError, ValueError) as error:
                words = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise InvalidParameter(f"stable-baselines3 can not make {self.name} with {given}: {words}") from error

    def act(self, h: int, state: State) -> int:
        """The greedy action."""
        return int(self._model.predict(self._scaler(state), deterministic=True)[0])

    def policy(self, h: int) -> Array | IntArray:
        """The greedy action of each state, (S,)."""
        assert self.task.S is not None
        actions: IntArray = self._model.predict(np.arange(self.task.S), deterministic=True)[0]
        return actions

    def q_values(self, h: int, state: State) -> Array:
        """One for the greedy action, zero for the others: the library's agents do not all estimate Q."""
        return np.where(np.arange(self.task.A) == self.act(h, state), 1.0, 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of the networks, their gradients, the optimizer's state, and the replay or rollout buffer."""
        return model_bytes(self._model)

    def bytes_after(self, episodes: int) -> int:
        """With the gradients and Adam's two moments, each of the networks' size, that come with the first update."""
        return trained_bytes(self._model)

    def state_dict(self) -> StateDict:
        raise InvalidParameter(
            f"{self.name} can not be saved here: stable-baselines3 keeps its state in its own files."
        )

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.state_dict()

    def learn(
        self,
        env: Any,
        *,
        episodes: int,
        seed: int,
        progress: bool | Advance,
        eval_every: int,
        on_episode: Callable[[EpisodeRecord], None] | None,
        name: str,
    ) -> RunResult:
        """One run of that many episodes, in the library's own loop, on one thread."""
        import torch
        from threadpoolctl import threadpool_limits

        from linmdp.envs.raw import RawEpisodes

        env_seed, own_seed = (int(s.generate_state(1)[0]) for s in np.random.SeedSequence(seed).spawn(2))
        steps, threads = episodes * self.task.H, torch.get_num_threads()
        clock = Stopwatch()
        with progress_bar("episodes", episodes, progress) as advance, threadpool_limits(1, user_api="blas"):
            diary = _Diary(env, self, episodes, eval_every, clock, advance, on_episode)
            raw = RawEpisodes(env, self._scaler, env_seed, diary)
            torch.set_num_threads(1)
            try:
                self._model = self._made(raw, steps, own_seed)
                with clock:
                    self._model.learn(steps, callback=lambda *_: raw.finished < episodes, log_interval=None)
            finally:
                torch.set_num_threads(threads)
        return RunResult(
            env=name,
            agent=self.name,
            params=self.get_params() | self._filled(steps),
            seed=seed,
            episodes=episodes,
            eval_every=eval_every,
            regret=np.cumsum(diary.regret) if diary.meter.known else None,
            rewards=diary.rewards,
            peak_bytes=max(diary.peak, self.nbytes),
            feature_bytes=0,
            cpu_seconds=clock.cpu,
            wall_seconds=clock.wall,
            updates=int(self._model._n_updates),
            resets=0,
            saturated=0.0,
            tied=0.0,
            drift=None,
            costs=diary.costs,
        )


class SB3DQN(SB3Agent):
    """DQN of Stable-Baselines3 on raw observations; `buffer_size` is at most the steps of the run unless given."""

    name = "sb3-dqn"
    algorithm = "DQN"
    sized = "buffer_size"

    def _filled(self, steps: int | None) -> dict[str, Any]:
        room = LARGEST_BUFFER if steps is None else min(LARGEST_BUFFER, steps)
        return {"buffer_size": room} | super()._filled(steps)


class SB3PPO(SB3Agent):
    """PPO of Stable-Baselines3 on raw observations; fewer than `n_steps` (2,048) steps are no update."""

    name = "sb3-ppo"
    algorithm = "PPO"
    sized = "n_steps"


def model_bytes(model: Any) -> int:
    """Bytes of the networks, their gradients, the optimizer's state, and the replay or rollout buffer."""
    policy = model.policy
    tensors = [p.grad for p in policy.parameters() if p.grad is not None]
    tensors += [v for state in policy.optimizer.state.values() for v in state.values() if hasattr(v, "nbytes")]
    return _lasting_bytes(model) + int(sum(t.nbytes for t in tensors))


def _lasting_bytes(model: Any) -> int:
    """Bytes of the networks and the buffer, which are there from the start."""
    tensors = [*model.policy.parameters(), *model.policy.buffers()]
    buffers = (getattr(model, name, None) for name in ("replay_buffer", "rollout_buffer"))
    arrays = [a for buffer in buffers if buffer is not None for a in vars(buffer).values() if isinstance(a, np.ndarray)]
    return int(sum(t.nbytes for t in tensors) + sum(a.nbytes for a in arrays))


def trained_bytes(model: Any) -> int:
    """The same once gradients and Adam's two moments are there, each of the networks' size."""
    return int(_lasting_bytes(model) + 3 * sum(p.nbytes for p in model.policy.parameters()) + 4096)


def _check_value(owner: str, parameter: inspect.Parameter, value: Any) -> None:
    """A value of the kind that the library's default is of."""
    name, default = parameter.name, parameter.default
    if isinstance(default, bool):
        if not isinstance(value, bool):
            invalid(owner, name, "true or false", value)
    elif isinstance(default, int) and parameter.annotation is not float:
        low = -1 if default < 0 or name == "gradient_steps" else 0 if name == "learning_starts" else 1
        check_int(owner, name, value, low=low)
    elif not (default is None and value is None):
        check_number(owner, name, value, low=0.0)


class _Diary:
    """Rewards, regret and bytes of a run, episode by episode; the one beyond the last is begun and not played."""

    def __init__(
        self,
        env: Any,
        agent: SB3Agent,
        episodes: int,
        eval_every: int,
        clock: Stopwatch,
        advance: Advance,
        on_episode: Callable[[EpisodeRecord], None] | None,
    ) -> None:
        from linmdp.runner.loop import RegretMeter

        self.meter = RegretMeter(env.unwrapped, agent, eval_every)
        self.rewards, self.regret, self.peak, self.steps = np.zeros(episodes), np.zeros(episodes), 0, 0
        self.costs: list[list[float]] = []
        self._points = set(cost_points(episodes))
        self._range = agent.task.reward_range
        self._agent, self._clock, self._advance, self._on_episode = agent, clock, advance, on_episode

    def options(self, k: int) -> dict[str, Any] | None:
        """Close the episode before, and look at the policy where it is due."""
        cpu = self._clock.cpu_so_far
        with self._clock.paused():
            if k > 0:
                self._close(k - 1, cpu)
            self._agent.policy_version = k + 1
            if k < len(self.rewards) and self.meter.due(k):
                self.meter.evaluate()
        return self.meter.reset_options()

    def _close(self, k: int, cpu: float) -> None:
        held = self._agent.nbytes
        self.peak = max(self.peak, held)
        if k + 1 in self._points:
            self.costs.append([k + 1, self.peak, cpu, self.steps])
        if self._on_episode:
            regret = float(self.regret[k]) if self.meter.known else None
            self._on_episode(EpisodeRecord(k, float(self.rewards[k]), regret, held))
        self._advance()

    def started(self, k: int, state: State) -> None:
        """Note what the policy of the moment loses from there."""
        if k < len(self.regret):
            self.regret[k] = self.meter.gap(state)

    def paid(self, k: int, h: int, reward: Any) -> None:
        """Add up the rewards, and the steps."""
        self.steps += 1
        self.rewards[k] += check_reward(reward, self._range, k, h)
