"""LSVI-UCB-Fold: all data count, none of it is kept. Memory does not grow with K, and nothing is forgotten.

LSVI needs z_h = sum_i phi_i V(s'_i) for a V that changes with every planning. Here the sum over old samples is kept as
three small things, made when the buffer was last folded, with V_ref the value of that moment:

    c_h = sum phi_i V_ref(s'_i),   J_h = sum phi_i psi_i',   D_h = sum phi_i phi_i',

where psi_i = phi(s'_i, a*_i) is the slope of V(s'_i) in w_{h+1} (a*_i was the best action; zero at the cap). Then

    z_h  =  c_h + J_h (w_{h+1} - w_ref) + sum_i phi_i e_i,   e_i = (V - V_ref)(s'_i) - psi_i' (w_{h+1} - w_ref).

The remainder e_i (changed argmaxes, shrunk bonuses) is small. Its mean given phi is linear in phi, as that of any
function of s' in a linear MDP, so it is estimated by a ridge regression g_h over a few kept transitions, the probes,
and sum_i phi_i e_i is replaced by D_h g_h.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np

from linmdp.agents.base import StateDict, load_array, prefixed, under
from linmdp.agents.optimist import Common, Optimist
from linmdp.agents.regression import Optimism, matvec, quadratic_forms
from linmdp.agents.transitions import Transitions
from linmdp.errors import check_choice, check_int, check_number
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray, State, Task

CORRECTIONS = ("slope", "probe", "frozen")


class Ahead(NamedTuple):
    """What the samples of one step see ahead of them."""

    rows: Array  # (n, A, d) features of the next states
    V: Array  # (n,)
    psi: Array  # (n, d) the slope of V in w


class LSVIUCBFold(Optimist):
    """LSVI-UCB with folded samples: memory that does not grow, and no forgetting. Ours; no proof.

    Parameters
    ----------
    M : transitions kept of each step in the buffer, and as many probes; 4 d, between 32 and 512, unless said
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
        size = int(np.clip(4 * task.d, 32, 512)) if M is None else check_int(self.name, "M", M, low=2, high=10**7)
        check_number(self.name, "replan", replan, low=0.0, high=1.0)
        check_choice(self.name, "probes", probes, ("reservoir", "recent"))
        check_choice(self.name, "correction", correction, CORRECTIONS)
        H, d = task.H, task.d
        self._optimism = Optimism(self.beta_value, self.caps)
        eye = np.eye(d)
        self._Lambda = np.tile(self.lam * eye, (H, 1, 1))
        self._Lambda_inv = np.tile(eye / self.lam, (H, 1, 1))
        self._u, self._w = np.zeros((H, d)), np.zeros((H, d))
        self._c, self._w_ref = np.zeros((H, d)), np.zeros((H, d))
        slopes = correction == "slope"
        self._J = np.zeros((H, d, d) if slopes else (0, d, d))
        self._V_ref = np.zeros((H, size), dtype=self.dtype)
        self._best_ref = np.zeros((H, size), dtype=np.int32)  # the best action; -1 at the cap, where V has no slope
        self._buffer = Transitions(H, size, self._features)
        self._probe = Transitions(H, size, self._features)
        self._folded = np.zeros(H, dtype=np.int64)
        self._clock = np.zeros(2, dtype=np.int64)  # episodes begun, and the one to plan in next

    _ARRAYS = ("_Lambda", "_Lambda_inv", "_u", "_w", "_c", "_w_ref", "_J", "_V_ref", "_best_ref", "_folded", "_clock")

    def begin_episode(self) -> None:
        super().begin_episode()
        k, due = self._clock
        if k >= due or self._buffer.full:
            self._plan()
            self._clock[1] = k + max(1, int(self.replan * k))
            self.updates += self.task.H
            self.policy_version += 1
        self._clock[0] += 1

    def _plan(self) -> None:
        """Backwards over the steps; a full buffer is folded on the way, with the V of this planning."""
        inverses = np.linalg.inv(self._Lambda)
        self._Lambda_inv[:] = (inverses + inverses.swapaxes(-1, -2)) / 2
        fold = self._buffer.full
        for h in reversed(range(self.task.H)):
            z = self._target(h, fold=fold) if h < self.task.H - 1 else 0.0
            self._w[h] = matvec(self._Lambda_inv[h], self._u[h] + z)
        if fold:
            self._folded += self._buffer.count
            self._buffer.clear()

    def _target(self, h: int, *, fold: bool) -> Array:
        """z_h over all samples: those in the buffer exactly, those folded as the sum that stands for them."""
        phi, new = self._buffer.phi(h), self._ahead(h, self._buffer)
        z: Array = phi.T @ new.V
        if not self._folded[h]:
            J = 0.0
        else:
            old_phi, old = self._probe.phi(h), self._ahead(h, self._probe)
            moved, J = self._moved(h, phi, old_phi, old, fold=fold)
            z = z + moved
        if fold:
            if len(self._J):
                self._J[h] = J + phi.T @ new.psi
            self._c[h], self._w_ref[h] = z, self._w[h + 1]
            self._choose_probes(h)
        return z

    def _moved(self, h: int, phi: Array, old_phi: Array, old: Ahead, *, fold: bool) -> tuple[Array, Any]:
        """c_h brought to the V of today and, if it is to be folded, J_h to its slopes."""
        if self.correction == "frozen":
            return self._c[h].copy(), 0.0
        m, d = len(old_phi), self.task.d
        eye = np.eye(d)
        D = self._Lambda[h] - self.lam * eye - phi.T @ phi
        spread = D @ np.linalg.solve(old_phi.T @ old_phi + self.lam * eye, old_phi.T)  # (d, m): g of anything, times D
        change = old.V - self._V_ref[h, :m]
        if not len(self._J):
            return self._c[h] + spread @ change, 0.0
        psi, step = _chosen(old.rows, self._best_ref[h, :m]), self._w[h + 1] - self._w_ref[h]
        J = self._J[h] + spread @ (old.psi - psi) if fold else 0.0
        return self._c[h] + self._J[h] @ step + spread @ (change - psi @ step), J

    def _rows(self, h: int, samples: Transitions) -> Array:
        """phi(s'_i, .), (n, A, d)."""
        n = int(samples.count[h])
        if not n:
            return np.zeros((0, self.task.A, self.task.d))
        return np.ascontiguousarray(self._features.batch(samples.following[h, :n]))

    def _ahead(self, h: int, samples: Transitions) -> Ahead:
        """V_{h+1} and its slope at the next states of step h."""
        rows = self._rows(h, samples)
        value, best = self._values(h, rows, samples.alive[h, : len(rows)])
        return Ahead(rows, value, _chosen(rows, best))

    def _values(self, h: int, rows: Array, alive: BoolArray) -> tuple[Array, IntArray]:
        """V_{h+1} of the rows (n, A, d), and the best actions: the first of equals, -1 where V has no slope."""
        q = self._q(h + 1, rows)
        best = self._optimism.best(q, axis=-1).argmax(axis=-1)
        value = q[np.arange(len(q)), best] * alive
        below = value < self.caps[h + 1] - self._optimism.tie
        return value, np.where(alive & below, best, -1)

    def _q(self, h: int, rows: Array) -> Array:
        """Q_h of rows (..., d)."""
        b = self._optimism.squared(quadratic_forms(rows, self._Lambda_inv[h]))
        q: Array = self._optimism.q(rows @ self._w[h], b, self.caps[h])
        return q

    def _choose_probes(self, h: int) -> None:
        """New probes out of the old ones and the buffer, and what V and its best actions are there."""
        n, m, M = int(self._buffer.count[h]), int(self._probe.count[h]), self._buffer.M
        old, new = int(self._folded[h]), n
        fresh = n if self.probes == "recent" or not old else int(self.rng.hypergeometric(new, old, min(M, new + old)))
        fresh = max(fresh, M - m) if n + m >= M else n
        mine = self.rng.permutation(m)[: min(m, M - fresh)]
        theirs = self.rng.permutation(n)[: min(n, fresh)]
        self._probe.take(h, self._buffer, mine, theirs)
        rows = self._rows(h, self._probe)
        n = len(rows)
        self._V_ref[h, :n], self._best_ref[h, :n] = self._values(h, rows, self._probe.alive[h, :n])

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._check_observation(h, action, reward)
        phi = np.ascontiguousarray(self._features.phi(state)[action])
        self._Lambda[h] += phi[:, None] * phi
        self._u[h] += phi * reward
        self._buffer.add(h, state, action, next_state, not terminated)

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
        return own + self._tie_draws.nbytes + self._buffer.nbytes + self._probe.nbytes

    def bytes_after(self, episodes: int) -> int:
        parts = (self._buffer, self._probe)
        return self.nbytes + sum(part.bytes_when_full() - part.nbytes for part in parts)

    def state_dict(self) -> StateDict:
        state = super().state_dict() | {name[1:]: getattr(self, name).copy() for name in self._ARRAYS}
        return state | prefixed("buffer", self._buffer.state_dict()) | prefixed("probe", self._probe.state_dict())

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        for name in self._ARRAYS:
            load_array(getattr(self, name), state, name[1:])
        self._buffer.load_state_dict(under("buffer", state))
        self._probe.load_state_dict(under("probe", state))


def _chosen(rows: Array, best: IntArray) -> Array:
    """phi(s'_i, best_i) of rows (n, A, d), (n, d); zero where there is no best action."""
    psi: Array = rows[np.arange(len(rows)), np.maximum(best, 0)] * (best >= 0)[:, None]
    return psi
