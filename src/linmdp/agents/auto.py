"""The learner with no parameter: what is known of a task decides which agent plays it, each choice with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.base import Agent, StateDict
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.agents.lsvi_scouts import LSVIUCBScouts
from linmdp.errors import InvalidParameter, invalid
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray, MorePossible, State, Task

MANY_STATES = 20_000
"""From so many on no scouts are sent: their policy is a table of all states and steps."""


class Chosen(NamedTuple):
    """One choice, and why."""

    parameter: str
    value: Any
    reason: str


def decisions(task: Task) -> tuple[type[Agent], list[Chosen]]:
    """The agent for a task, and its parameters where they are not its defaults."""
    own = task.brings("reward_range") and task.brings("features")  # without random play, whoever else has asked
    if own and isinstance(task.features, TableFeatures):
        shared = "does not depend" if task.stationary else "depends"
        kind = LSVIUCBScouts if task.features.S < MANY_STATES else LSVIUCB  # a scout's policy is a table
        return kind, [
            Chosen("agent", kind.name, f"the task comes with features of its own, d={task.d}, for {task.S} states"),
            Chosen("storage", "counts", f"{task.S} states can be counted, so that memory does not grow"),
            Chosen("stationary", task.stationary, f"the task says that what happens {shared} on the step"),
        ]
    states = "numbers" if task.S is None else f"one of {task.S} numbers"
    unused = "; it does without the features that were given" if task.S is None and task.brings("features") else ""
    clock = [] if task.stationary else [Chosen("step", True, "what happens depends on the step: it is a coordinate")]
    return LSVIGP, [
        Chosen("agent", LSVIGP.name, f"states are {states}, and the data say which are alike{unused}"),
        *clock,
    ]


class Auto(Agent):
    """One learner for every task with discrete actions; `spec` is the agent that it chose, `reasons` say why.
    On features that a task brings along it is `lsvi-ucb-scouts` with width and lambda from the evidence (`lsvi-ucb`
    from 20,000 states on), on all other tasks `lsvi-gp`, on raw states. A parameter that is given changes that
    parameter, and nothing else.

    Parameters
    ----------
    task : what the environment tells an agent
    beta, replan, discount, scout, budget, settled, max_bytes : of the agent that it chose; none: that agent's default
    lam : of `lsvi-ucb` (`linmdp agents lsvi-ucb`)
    states, features, length, noise, exact, levels, kept, evidence, every : of `lsvi-gp` (`linmdp agents lsvi-gp`)
    """

    name = "auto"
    needs_features = False
    test_parameters = ({}, {"beta": 0.1})
    forwarded: ClassVar[tuple[str, ...]] = ("caps", "policy_version", "updates", "resets", "rng", "mask")
    """Attributes that are those of the agent inside."""

    def __init__(
        self,
        task: Task,
        *,
        beta: float | None = None,
        replan: float | None = None,
        lam: float | None = None,
        states: int | None = None,
        features: int | None = None,
        length: float | None = None,
        noise: float | None = None,
        exact: float | None = None,
        levels: int | None = None,
        kept: int | None = None,
        discount: float | None = None,
        evidence: int | None = None,
        scout: float | None = None,
        every: int | None = None,
        budget: float | None = None,
        settled: float | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        self.beta, self.replan, self.lam, self.discount = beta, replan, lam, discount
        self.states, self.features = states, features
        self.length, self.noise, self.exact, self.levels, self.kept = length, noise, exact, levels, kept
        self.evidence, self.scout, self.every, self.budget, self.settled = evidence, scout, every, budget, settled
        self.max_bytes = max_bytes
        kind, self._decisions = decisions(task)
        self._given = {name: value for name, value in self.get_params().items() if value is not None}
        try:
            self.inner = self._made(kind, task)
        except InvalidParameter as error:
            if max_bytes is None or kind is LSVIGP or "'max_bytes'" not in str(error):
                raise
            self._decisions = [Chosen("agent", LSVIGP.name, "counts of all states do not fit into max_bytes")]
            self.inner = self._made(LSVIGP, task)
        super().__init__(task)

    def _made(self, kind: type[Agent], task: Task) -> Agent:
        """The agent as it was decided, with what was given."""
        for name in self._given.keys() - kind.parameters().keys():
            invalid(self.name, name, f"left out where the agent is {kind.name}", self._given[name])
        chosen = {d.parameter: d.value for d in self._decisions if d.parameter in kind.parameters()}
        make: Callable[..., Agent] = kind
        return make(task, **chosen | self._given)

    def __getattribute__(self, name: str) -> Any:
        if name in Auto.forwarded:
            return getattr(self.inner, name)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Auto.forwarded:
            if name in ("rng", "mask"):
                setattr(self.inner, name, value)
            return
        super().__setattr__(name, value)

    @property
    def spec(self) -> str:
        """The agent inside, every parameter written down; given to `make_agent` it is the same agent, bit for bit."""
        values = self.inner.get_params().items()
        words = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values]
        return f"{self.inner.name}:" + ",".join(word for word in words if not word.endswith("=None"))

    @property
    def reasons(self) -> list[str]:
        """One line for each decision."""
        own = [f"{d.parameter}={d.value}: {d.reason}" for d in self._decisions]
        own += [f"{name}={value}: given" for name, value in self._given.items()]
        sizes = self.inner.sizes if isinstance(self.inner, LSVIGP) and "reason" in self.inner.chosen else {}
        return own + [f"{name}={value}: {self.chosen['reason']}" for name, value in sizes.items()]

    @property
    def chosen(self) -> dict[str, Any]:
        """What was decided, by parameter."""
        return {d.parameter: d.value for d in self._decisions} | dict(getattr(self.inner, "chosen", {}))

    def begin_episode(self) -> None:
        self.inner.begin_episode()

    def act(self, h: int, state: State) -> int:
        """That of the agent inside."""
        return self.inner.act(h, state)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self.inner.observe(h, state, action, reward, next_state, terminated)

    def end_episode(self) -> None:
        self.inner.end_episode()

    def q_values(self, h: int, state: State) -> Array:
        return self.inner.q_values(h, state)

    def policy(self, h: int) -> Array | IntArray:
        return self.inner.policy(h)

    @property
    def nbytes(self) -> int:
        """Bytes of the agent inside."""
        return self.inner.nbytes

    @property
    def planning_bytes(self) -> int | None:
        return self.inner.planning_bytes

    def bytes_after(self, episodes: int) -> int:
        return self.inner.bytes_after(episodes)

    def plannings(self, episodes: int) -> int:
        return self.inner.plannings(episodes)

    def drift(self) -> float | None:
        return self.inner.drift()

    def certificate(self) -> float | None:
        return self.inner.certificate()

    def more_possible(self) -> MorePossible | None:
        return self.inner.more_possible()

    def diagnostics(self) -> dict[str, float]:
        return self.inner.diagnostics()

    def state_dict(self) -> StateDict:
        mine = super().state_dict()
        return {**self.inner.state_dict(), "identity": mine["identity"]}

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self.inner._load(state)
