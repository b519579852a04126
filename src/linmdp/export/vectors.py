"""What the Python agent sees, chooses and believes, with the random numbers of a device: for the self-test in C."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.lsvi import LSVIAgent
from linmdp.envs.guard import Guard
from linmdp.export.numbers import braces, filled, real, reals
from linmdp.types import Array, State

_32 = 0xFFFFFFFF


def mixed(x: int) -> int:
    """A fixed mixing of 32 bits."""
    x = (x ^ (x >> 16)) * 0x7FEB352D & _32
    x = (x ^ (x >> 15)) * 0x846CA68B & _32
    return x ^ (x >> 16)


def draw(key: int, index: int) -> int:
    """Number `index` under a key, even over 32 bits."""
    return mixed((key + mixed((index + 0x9E3779B9) & _32)) & _32)


class DeviceDraws:
    """Stands in for the generator of an agent, so that it draws what the learner in C draws.

    Each call of a method is one use, with a key of its own.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.uses = seed & _32, 0

    def _key(self) -> int:
        key = draw(self.seed, self.uses)
        self.uses += 1
        return key

    def random(self, size: int) -> Array:
        """`size` numbers in [0, 1)."""
        key = self._key()
        return np.array([draw(key, i) / 2**32 for i in range(size)])


GAP = 1e-3
"""Choices of the frozen policy are recorded where the best action is better by so much: no rounding turns them."""


CHOSEN = ("storage", "M")
"""Parameters of a learner on a device that `max_bytes` may choose."""


class SelfTestStep(NamedTuple):
    """One step: what `linmdp_recorded` holds."""

    first: bool
    state: State
    action: int
    reward: float
    next_state: State
    terminated: bool
    q: Array


class PolicyStep(NamedTuple):
    """One decision of the frozen policy."""

    h: int
    state: State
    action: int


def new_agent(agent: Agent, seed: int) -> Agent:
    """The same agent before it has learned anything, in float64, with the random numbers of a device."""
    parameters = agent.get_params()
    if isinstance(agent, LSVIAgent):  # what `max_bytes` chose is given outright, so that it is not chosen again
        within = {name: agent.chosen_within[name] for name in CHOSEN if name in agent.chosen_within}
        parameters |= within | {"max_bytes": None}
    if "dtype" in parameters:
        parameters["dtype"] = "float64"
    make: Any = type(agent)
    fresh: Agent = make(agent.task, **parameters)
    fresh.rng = DeviceDraws(seed)  # type: ignore[assignment]
    return fresh


def record(env: Any, agent: Agent, steps: int, seed: int, kind: str) -> list[SelfTestStep]:
    """Let `agent` learn in `env` for that many steps, rounded up to whole episodes; it sees what a device would see."""
    recorded: list[SelfTestStep] = []
    guard, k = Guard(env), 0
    while len(recorded) < steps:
        agent.begin_episode()
        state, k = as_seen(guard.reset(k, None if k else seed), kind), k + 1
        for h in range(agent.task.H):
            q, action = np.array(agent.q_values(h, state)), agent.act(h, state)
            following, reward, terminated, truncated = guard.step(k - 1, h, action)
            following = as_seen(following, kind)
            agent.observe(h, state, action, reward, following, terminated)
            recorded.append(SelfTestStep(h == 0, state, action, reward, following, terminated, q))
            if terminated or truncated:
                break
            state = following
        agent.end_episode()
    return recorded


def as_seen(state: State, kind: str) -> State:
    """The state in numbers of that kind; a finite one as it is."""
    return np.asarray(state, dtype=np.float32) if kind == "float" and np.ndim(state) else state


def decisions(agent: Agent, states: list[State], most: int = 100) -> list[PolicyStep]:
    """What the frozen policy does in some of the states, at steps all over the horizon; nothing before a planning."""
    found: list[PolicyStep] = []
    for i, state in enumerate(states if agent.policy_version else []):
        h = i % agent.task.H
        q = np.sort(agent.q_values(h, state))
        if len(found) < most and (len(q) == 1 or q[-1] - q[-2] > GAP):
            found.append(PolicyStep(h, state, int(np.argmax(agent.q_values(h, state)))))
    return found


def vectors_code(steps: list[SelfTestStep], decided: list[PolicyStep], seed: int, kind: str) -> str:
    """selftest_vectors.c"""
    lines = []
    for s in steps:
        states = c_state(s.state, kind), c_state(s.next_state, kind)
        plain = real(s.reward, kind), str(s.action), str(int(s.first)), str(int(s.terminated))
        lines.append("    " + braces((*states, *plain, braces(reals(s.q, "double")))))
    asked = ["    " + braces((c_state(x.state, kind), str(x.h), str(x.action))) for x in decided]
    values = {
        "seed": seed,
        "steps": len(steps),
        "decided": len(decided),
        "recorded": ",\n".join(lines),
        "decisions": ",\n".join(asked) or "    {" + (c_state(steps[0].state, kind) + ", 0, 0}"),
    }
    return filled("selftest_vectors.c", values)


def c_state(state: State, kind: str) -> str:
    """A state as an initialiser of `linmdp_kept`."""
    if np.ndim(state) == 0:
        return str(int(state))
    return braces([braces(reals(np.asarray(state, dtype=np.float64), kind))])
