"""An agent that learns an environment episode by episode, for as long as somebody wants, from play or from logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.envs.guard import Guard, as_it_is
from linmdp.envs.linear import LinearMDPEnv
from linmdp.envs.streams import Lived, Row, Streams
from linmdp.errors import check_int
from linmdp.results.summary import most
from linmdp.runner.loop import steps_of
from linmdp.runner.measured import Stopwatch, one_blas_thread
from linmdp.runner.progress import RECENT, progress_bar, recent
from linmdp.types import EpisodeRecord, State, Transition

EPISODES, EVALUATION, TIES = 2, 3, 4
"""What a seed is drawn for; 0 and 1 are the environment and the agent of a run."""

Callback = Callable[[EpisodeRecord], Any]


class Course:
    """What an agent has played so far, and how it goes on.

    Episode k has a seed of its own, unless the environment's own random stream can be saved: then that goes on.

    Attributes
    ----------
    guard : the environment as it is played
    steps, returns : what was played so far; what each episode earned
    peak, planning : the most bytes that the agent has held, and that planning has taken on top, where that is known
    clock : the time that was spent on it
    """

    def __init__(self, agent: Agent, env: Any, vector: Any | None, seed: int) -> None:
        self.agent, self.env, self.vector, self.seed, self.guard = agent, env, vector, seed, Guard(env)
        env_seed, agent_seed = np.random.SeedSequence(seed).spawn(2)
        agent.rng = np.random.default_rng(agent_seed)
        self._first_seed: int | None = int(env_seed.generate_state(1)[0])
        self.steps, self.returns, self.clock = 0, list[float](), Stopwatch()
        self.peak, self.planning = agent.nbytes, agent.planning_bytes
        self._begun, self._observed = False, 0
        """Whether an episode of the agent has begun, and how many of its steps it has observed."""
        self._continuing = bool(getattr(env.unwrapped, "continuing", False))
        self._asides = 0
        """How often somebody else has played the environment: streams must begin anew then."""

    def learn(self, what: str, budget: int, progress: bool, callback: Callback | None) -> None:
        """Play so many "episodes", or whole episodes until so many "steps" are played."""
        done = 0
        with one_blas_thread(), as_it_is(self.env), self.clock, progress_bar(what, budget, progress) as advance:
            played = self._played()
            while done < budget:
                length = self._learn_one(played)
                gained = 1 if what == "episodes" else min(length, budget - done)
                done += gained
                advance(gained, lambda: recent(np.array(self.returns[-RECENT:]), None))
                if callback is None:
                    continue
                before = self._asides
                with self.clock.paused():
                    record = EpisodeRecord(len(self.returns) - 1, self.returns[-1], None, self.agent.nbytes)
                    if callback(record) is False:
                        break
                played = played if before == self._asides else self._played()

    def observe(self, episodes: Iterable[list[Transition]]) -> None:
        """Learn from episodes of somebody else as if they had been played, and plan."""
        with one_blas_thread(), as_it_is(self.env), self.clock:
            for episode in episodes:
                self._begin()
                try:
                    self._observe((step, None) for step in episode)
                finally:
                    self._end()
            self._begin()
        self._weigh()

    def _learn_one(self, played: Iterator[Lived]) -> int:
        """Plan, play and learn from one episode; its steps. An episode that fails ends where it failed."""
        self._begin()
        try:
            length, earned, unseen = next(played)
            self._observe(unseen)
        finally:
            self._end()
        self.returns.append(earned)
        self.steps += length
        self._weigh()
        return length

    def _weigh(self) -> None:
        self.peak, self.planning = max(self.peak, self.agent.nbytes), most((self.planning, self.agent.planning_bytes))

    def _begin(self) -> None:
        """Begin an episode of the agent, unless one has begun that has no step."""
        if not self._begun:
            self.agent.begin_episode()
        self._begun, self._observed = True, 0

    def _observe(self, rows: Iterable[Row]) -> None:
        for step, mask in rows:
            self.agent.observe_within(step, mask)
            self._observed += 1

    def _end(self) -> None:
        """End the agent's episode; one without a step is left for the next."""
        if self._observed:
            self.agent.end_episode()
            self._begun = False

    def _played(self) -> Iterator[Lived]:
        """Episodes without end."""
        if self.vector is None:
            return self._one_by_one()
        return Streams(self.vector, self.env).episodes(self._seed_of(EPISODES, len(self.returns)), self._act)

    def _one_by_one(self) -> Iterator[Lived]:
        while True:
            k, paid = len(self.returns), 0.0
            state = self.guard.reset(k, self._reset_seed(k))
            for step in steps_of(self.guard, self.agent, state, k):
                paid += step.reward
                self._observed += 1
            yield Lived(self._observed, self.guard.original(paid), [])

    def _act(self, guard: Guard, h: int, state: State) -> int:
        return self.agent.act_within(h, state, guard.mask)

    def _seed_of(self, purpose: int, k: int) -> int:
        return int(np.random.SeedSequence(self.seed, spawn_key=(purpose, k)).generate_state(1)[0])

    def evaluation_seed(self, k: int) -> int:
        """That of episode k of an evaluation."""
        return self._seed_of(EVALUATION, k)

    def _reset_seed(self, k: int) -> int | None:
        """With what episode k is reset; None where the environment's own random stream goes on."""
        if not (isinstance(self.env.unwrapped, LinearMDPEnv) or self._continuing):
            return self._seed_of(EPISODES, k)
        first, self._first_seed = self._first_seed, None
        return first

    def _begin_anew(self) -> None:
        """Where nobody can say how an environment goes on (it was played by others, or saved), it has a new start."""
        if self._continuing:
            self._first_seed = self._seed_of(EPISODES, len(self.returns))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is played inside leaves no trace in what is learned afterwards."""
        inner = self.env.unwrapped
        before = inner.random_state() if isinstance(inner, LinearMDPEnv) else None
        self._asides += 1
        try:
            with as_it_is(self.env):
                yield
        finally:
            if before is not None:
                inner.restore_random_state(before)
            self._begin_anew()

    def anew(self) -> None:
        """The next step begins an episode of the agent."""
        self._begun = False

    def state(self) -> dict[str, Any]:
        """How far it is, beside the agent and the returns; whoever goes on from here begins an episode anew."""
        self.anew()
        self._begin_anew()
        inner = self.env.unwrapped
        found: dict[str, Any] = {"steps": self.steps, "peak": self.peak, "first": self._first_seed}
        found["planning"] = self.planning
        return found | ({"random": inner.random_state()} if isinstance(inner, LinearMDPEnv) else {})

    def restore(self, state: Mapping[str, Any], returns: np.ndarray) -> None:
        """Become what `state` saved."""
        self.returns[:] = [float(x) for x in returns]
        self.steps = check_int("a learner file", "steps", state["steps"], low=len(returns))
        self.peak = check_int("a learner file", "peak", state["peak"], low=0)
        planning = state.get("planning")  # older files do not have it
        if planning is not None:
            check_int("a learner file", "planning", planning, low=0)
        self.planning = most((planning, self.agent.planning_bytes))
        first = state["first"]
        self._first_seed = None if first is None else check_int("a learner file", "first", first, low=0)
        if "random" in state:
            self.env.unwrapped.restore_random_state(state["random"])
