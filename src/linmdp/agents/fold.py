"""LSVI-UCB-Fold: all data count, none of it is kept. Memory does not grow with K, and nothing is forgotten.

LSVI needs z_h = sum_i phi_i V(s'_i) for a V that changes with every planning. Here the sum over old samples is kept as
three small things, made when the buffer was last folded, with V_ref the value of that moment:

    c_h = sum phi_i V_ref(s'_i),   J_h = sum phi_i psi_i',   D_h = sum phi_i phi_i',

where psi_i = phi(s'_i, a*_i) is the slope of V(s'_i) in w_{h+1} (a*_i was the best action; zero at the cap). Then

    z_h  =  c_h + J_h (w_{h+1} - w_ref) + sum_i phi_i e_i,   e_i = (V - V_ref)(s'_i) - psi_i' (w_{h+1} - w_ref).

The remainder e_i (changed argmaxes, shrunk bonuses) is small. Its mean given phi is linear in phi, as that of any
function of s' in a linear MDP, so it is estimated by a ridge regression g_h over a few kept transitions, the probes,
and sum_i phi_i e_i is replaced by D_h g_h.

Where states are finite, a transition that comes again is counted, not kept again. As long as the different ones fit
into the buffer nothing is ever folded, and planning is that of LSVI-UCB. When they do not, the most frequent stay in
the buffer, exactly, and the rare ones are folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from linmdp.agents.base import StateDict, load_array, prefixed, saved_array, under
from linmdp.agents.budget import Choice, common_bytes, descending, fold_bytes
from linmdp.agents.optimist import Common, Optimist
from linmdp.agents.regression import Optimism, fresh_inverse, matvec, quadratic_forms
from linmdp.agents.shared import TOLERANCE, fixed_point
from linmdp.agents.transitions import Transitions
from linmdp.errors import InvalidData, check_choice, check_int, check_number
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray, State, Task

CORRECTIONS = ("slope", "probe", "frozen")
CHUNK = 16
"""Transitions whose features are made at once."""


class Look(NamedTuple):
    """What does not depend on w: features of the samples of one step, and of what followed them."""

    phi: Array  # (n, d)
    times: Array  # (n, 1) how often each came
    rows: Array  # (n, A, d)
    forms: Array  # (n, A) phi' Lambda^-1 phi of the rows


class Ahead(NamedTuple):
    """What the samples of one step see ahead of them."""

    phi: Array  # (n, d)
    times: Array  # (n, 1)
    rows: Array  # (n, A, d)
    V: Array  # (n,)
    psi: Array  # (n, d) the slope of V in w, where slopes are kept


class LSVIUCBFold(Optimist):
    """LSVI-UCB with folded samples: memory that does not grow, and no forgetting. Ours; no proof.

    Parameters
    ----------
    M : different transitions kept of each step in the buffer, and as many probes; 4 d, between 64 and 512, unless said
    replan : planning happens when the number of episodes has grown by this fraction; 0 plans in every episode
    probes : "reservoir" (an even choice of all that was folded) or "recent" (the last buffer)
    correction : how old targets follow V: "slope" (all of the above), "probe" (without J) or "frozen" (they stay)
    common : `beta, lam, cap, ties, dtype, episodes` as for `LSVIUCB`
    """

    name = "lsvi-ucb-fold"

    def __init__(
        self,
        task: Task,
        *,
        M: int | None = None,
        replan: float = 0.01,
        probes: str = "reservoir",
        correction: str = "slope",
        **common: Unpack[Common],
    ) -> None:
        super().__init__(task, **common)
        self.M, self.replan, self.probes, self.correction = M, replan, probes, correction
        check_number(self.name, "replan", replan, low=0.0, high=1.0)
        check_choice(self.name, "probes", probes, ("reservoir", "recent"))
        check_choice(self.name, "correction", correction, CORRECTIONS)
        d, G, L = task.d, self.groups, self.levels
        size = self._buffer_size()
        self._fit()
        size = self.chosen.get("M", size)
        self._optimism = Optimism(self.beta_value, self.caps)
        eye = np.eye(d)
        self._Lambda, self._Lambda_inv = np.tile(self.lam * eye, (G, 1, 1)), np.tile(eye / self.lam, (G, 1, 1))
        self._u, self._w = np.zeros((G, d)), np.zeros((L, d))
        self._c, self._w_ref = np.zeros((L, d)), np.zeros((L, d))
        kept = G if self.discount < 1 else min(G, task.H - 1)  # of an undiscounted last step nothing is
        self._buffer = Transitions(kept, size, self._features)
        self._probe = Transitions(kept, size, self._features)
        self._folded = np.zeros(kept, dtype=np.int64)  # rows of the buffer, so far
        self._clock = np.zeros(2, dtype=np.int64)  # episodes begun, and the one to plan in next
        self._make_past(folded=False)
        self._looked: dict[int, Look] = {}
        self._staying: list[BoolArray] = []  # of each buffer while it is folded
        self._shared_spread: Array | None = None

    def _make_past(self, *, folded: bool) -> None:
        """Room for what stands for folded samples: none before the first fold."""
        levels, slopes, M, d = (
            self.levels * folded,
            self.levels * (folded and self._slopes),
            self._buffer.M,
            self.task.d,
        )
        self._J = np.zeros((slopes, d, d))
        self._V_ref = np.zeros((levels, M), dtype=self.chosen.get("dtype", self.dtype))
        self._best_ref = np.zeros((slopes, M), dtype=np.int32)  # -1 at the cap, where V has no slope

    def _buffer_size(self) -> int:
        """M: given, or 4 d within bounds; in a stationary task room for ten episodes, and for one at least.

        Every fold leaves an error behind, and a buffer that is full after one or two episodes folds often.
        """
        steps = self.task.H if self.stationary else 1
        if self.M is None:
            return max(int(np.clip(max(4 * self.task.d, 10 * steps), 64, 512)), 2 * steps)
        return check_int(self.name, "M", self.M, low=max(2, steps), high=10**7)

    @property
    def _slopes(self) -> bool:
        """Whether J is kept. With one regression and H values it would be larger than all the rest: probes alone."""
        correction = self.chosen.get("correction", self.correction)
        return bool(correction == "slope" and (not self.stationary or self.levels == 1))

    def _choices(self) -> Iterator[Choice]:
        """Fewer transitions, down to d; then no slopes; then as few transitions as can be, in single precision."""
        least, most = max(2, self.task.H if self.stationary else 2), self._buffer_size()
        enough = min(most, max(least, self.task.d))
        without = "probe" if self.correction == "slope" else self.correction
        rooms = [(without, most, enough, self.dtype), (without, enough, least, self._dtypes()[-1])]
        if self._slopes:
            rooms.insert(0, ("slope", most, enough, self.dtype))
        for correction, high, low, dtype in rooms:
            for M in descending(high, low):
                yield {"M": M, "correction": correction, "dtype": dtype}

    def _bytes_of(self, choice: Choice) -> int:
        s, e = self._sizes(), np.dtype(choice["dtype"]).itemsize
        slopes = choice["correction"] == "slope"
        return common_bytes(s, auto=self._width is not None) + fold_bytes(s, choice["M"], slopes=slopes, e=e)

    _ARRAYS = ("_Lambda", "_Lambda_inv", "_u", "_w", "_c", "_w_ref", "_J", "_V_ref", "_best_ref", "_folded", "_clock")

    def begin_episode(self) -> None:
        super().begin_episode()
        k, due = self._clock
        if k >= due or self._must_fold or (self._width and self._width.beaten):
            self._choose_beta()
            self._plan()
            self._clock[1] = k + max(1, int(self.replan * k))
            self.updates += self.task.H
            self.policy_version += 1
            self._planned(self._w)
        self._clock[0] += 1

    @property
    def _must_fold(self) -> bool:
        """Whether the buffer has no room for another episode."""
        return int(self._buffer.count.max(initial=0)) + self._episode_rows > self._buffer.M

    @property
    def _episode_rows(self) -> int:
        """Transitions that an episode may add to a buffer."""
        return self.task.H if self.stationary else 1

    def _plan(self) -> None:
        """Backwards over the steps; a full buffer is folded, with the V of this planning."""
        for g in range(self.groups):
            self._Lambda_inv[g] = fresh_inverse(self._Lambda[g])
        fold = self._must_fold
        if fold:
            # the more frequent half; less where little more than an episode fits, lest the next one fill it again
            most = max(0, min(self._buffer.M // 2, self._buffer.M - 5 * self._episode_rows // 4))
            self._staying = [self._buffer.frequent(g, most) for g in range(len(self._folded))]
            if not self._folded.any():
                self._make_past(folded=True)
        self._forget_looks()
        self._solve(fold=fold)
        if fold:
            for g in reversed(range(len(self._folded))):
                self._choose_probes(g)
            self._forget_looks()
            for level in reversed(range(1 if self.discount < 1 else self.task.H - 1)):
                self._look_back(level)
            for g, stay in enumerate(self._staying):
                self._folded[g] += np.count_nonzero(~stay)
                self._buffer.keep(g, stay)
        self._forget_looks()

    def _solve(self, *, fold: bool) -> None:
        """Every w from all samples: backwards, or with a discount until nothing moves."""
        if self.discount < 1:

            def backup(w: Array) -> Array:
                self._w[0] = w
                return self._solution(0, self._target(0, fold=False))

            tolerance = TOLERANCE * max(1.0, float(self._optimism.caps[0]))
            self._w[0] = fixed_point(self._w[0].copy(), backup, tolerance)
            if fold:
                self._target(0, fold=True)
            return
        for h in reversed(range(self.task.H)):
            self._w[h] = self._solution(h, self._target(h, fold=fold) if h < self.task.H - 1 else np.zeros(self.task.d))

    def _solution(self, h: int, z: Array) -> Array:
        g = self._group(h)
        w: Array = matvec(self._Lambda_inv[g], self._u[g] + self.discount * z)
        return w

    def _group(self, h: int) -> int:
        """The regression of step h."""
        return 0 if self.stationary else h

    def _after(self, h: int) -> int:
        """The step whose Q values what follows step h; with a discount there is but one."""
        return min(h + 1, self.levels - 1)

    def _greedy_weights(self) -> Array:
        """The same planning with beta 0, and without folding."""
        kept = self._w, self._optimism
        self._w, self._optimism = self._w.copy(), Optimism(0.0, self.caps)
        try:
            self._solve(fold=False)
            return self._w
        finally:
            self._w, self._optimism = kept
            self._forget_looks()

    def _change_beta(self, beta: float) -> None:
        self._optimism.change(beta)

    def _target(self, h: int, *, fold: bool) -> Array:
        """z_h over all samples: those in the buffer exactly, those folded as the sum that stands for them."""
        new = self._ahead(h, self._buffer)
        z: Array = new.phi.T @ (new.times[:, 0] * new.V)
        J: Any = 0.0
        if self._folded[self._group(h)]:
            moved, J = self._moved(h, new, self._ahead(h, self._probe), fold=fold)
            z = z + moved
        if fold:
            stay, counted = self._staying[self._group(h)], new.times * new.phi
            if self._slopes:
                self._J[h] = J + counted[~stay].T @ new.psi[~stay]
            self._c[h], self._w_ref[h] = z - counted[stay].T @ new.V[stay], self._w[self._after(h)]
        return z

    def _moved(self, h: int, new: Ahead, old: Ahead, *, fold: bool) -> tuple[Array, Any]:
        """c_h brought to the V of today and, if it is to be folded, J_h to its slopes."""
        if self.correction == "frozen":
            return self._c[h].copy(), 0.0
        m, spread = len(old.phi), self._spread(h, new, old)
        change = old.V - self._V_ref[h, :m]
        if not self._slopes:
            return self._c[h] + spread @ change, 0.0
        psi, step = _chosen(old.rows, self._best_ref[h, :m]), self._w[self._after(h)] - self._w_ref[h]
        J = self._J[h] + spread @ (old.psi - psi) if fold else 0.0
        return self._c[h] + self._J[h] @ step + spread @ (change - psi @ step), J

    def _spread(self, h: int, new: Ahead, old: Ahead) -> Array:
        """D_h g for the g of anything at the probes, as a matrix (d, m); in a stationary task, made once a planning."""
        if self._shared_spread is not None:
            return self._shared_spread
        eye = np.eye(self.task.d)
        D = self._Lambda[self._group(h)] - self.lam * eye - new.phi.T @ (new.times * new.phi)
        counted = old.times * old.phi
        spread: Array = D @ np.linalg.solve(old.phi.T @ counted + self.lam * eye, counted.T)
        if self.stationary:
            self._shared_spread = spread
        return spread

    def _forget_looks(self) -> None:
        """The samples, or what is known of them, have changed."""
        self._looked.clear()
        self._shared_spread = None

    def _look(self, h: int, samples: Transitions) -> Look:
        """Features of step h's samples and of what followed; in a stationary task, looked at once a planning."""
        key, g = id(samples), self._group(h)
        if key in self._looked:
            return self._looked[key]
        n, inverse = int(samples.count[g]), self._Lambda_inv[self._group(h + 1)]
        rows, forms = np.empty((n, self.task.A, self.task.d)), np.empty((n, self.task.A))
        for part in (slice(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)):  # little memory on the way
            rows[part] = self._features.batch(samples.following[g, part])
            forms[part] = quadratic_forms(rows[part], inverse)
        found = Look(samples.phi(g), samples.times[g, :n, None].astype(np.float64), rows, forms)
        if self.stationary:
            self._looked[key] = found
        return found

    def _ahead(self, h: int, samples: Transitions) -> Ahead:
        """V at the next states of step h, and its slope."""
        look = self._look(h, samples)
        value, best = self._values(h, look, samples)
        return Ahead(look.phi, look.times, look.rows, value, _chosen(look.rows, best) if self._slopes else value)

    def _values(self, h: int, look: Look, samples: Transitions) -> tuple[Array, IntArray]:
        """V of what followed, and the best actions there: the first of equals, -1 where V has no slope."""
        after, alive = self._after(h), samples.alive[self._group(h), : len(look.rows)]
        q = self._optimism.q(look.rows @ self._w[after], self._optimism.squared(look.forms), self.caps[after])
        best = self._optimism.best(q, axis=-1).argmax(axis=-1)
        value = q[np.arange(len(q)), best] * alive
        below = value < self.caps[after] - self._optimism.tie
        return value, np.where(alive & below, best, -1)

    def _q(self, h: int, rows: Array) -> Array:
        """Q_h of rows (..., d)."""
        b = self._optimism.squared(quadratic_forms(rows, self._Lambda_inv[self._group(h)]))
        q: Array = self._optimism.q(rows @ self._w[min(h, self.levels - 1)], b, self.caps[h])
        return q

    def _choose_probes(self, g: int) -> None:
        """New probes out of the old ones and what is folded."""
        rare = (~self._staying[g]).nonzero()[0]
        n, m, M, old = len(rare), int(self._probe.count[g]), self._buffer.M, int(self._folded[g])
        fresh = n if self.probes == "recent" or not old else int(self.rng.hypergeometric(n, old, min(M, n + old)))
        fresh = max(fresh, M - m) if n + m >= M else n
        mine = self.rng.permutation(m)[: min(m, M - fresh)]
        theirs = rare[self.rng.permutation(n)[: min(n, fresh)]]
        self._probe.take(g, self._buffer, mine, theirs)

    def _look_back(self, h: int) -> None:
        """What V and its best actions are at the new probes of step h."""
        value, best = self._values(h, self._look(h, self._probe), self._probe)
        self._V_ref[h, : len(value)] = value
        if self._slopes:
            self._best_ref[h, : len(best)] = best

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        phi, g = self._seen(h, state, action, reward, terminated), self._group(h)
        self._Lambda[g] += phi[:, None] * phi
        self._u[g] += phi * reward
        if g < len(self._folded):
            self._buffer.add(g, state, action, next_state, not terminated)

    def _best_actions(self, h: int, state: State) -> Any:
        return self._optimism.best(self._q(h, self._features.phi(state)))

    def _best_table(self, h: int) -> Any:
        assert isinstance(self._features, TableFeatures)
        q = self._q(h, self._features.columns.T).reshape(self._features.A, self._features.S)
        return self._optimism.best(q)

    def q_values(self, h: int, state: State) -> Array:
        """min(phi'w + bonus, cap) of every action, (A,)."""
        return self._q(h, self._features.phi(state))

    def samples_after(self, episodes: int) -> int:
        return episodes

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the agent owns now."""
        own = sum(int(getattr(self, name).nbytes) for name in self._ARRAYS)
        return super().nbytes + own + self._buffer.nbytes + self._probe.nbytes

    def bytes_after(self, episodes: int) -> int:
        parts, e = (self._buffer, self._probe), self._V_ref.itemsize
        past = self.levels * (self._buffer.M * e + self._slopes * (8 * self.task.d**2 + 4 * self._buffer.M))
        missing = 0 if self._folded.any() or not len(self._folded) else past
        return self.nbytes + missing + sum(part.bytes_when_full(self._state_bytes) - part.nbytes for part in parts)

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {name[1:]: getattr(self, name).copy() for name in self._ARRAYS}
        return state | prefixed("buffer", self._buffer.state_dict()) | prefixed("probe", self._probe.state_dict())

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        folded = saved_array(state, "folded")
        if not (folded >= 0).all():
            raise InvalidData("'folded' of a saved agent must not be negative.")
        self._make_past(folded=bool(folded.any()))
        for name in self._ARRAYS:
            load_array(getattr(self, name), state, name[1:])
        if not ((self._best_ref >= -1) & (self._best_ref < self.task.A)).all():
            raise InvalidData(f"'best_ref' of a saved agent must be in [-1, {self.task.A - 1}] everywhere.")
        self._buffer.load_state_dict(under("buffer", state))
        self._probe.load_state_dict(under("probe", state))


def _chosen(rows: Array, best: IntArray) -> Array:
    """phi(s'_i, best_i) of rows (n, A, d), (n, d); zero where there is no best action."""
    psi: Array = rows[np.arange(len(rows)), np.maximum(best, 0)] * (best >= 0)[:, None]
    return psi
