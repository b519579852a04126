"""Agents of other libraries, which drive the environment themselves: the same measurements around a foreign loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.raw import RawEpisodes, Watch
from linmdp.runner.progress import Meter
from linmdp.types import EpisodeRecord, State

if TYPE_CHECKING:
    from linmdp.runner.loop import RunState

OnEpisode = Callable[[EpisodeRecord], None]


def play_external(state: RunState, agent: SB3Agent, advance: Meter, on_episode: OnEpisode | None) -> None:
    """All episodes of a run, in the library's own loop. Each run starts anew, from raw observations."""
    assert state.next_seed is not None
    raw = RawEpisodes(state.env, state.next_seed, Measurements(state, advance, on_episode))
    agent.policy_version = agent.updates = agent.resets = 0
    state.before, state.peak, state.feature_bytes = (0, 0, 0), 0, 0
    agent.learn(raw, episodes=state.episodes, clock=state.clock)
    state.peak = max(state.peak, agent.nbytes)


class Measurements(Watch):
    """Rewards, regret and bytes, episode by episode.

    The library also begins the episode after the last one, and does not play it.
    """

    def __init__(self, state: RunState, advance: Meter, on_episode: OnEpisode | None) -> None:
        self._state, self._advance, self._on_episode = state, advance, on_episode
        self._earned = self._gap = 0.0

    def options(self, k: int) -> dict[str, Any] | None:
        """Finish the episode before, and evaluate the policy where it is due."""
        state, cpu = self._state, self._state.clock.cpu_so_far
        with state.clock.paused():
            if k > 0:
                state.finish_episode(state.guard.original(self._earned), self._gap, cpu)
                if self._on_episode:
                    self._on_episode(state.record())
                self._advance(1, state.recent)
            if k < state.episodes:
                state.agent.policy_version = k + 1
                if state.meter.due(k):
                    state.meter.evaluate()
        return state.meter.reset_options()

    def started(self, k: int, state: State) -> None:
        """Note what the current policy loses from there."""
        if k < self._state.episodes:
            self._earned, self._gap = 0.0, self._state.meter.gap(state)

    def paid(self, reward: float) -> None:
        """Add up the rewards, and the steps."""
        self._state.steps += 1
        self._earned += reward
