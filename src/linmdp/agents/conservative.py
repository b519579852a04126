"""A conservative start: a known policy plays until what the learner has earned pays for its mistakes. Docs: learner."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import TIE, Agent
from linmdp.agents.insured import inner_agent
from linmdp.agents.widths import log_term
from linmdp.errors import InvalidData, check_number, invalid
from linmdp.types import Array, BoolArray, IntArray, MorePossible, State, Task, Transition

LOAD = "linmdp.runner.saved:load_agent"
"""What reads a saved agent; imported on first use."""

FUNCTION = "function"
"""What a file has in place of a baseline that is one."""


class Conservative(Agent):
    """Any agent A that is never worse than a known policy B, its baseline, by more than x an episode.

    A plays an episode if, even should that earn the least that an episode can, A's n episodes of k will have earned

        G_1 + ... + G_n >= n b - k x ,

    where b is what B earns in the mean; else B plays, and A learns from that. So it holds after every episode, whatever
    A does: surely if `value` is b, and with probability 1 - p if b is bounded by B's own returns (Hoeffding, for all
    their numbers at once; episodes must start alike). In Kazerouni et al. (2017) and Garcelon et al. (2020) the lower
    bound is on expected values, from A's model; here it is on the returns as they were, and on the worst of the next.

    Parameters
    ----------
    inner : A: a spec, with its own parameters after ":" and ";" between them, or an agent made for the same task
    baseline : B: a spec, as `constant:action=1`; the file of a saved agent, `FILE.safetensors`, or an agent, of which
        the greedy policy plays; a function from states to actions, or what has such a `predict`
    below : x, in units of the return; default: `alpha` |b|
    alpha : the share of b, where x is not given
    value : b, where it is known
    least : the least that an episode can earn; default: by the range of rewards
    p : the chance that B's own returns mislead
    episodes : K, where it is known
    """

    name = "conservative"
    needs_features = False
    whole_episodes = True
    test_parameters: ClassVar[tuple[dict[str, Any], ...]] = (
        {"inner": "lsvi-ucb:beta=0.1;lam=1", "baseline": "constant:action=1", "below": 0.5},
        {"inner": "q-learning", "value": 0.2, "alpha": 0.5},
    )
    _arrays = ("_G", "_n", "_now")
    _counters = ("_k", "_plays", "_seen", "_acted")
    _members = ("_A", "_B")

    def __init__(
        self,
        task: Task,
        *,
        inner: str | Agent = "auto",
        baseline: Any = "random",
        below: float | None = None,
        alpha: float = 0.1,
        value: float | None = None,
        least: float | None = None,
        p: float = 0.05,
        episodes: int | None = None,
    ) -> None:
        super().__init__(task)
        self.below, self.alpha, self.value, self.least, self.p, self.episodes = below, alpha, value, least, p, episodes
        for name, number in (("below", below), ("alpha", alpha)):
            if number is not None:
                check_number(self.name, name, number, low=0.0)
        check_number(self.name, "p", p, low=0.0, high=1.0, open_low=True)
        low, high = task.reward_range
        self._most = task.H * max(high, 0.0)
        self._least = task.H * min(low, 0.0) if least is None else check_number(self.name, "least", least)
        if value is not None:
            check_number(self.name, "value", value, low=self._least)
        self._A, self.inner = inner_agent(self, "inner", inner, episodes)
        self._B, self._ask, self.baseline = self._known(baseline)
        self._G, self._n = np.zeros(2), np.zeros(2, dtype=np.int64)  # of A and B: returns in all, episodes
        self._now = np.zeros(1)  # the return of this episode so far
        self._k, self._plays, self._seen = 0, 1, -1
        self._acted = 0  # whether this episode is played; one from a log has nobody's return

    def _known(self, given: Any) -> tuple[Agent | None, Callable[[State], Any] | None, str]:
        """The baseline as an agent or as a function of states, and in words."""
        if isinstance(given, str) and given.endswith(".safetensors"):
            return inner_agent(self, "baseline", pkgutil.resolve_name(LOAD)(given, self.task), None)[0], None, given
        if isinstance(given, str) and given == FUNCTION:
            invalid(self.name, "baseline", "an agent or its file where it is to be loaded: a function is lost", given)
        if isinstance(given, str | Agent):
            made, words = inner_agent(self, "baseline", given, None)
            return made, None, words
        if hasattr(given, "predict"):
            return None, lambda state: given.predict(state, deterministic=True)[0], FUNCTION
        if not callable(given):
            invalid(self.name, "baseline", "a spec, an agent or its file, or a function from states to actions", given)
        return None, given, FUNCTION

    # who plays

    @property
    def turns(self) -> tuple[int, int]:
        """Episodes of A and of B."""
        return int(self._n[0]), int(self._n[1])

    def baseline_value(self) -> tuple[float, float]:
        """Between what b lies."""
        if self.value is not None:
            return self.value, self.value
        if not (n := self.turns[1]):
            return self._least, max(self._most, self._least)
        mean, wide = float(self._G[1]) / n, (self._most - self._least) * math.sqrt(log_term(n, self.p / 2) / (2 * n))
        return max(mean - wide, self._least), max(min(mean + wide, self._most), mean)

    def margin(self) -> float:
        """What A would have earned above n b - k x after one more episode at its worst, for the worst b."""
        low, high = self.baseline_value()
        n, k = self.turns[0] + 1, sum(self.turns) + 1
        ends = (low, high, 0.0) if low < 0 < high else (low, high)  # between them it is linear in b
        return min(
            float(self._G[0]) + self._least - n * b + k * (self.alpha * abs(b) if self.below is None else self.below)
            for b in ends
        )

    def begin_episode(self) -> None:
        if self._k == 0:
            for agent in filter(None, (self._A, self._B)):
                agent.rng = np.random.default_rng(int(self.rng.integers(2**63)))
        self._k += 1
        self._plays, self._now[:], self._acted = int(self.margin() < 0), 0.0, 0
        self._A.begin_episode()
        self.updates, self.resets = self._A.updates, self._A.resets
        now = 1 if self._plays else 2 * self._A.policy_version
        self.policy_version += now != self._seen
        self._seen = now

    def act(self, h: int, state: State) -> int:
        self._acted = 1
        if not self._plays:
            return self._A.act(h, state)
        return int(self.rng.choice(np.flatnonzero(_best(self.q_values(h, state)))))

    def act_within(self, h: int, state: State, mask: BoolArray | None) -> int:
        """A is told of the mask."""
        self._acted = 1
        return super().act_within(h, state, mask) if self._plays else self._A.act_within(h, state, mask)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._now += reward
        self._A.observe_within(Transition(h, state, action, reward, next_state, terminated), self.mask)

    def end_episode(self) -> None:
        self._G[self._plays] += self._now[0] * self._acted
        self._n[self._plays] += self._acted
        self._A.end_episode()
        self.at_best = self._A.at_best

    # what it believes, and what it takes

    def q_values(self, h: int, state: State) -> Array:
        """Those of who plays; of a function 1 for its action, else 0."""
        if not self._plays:
            return self._A.q_values(h, state)
        if self._B is not None:
            return self._B.q_values(h, state)
        assert self._ask is not None
        said = self._ask(state)
        try:
            q = np.arange(self.task.A) == int(said)
        except (TypeError, ValueError):
            q = np.zeros(self.task.A, dtype=np.bool_)
        if not q.any():
            invalid(self.name, "baseline", f"a policy whose actions are 0 to {self.task.A - 1}", said)
        return np.asarray(q, dtype=np.float64)

    def policy(self, h: int) -> Array | IntArray:
        if not self._plays:
            return self._A.policy(h)
        best = np.array([_best(self.q_values(h, state)) for state in range(self.task.S or 0)])
        chances: Array = best / best.sum(axis=1, keepdims=True)
        return chances

    def diagnostics(self) -> dict[str, float]:
        """Whose turn it was, and how far A is from losing the next; then those of A."""
        n_A, n_B = self.turns
        return {"n_A": n_A, "n_B": n_B, "margin": self.margin()} | self._A.diagnostics()

    @property
    def chosen(self) -> dict[str, Any]:
        """What A chose."""
        return dict(getattr(self._A, "chosen", {}))

    @property
    def planning_bytes(self) -> int | None:
        return self._A.planning_bytes

    def bytes_after(self, episodes: int) -> int:
        return self.nbytes - self._A.nbytes + self._A.bytes_after(episodes)

    def plannings(self, episodes: int) -> int:
        return self._A.plannings(episodes)

    def samples_held(self, episodes: int) -> int:
        return self._A.samples_held(episodes)

    def drift(self) -> float | None:
        return self._A.drift()

    def certificate(self) -> float | None:
        return self._A.certificate()

    def more_possible(self) -> MorePossible | None:
        return self._A.more_possible()

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        if not (self._n.min() >= 0 and self._k >= sum(self.turns) and {self._plays, self._acted} <= {0, 1}):
            raise InvalidData("The turns of a saved agent must be those of its episodes.")


def _best(q: Array) -> BoolArray:
    """Which actions are as good as the best."""
    best: BoolArray = q >= q.max() - TIE * max(1.0, abs(float(q.max())))
    return best
