"""Insurance: whatever the inner agent does, the regret is bounded, and what it is at most is counted. Docs: insured."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.base import Agent, saved_array
from linmdp.agents.budget import Choice
from linmdp.agents.optimist import Optimist
from linmdp.agents.scouts import RECENT
from linmdp.agents.widths import log_term
from linmdp.errors import InvalidData, InvalidParameter, check_choice, check_int, check_number, invalid
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, IntArray, MorePossible, State, Task

MODES = ("mean", "balanced")
FINEST = 100
"""The largest denominator of alpha: n^q is compared with k^r in whole numbers."""

CENTRES = 256
"""Next states that the optimist keeps of each step, where states are not finite."""

MAKE_INNER = "linmdp.runner.registry:make_learner"
"""What makes an agent of a spec; it knows all agents, this one too, and is imported on first use."""


def power_floor(k: int, alpha: Fraction) -> int:
    """floor(k^alpha), exactly: the largest n with n^q <= k^r, alpha = r / q."""
    r, q = alpha.numerator, alpha.denominator
    n: int = round(float(k) ** float(alpha))
    while n**q > k**r:
        n -= 1
    while (n + 1) ** q <= k**r:
        n += 1
    return n


class Insured(Agent):
    """Any agent A, insured by an optimist B: LSVI-UCB at the theorem's width, on everybody's data.

    Before each episode, from the episodes before alone, it is decided who plays. B plays the episodes W, in which
    floor(k^alpha) grows ("mean"), and those in which the certified regret of A, the sum of (optimistic value of the
    start - return) over A's episodes, is above a budget b:

        mean        b = n_A (C_B / n_B + c),  c = margin H (sqrt(l / 2 n_A) + sqrt(l / 2 n_B))
        balanced    b = omega C_B + H sqrt(k l_k)

    Whatever A does, the regret is at most C_A + C_B with probability 1 - p, and that is at most the bound of the page
    with 1 - 2p. At the K that anyone runs the bound says nothing on most tasks.

    Parameters
    ----------
    inner : A: a spec, with its own parameters after ":" and ";" between them, or an agent made for the same task
    mode : "mean" or "balanced"
    alpha : the exponent of W, in (0, 1): "1/3" or a number
    omega : at least 1
    margin : from 0 to 1: the share of the largest c that the theorem allows. Less fires earlier, and in vain more often
    width : of B: "theory", "tables" (unit vectors: narrower; U and C_A + C_B are proved, no rate), or a number, with
        which nothing is proved
    p : the chance that the width is too small
    lam : B's lambda, at least 1
    eta : B plans when the determinant of a Lambda has grown by this factor; 1: before every episode
    delta : how far the task may be from a linear one. Above 0 B must learn from its own episodes
    own_data : B learns from its own episodes alone
    M : next states that B keeps per step, at most, with a width that grows by their error; default: all, in a table,
        else 256
    stationary : true: one regression of B for all steps. "auto": where the task is stationary and its states not finite
    episodes : K, where it is known
    """

    name = "insured"
    test_parameters: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"inner": "random", "mode": "balanced", "alpha": 0.5},
        {"inner": "lsvi-ucb:beta=0.1;lam=1", "width": 0.3, "eta": 1.0, "margin": 0.0},
        {"own_data": True, "delta": 0.01},
        {"M": 5},
    )
    _arrays = ("_C", "_n", "_least", "_start", "_recent")
    _counters = ("_k", "_plays", "_seen")
    _members = ("_A", "_B")
    _derived: ClassVar = ()  # the caps are those of both

    def __init__(
        self,
        task: Task,
        *,
        inner: str | Agent = "lsvi-ucb",
        mode: str = "mean",
        alpha: float | str = "1/3",
        omega: float = 1.0,
        margin: float = 1.0,
        width: float | str = "theory",
        p: float = 0.05,
        lam: float = 1.0,
        eta: float = 2.0,
        delta: float = 0.0,
        own_data: bool = False,
        M: int | None = None,
        stationary: bool | str = "auto",
        episodes: int | None = None,
    ) -> None:
        super().__init__(task)
        self.mode, self.alpha, self.omega, self.margin = mode, alpha, omega, margin
        self.width, self.p, self.lam, self.eta, self.delta = width, p, lam, eta, delta
        self.own_data, self.M, self.stationary, self.episodes = own_data, M, stationary, episodes
        check_choice(self.name, "mode", mode, MODES)
        check_number(self.name, "omega", omega, low=1.0)
        check_number(self.name, "margin", margin, low=0.0, high=1.0)
        check_number(self.name, "p", p, low=0.0, high=0.5, open_low=True)
        if not isinstance(own_data, bool):
            invalid(self.name, "own_data", "true or false", own_data)
        if not isinstance(stationary, bool) and stationary != "auto":
            invalid(self.name, "stationary", "true, false or 'auto'", stationary)
        if check_number(self.name, "delta", delta, low=0.0) and not own_data:
            invalid(self.name, "delta", "0 unless own_data=true: on everybody's data nothing would be bounded", delta)
        self._alpha = self._read_alpha(alpha)
        self._B = self._make_optimist()
        self._A, self.inner = inner_agent(self, "inner", inner, episodes)
        if self._A.caps is not None:
            self.caps = np.maximum(self._A.caps, self._B.caps)
        low, high = task.reward_range
        self._span = task.H * (max(high, 0.0) - min(low, 0.0))  # H of the page: how much two returns can differ
        self._C, self._n = np.zeros(2), np.zeros(2, dtype=np.int64)  # of A and B: certified regret, episodes
        self._least = np.full(task.S or 0, self._B.caps[0])  # of each start so far: the least optimistic value
        self._start = np.zeros(2)  # of this episode: the optimistic value of the start, and the return so far
        self._recent = np.zeros((RECENT, 2))  # the same of the last ones
        self._k, self._plays, self._seen = 0, 0, -1

    def _read_alpha(self, alpha: float | str) -> Fraction:
        try:
            given = Fraction(str(alpha))
        except (ValueError, ZeroDivisionError):
            given = Fraction(0)
        found = given.limit_denominator(FINEST)
        if not 0 < found < 1 or abs(found - given) > 1e-9:
            invalid(self.name, "alpha", f"a fraction in (0, 1) with a denominator of at most {FINEST}, as 1/3", alpha)
        return found

    def _make_optimist(self) -> Optimist:
        one = self.task.S is None and self.task.stationary if self.stationary == "auto" else self.stationary
        bounded = self.M is not None or not isinstance(self.task.features, TableFeatures)
        kept: dict[str, Any] = {"storage": "counts"}
        if bounded:
            most = CENTRES if self.M is None else check_int(self.name, "M", self.M, low=1)
            kept = {"storage": "centres", "M": most, "inflate": 1.0}
        return Optimist(
            self.task,
            width=self.width,
            p=self.p,
            delta=self.delta,
            lam=self.lam,
            eta=self.eta,
            stationary=one,
            episodes=self.episodes,
            **kept,
        )

    # what is known of it

    @property
    def certified_regret(self) -> tuple[float, float]:
        """C_A and C_B, with H delta an episode for what `delta` allows."""
        return float(self._C[0]), float(self._C[1])

    @property
    def turns(self) -> tuple[int, int]:
        """n_A and n_B."""
        return int(self._n[0]), int(self._n[1])

    def optimistic_value(self, state: State) -> float:
        """U: no policy is worth more from this start, if the width is valid (and the task linear)."""
        U = min(float(self._B.q_values(0, state).max()) + self.task.H * self.delta, float(self._B.caps[0]))
        return U if self.task.S is None else min(U, float(self._least[state]))

    def certify(self, returns: Array, state: State, p: float = 0.05) -> float:
        """How much more an episode from `state` can be worth than the policy that earned these returns, at most.

        For returns of one policy, played that often for this purpose; with probability at least 1 - 2p, if the width
        is valid for p and the task linear.
        """
        error = self._span * math.sqrt(math.log(1 / p) / (2 * len(returns)))
        return self.optimistic_value(state) - float(np.mean(returns)) + error

    def more_possible(self) -> MorePossible | None:
        """By B's values. At a width with a proof that is a certificate, up to the K that the width is for."""
        if not (n := min(int(self._n.sum()), RECENT)):
            return None
        U, G = self._recent[:n].T
        proved = isinstance(self.width, str) and (self.episodes is None or self._n.sum() <= self.episodes)
        return MorePossible(U - G, 1 - self.p if proved else 0.0, bool((self._B.caps[0] <= U).all()))

    def diagnostics(self) -> dict[str, float]:
        """Its own, then those of A."""
        (C_A, C_B), (n_A, n_B) = self.certified_regret, self.turns
        own = {"C_A": C_A, "C_B": C_B, "n_A": n_A, "n_B": n_B, "certified": (C_A + C_B) / max(n_A + n_B, 1)}
        return own | self._A.diagnostics()

    @property
    def chosen(self) -> Choice:
        """What A chose, and the width of B."""
        return Choice(getattr(self._A, "chosen", {})) | {"width": self._B.beta_value}

    # an episode

    def begin_episode(self) -> None:
        if self._k == 0:
            for agent in (self._A, self._B):
                agent.rng = np.random.default_rng(int(self.rng.integers(2**63)))
        self._k += 1
        self._B.prepare_for(self._k)
        self._plays = int(self._is_due(self._k) or self._C[0] > self._budget(self._k))
        self._start[:] = 0.0
        self._A.begin_episode()
        if self._plays or not self.own_data:
            self._B.begin_episode()
        self.updates, self.resets = self._A.updates + self._B.updates, self._A.resets + self._B.resets
        now = 2 * self._player.policy_version + self._plays
        self.policy_version += now != self._seen
        self._seen = now

    def _is_due(self, k: int) -> bool:
        """Whether k is in W."""
        return self.mode == "mean" and power_floor(k, self._alpha) > power_floor(k - 1, self._alpha)

    def _budget(self, k: int) -> float:
        """b, which A may have in certified regret before episode k."""
        if self.mode == "balanced":
            return self.omega * float(self._C[1]) + self._span * math.sqrt(k * log_term(k, self.p))
        n_A, n_B = self.turns
        if not n_A:
            return 0.0
        c = sum(self._span * math.sqrt(log_term(n, self.p) / (2 * n)) for n in (n_A, n_B))
        return n_A * (float(self._C[1]) / n_B + self.margin * c)

    @property
    def _player(self) -> Agent:
        return self._B if self._plays else self._A

    def act(self, h: int, state: State) -> int:
        return self._player.act(h, state)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        if h == 0:
            self._start[0] = self.optimistic_value(state)
            if self.task.S is not None:
                self._least[state] = self._start[0]
        self._start[1] += reward
        self._A.observe(h, state, action, reward, next_state, terminated)
        if self._plays or not self.own_data:
            self._B.observe(h, state, action, reward, next_state, terminated)

    def end_episode(self) -> None:
        self._C[self._plays] += self._start[0] - self._start[1]
        self._recent[int(self._n.sum()) % RECENT] = self._start
        self._n[self._plays] += 1
        self._A.end_episode()
        if self._plays or not self.own_data:
            self._B.end_episode()
        self.at_best = self._A.at_best

    # what it believes, and what it takes

    def q_values(self, h: int, state: State) -> Array:
        """Those of who plays."""
        return self._player.q_values(h, state)

    def policy(self, h: int) -> Array | IntArray:
        return self._player.policy(h)

    def bytes_after(self, episodes: int) -> int:
        now = self._A.nbytes + self._B.nbytes
        return self.nbytes - now + self._A.bytes_after(episodes) + self._B.bytes_after(episodes)

    def plannings(self, episodes: int) -> int:
        return self._A.plannings(episodes) + self._B.plannings(episodes)

    def samples_held(self, episodes: int) -> int:
        return max(self._A.samples_held(episodes), self._B.samples_held(episodes))

    def drift(self) -> float | None:
        found = [drift for drift in (self._A.drift(), self._B.drift()) if drift is not None]
        return max(found, default=None)

    def certificate(self) -> float | None:
        """That of A's storage."""
        return self._A.certificate()

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._B.prepare_for(max(int(saved_array(state, "k")), 1), anew=True)  # its width, before what it has learned
        super()._load(state)
        (n_A, n_B), due = self.turns, 0 if self.mode != "mean" else power_floor(max(self._k - 1, 0), self._alpha)
        if not (n_A >= 0 and n_B >= due and 0 <= self._k - n_A - n_B <= 1 and self._plays in (0, 1)):
            raise InvalidData("The turns of a saved agent must be those of its episodes.")


def inner_agent(owner: Agent, parameter: str, given: Any, episodes: int | None) -> tuple[Agent, str]:
    """A parameter that is an agent, or a spec with ";" between its own parameters: the agent, and its spec."""
    if isinstance(given, Agent):
        if given.task is not owner.task:
            raise InvalidParameter(f"The '{parameter}' parameter of {owner.name} must be made for the same task.")
        return given, _written(given)
    if not isinstance(given, str) or given.partition(":")[0] in (owner.name, "optimal"):
        invalid(owner.name, parameter, "an agent, or the spec of one that learns", given)
    return pkgutil.resolve_name(MAKE_INNER)(given.replace(";", ","), owner.task, episodes), given


def _written(agent: Agent) -> str:
    """The spec of an agent that was given as such: its name, and what parameters it was given."""
    usual = {name: p.default for name, p in agent.parameters().items()}
    given = {
        name: value
        for name, value in agent.get_params().items()
        if isinstance(value, int | float | str) and value != usual[name]
    }
    return agent.name + ":" * bool(given) + ";".join(f"{name}={value}" for name, value in given.items())
