"""Rewards that come later: steps wait for theirs, and an episode is learned when all of its steps are paid."""

from __future__ import annotations

from typing import NamedTuple

from linmdp.agents.base import Agent
from linmdp.agents.merge import agent_of
from linmdp.errors import check_int, invalid
from linmdp.types import BoolArray, State, Transition


class _Episode(NamedTuple):
    """Its steps, and what may be done after each; those that are not paid, by their tickets."""

    steps: list[tuple[Transition, BoolArray | None]]
    unpaid: dict[int, int]


class Late:
    """An agent that is paid later: `observe` returns a ticket, and `pay(ticket, reward)` may come at any time.

    Episodes are learned when they are paid, the oldest first, before the next one begins. At most `most` steps wait;
    of more, the oldest episode is `dropped`.

    Parameters
    ----------
    agent : any agent of linmdp
    most : steps that wait at once
    """

    def __init__(self, agent: Agent, *, most: int = 10_000) -> None:
        agent = agent_of("Late", agent)
        if agent.whole_episodes:
            invalid("Late", "agent", "one to which it does not matter who plays an episode", agent.name)
        self.agent, self.dropped = agent, 0
        self.most = check_int("Late", "most", most, low=agent.task.H)
        self._waiting, self._now = list[_Episode](), _Episode([], {})
        self._tickets, self._begun = 0, False

    @property
    def waiting(self) -> int:
        """Steps that wait now."""
        return sum(len(episode.steps) for episode in (*self._waiting, self._now))

    def begin_episode(self) -> None:
        """Learn what is paid, and plan."""
        waiting, self._waiting = self._waiting, [each for each in self._waiting if each.unpaid]
        for episode in (each for each in waiting if not each.unpaid):
            self._begin()
            for step, mask in episode.steps:
                self.agent.observe_within(step, mask)
            self.agent.end_episode()
            self._begun = False
        self._begin()

    def _begin(self) -> None:
        """Begin an episode of the agent, unless one has begun that has no step."""
        if not self._begun:
            self.agent.begin_episode()
        self._begun = True

    def act(self, h: int, state: State, mask: BoolArray | None = None) -> int:
        """The action for `state` at step h, of those in `mask`."""
        return self.agent.act_within(h, state, mask)

    def observe(
        self, h: int, state: State, action: int, next_state: State, terminated: bool, mask: BoolArray | None = None
    ) -> int:
        """What came of the action, but for its reward; the ticket to pay it with. `mask` is that of the next state."""
        ticket, self._tickets = self._tickets, self._tickets + 1
        self._now.unpaid[ticket] = len(self._now.steps)
        self._now.steps.append((Transition(h, state, action, 0.0, next_state, terminated), mask))
        while self.waiting > self.most:
            self._waiting.pop(0)
            self.dropped += 1
        return ticket

    def end_episode(self) -> None:
        """The episode is over; it is learned when it is paid."""
        if self._now.steps:
            self._waiting.append(self._now)
        self._now = _Episode([], {})

    def pay(self, ticket: int, reward: float) -> bool:
        """The reward of that step; False where nobody waits for it any more: it was paid, or dropped."""
        if not 0 <= ticket < self._tickets:
            invalid("pay", "ticket", "one that observe() has returned", ticket)
        for episode in (*self._waiting, self._now):
            if (i := episode.unpaid.pop(ticket, None)) is not None:
                step, mask = episode.steps[i]
                episode.steps[i] = step._replace(reward=float(reward)), mask
                return True
        return False
