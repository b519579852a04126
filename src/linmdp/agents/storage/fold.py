"""Fold: all data count, none of it is kept. Memory does not grow with K, and nothing is forgotten.

LSVI needs z_h = sum_i phi_i V(s'_i) for a V that changes with every planning. Here the sum over old samples is kept as
three small things, made when the buffer was last folded, with V_ref the value at that time:

    c_h = sum phi_i V_ref(s'_i),   J_h = sum phi_i psi_i',   D_h = sum phi_i phi_i',

where psi_i = phi(s'_i, a*_i) is the slope of V(s'_i) in w_{h+1} (a*_i was the best action; zero at the cap). Then

    z_h  =  c_h + J_h (w_{h+1} - w_ref) + sum_i phi_i e_i,   e_i = (V - V_ref)(s'_i) - psi_i' (w_{h+1} - w_ref).

The remainder e_i (changed argmaxes, shrunk bonuses) is small. Its mean given phi is linear in phi, as that of any
function of s' in a linear MDP, so it is estimated by a ridge regression g_h over a few kept transitions, the probes,
and sum_i phi_i e_i is replaced by D_h g_h.

Where states are finite, a transition that comes again is counted, not kept again. As long as the different ones fit
into the buffer nothing is ever folded, and planning is that of LSVI-UCB. When they do not, the most frequent stay in
the buffer, exactly, and the rare ones are folded.

How far z_h may be off by now is estimated, not bounded: the remainders scatter around phi'g by s, at the probes, and
that is what D_h g_h leaves to chance, s sqrt(N / m - 1) in the norm of Lambda^-1, where m of N folded samples are
probes (for N / m, tr D over that of the probes). What was left at each fold stays in c_h; these add up as independent
errors do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.base import StateDict, load_array, prefixed, saved_array, under
from linmdp.agents.exploration.base import Moments, stacked
from linmdp.agents.storage.base import Parts, Sample, Storage
from linmdp.agents.storage.transitions import Transitions
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray, State

CORRECTIONS = ("slope", "probe", "frozen")
PROBES = ("reservoir", "recent")
CHUNK = 16
"""Transitions whose features are made at once."""


class Ahead(NamedTuple):
    """The samples of one regression: what does not depend on w."""

    phi: Array  # (n, d)
    times: Array  # (n, 1) how often each came
    rows: Array  # (n, A, d) features of what followed
    forms: Array  # (n, A) phi' Lambda^-1 phi of the rows, where the exploration needs them


class Valued(NamedTuple):
    """V of what followed the samples of one step, (n,), and the best action there: -1 where V has no slope."""

    V: Array
    best: IntArray


class Fold(Storage):
    """A buffer of M transitions per regression, as many probes, and sums that stand for all other samples.

    Attributes
    ----------
    c, w_ref : (levels, d) sum phi V_ref, and the weights that V_ref was made of
    J : (levels, d, d) slopes; V_ref, best_ref : (levels, M) at the probes. All empty before the first fold
    folded : (groups,) rows of the buffer folded so far
    apart : (levels,) squared, the error that folds have left in c, by estimate
    errors : (H,) by estimate, of the last planning; staleness : () see `off`
    """

    _arrays: ClassVar = ("c", "w_ref", "J", "V_ref", "best_ref", "folded", "apart", "errors", "staleness")
    _derived: ClassVar = ("spans",)
    keeps_samples = incremental = False

    def __init__(
        self,
        parts: Parts,
        features: FeatureMap,
        *,
        M: int,
        probes: str,
        correction: str,
        dtype: str,
        state_bytes: int,
        spans: Array,
    ) -> None:
        super().__init__(parts)
        self.spans, self.errors, self.staleness = spans, np.zeros(self.horizon.H), np.zeros(())
        self.features, self.M, self.dtype, self._state_bytes = features, M, dtype, state_bytes
        self.probes, self.follow = probes, correction != "frozen"
        # with one regression and H values J would be larger than all the rest: probes alone
        self.slopes = correction == "slope" and (not self.horizon.shared or self.horizon.discounted)
        kept, L = self.horizon.followed, self.horizon.levels
        self.buffer, self.probe = self._transitions(kept), self._transitions(kept)
        self.c, self.w_ref = np.zeros((L, features.d)), np.zeros((L, features.d))
        self.folded, self.apart = np.zeros(kept, dtype=np.int64), np.zeros(L)
        self._make_past(folded=False)
        self._staying: list[BoolArray] = []  # of each buffer while it is folded
        self._known: dict[int, Ahead] = {}
        self._shared_spread: tuple[Array, Array, float] | None = None

    def _transitions(self, kept: int) -> Transitions:
        return Transitions(kept, self.M, self.features, rewards=self.exploration.adaptive)

    def _make_past(self, *, folded: bool) -> None:
        """Space for what stands for folded samples: none before the first fold."""
        d, levels = self.features.d, self.horizon.levels * folded
        self.J = np.zeros((levels * self.slopes, d, d))
        self.V_ref = np.zeros((levels, self.M), dtype=self.dtype)
        self.best_ref = np.zeros((levels * self.slopes, self.M), dtype=np.int32)  # -1 where V has no slope

    def add(self, h: int, sample: Sample) -> None:
        g = self.horizon.group(h)
        if g < len(self.folded):
            self.buffer.add(g, sample)

    def clear(self, runs: Any = ...) -> None:
        kept = len(self.folded)
        self.buffer, self.probe = self._transitions(kept), self._transitions(kept)
        self.folded[:] = 0
        self.c[:] = self.w_ref[:] = self.apart[:] = 0.0
        self._make_past(folded=False)

    @property
    def must_plan(self) -> bool:
        return int(self.buffer.count.max(initial=0)) + self.horizon.samples_per_episode > self.M

    def begin(self) -> None:
        """A full buffer will be folded, with the V of this planning."""
        self.ridge.settle()
        self.forget()
        if self.must_plan:
            # the more frequent half; less where little more than an episode fits, lest the next one fill it again
            most = max(0, min(self.M // 2, self.M - 5 * self.horizon.samples_per_episode // 4))
            self._staying = [self.buffer.frequent(g, most) for g in range(len(self.folded))]
            if not self.folded.any():
                self._make_past(folded=True)

    def end(self, rng: np.random.Generator | None) -> None:
        if self._staying:
            assert rng is not None
            if self.horizon.discounted:
                self._target(0, fold=True)
            for g in reversed(range(len(self.folded))):
                self._choose_probes(g, rng)
            self.forget()
            for level in reversed(range(1 if self.horizon.discounted else self.horizon.H - 1)):
                self._note_reference(level)
            for g, stay in enumerate(self._staying):
                self.folded[g] += np.count_nonzero(~stay)
                self.buffer.keep(g, stay)
            self._staying = []
        self.forget()

    def target(self, h: int) -> Array:
        return self._target(h, fold=bool(self._staying) and not self.horizon.discounted)

    def residuals(self, h: int, w: Array, target: Array) -> tuple[Moments, float]:
        """Those of the buffer exactly, and for all that was folded those of the probes, an even choice of it."""
        g = self.horizon.group(h)
        if g >= len(self.folded):  # nothing follows the last step: its targets are rewards, whose sums are exact
            return super().residuals(h, w, target)
        n, sums = self.exploration.moments(h, 0.0, 0.0).n, self._errors(h, self.buffer, w)
        if self.folded[g] and (probed := self._errors(h, self.probe, w))[0]:
            sums = sums + (n - sums[0]) / probed[0] * probed
        return Moments(n, sums[1], sums[2]), sums[3]

    def ahead(self, h: int) -> tuple[float, float]:
        return 0.0, 0.0  # asked for where nothing follows, alone

    def _errors(self, h: int, samples: Transitions, w: Array) -> Array:
        """Of some samples: their number, and the sums of their targets, squared targets and squared residuals."""
        g, ahead = self.horizon.group(h), self._ahead(h, samples)
        n, times = len(ahead.phi), ahead.times[:, 0]
        V = self._value(h, samples, ahead).V if self.horizon.leads_on(h) else np.zeros(n)
        V = np.where(samples.alive[g, :n], V, self.exploration.terminal[h])
        paid, squared = samples.paid[g, :n].T
        y = paid + self.horizon.discount * V
        within, missed = float(times @ (squared - paid * paid)), y - ahead.phi @ w
        return np.array((times.sum(), times @ y, times @ (y * y) + within, times @ (missed * missed) + within))

    def greedy_target(self, h: int, w: Array) -> Array:
        return self._target(h, fold=False, greedy=w)

    def _target(self, h: int, *, fold: bool, greedy: Array | None = None) -> Array:
        """z_h over all samples: those in the buffer exactly, those folded as the sum that stands for them."""
        g, following = self.horizon.group(h), self._following(h) if greedy is None else greedy
        new = self._ahead(h, self.buffer)
        value = self._value(h, self.buffer, new, greedy)
        z: Array = new.phi.T @ (new.times[:, 0] * value.V)
        J: Any = 0.0
        scatter = 0.0
        if self.folded[g]:
            moved, J, scatter = self._moved(h, new, following, fold=fold, greedy=greedy)
            z = z + moved
        if greedy is None:
            self.errors[h] = math.sqrt(self.apart[h] + scatter)
        if fold:
            stay, counted = self._staying[g], new.times * new.phi
            if self.slopes:
                self.J[h] = J + counted[~stay].T @ _chosen(new.rows, value.best)[~stay]
            self.c[h], self.w_ref[h] = z - counted[stay].T @ value.V[stay], following
            self.apart[h] += scatter
        return z

    def _following(self, h: int) -> Array:
        """The weights of the Q that follows step h."""
        w: Array = self.w[self.horizon.level(h + 1)]
        return w

    def _moved(
        self, h: int, new: Ahead, following: Array, *, fold: bool, greedy: Array | None
    ) -> tuple[Array, Any, float]:
        """c_h brought to today's V, J_h, if it is to be folded, to its slopes, and the squared error of that."""
        old = self._ahead(h, self.probe)
        value = self._value(h, self.probe, old, greedy)
        m, (spread, fitted, more) = len(old.phi), self._spread(h, new, old)
        change = value.V - self.V_ref[h, :m]
        if not self.follow:  # nothing of the change is brought in
            return self.c[h].copy(), 0.0, more * float(old.times[:, 0] @ change**2)
        if not self.slopes:
            return self.c[h] + spread @ change, 0.0, self._scatter(old, fitted, more, change)
        psi, step = _chosen(old.rows, self.best_ref[h, :m]), following - self.w_ref[h]
        J = self.J[h] + spread @ (_chosen(old.rows, value.best) - psi) if fold else 0.0
        rest = change - psi @ step
        return self.c[h] + self.J[h] @ step + spread @ rest, J, self._scatter(old, fitted, more, rest)

    def _scatter(self, old: Ahead, fitted: Array, more: float, rest: Array) -> float:
        """The squared error, by estimate, of D_h g_h for sum phi_i e_i, from the e_i at the probes."""
        times, m = old.times[:, 0], len(rest)
        missed = rest - old.phi @ (fitted @ rest)
        return max(more - 1, 0.0) * float(times @ missed**2) / float(times.sum()) * m / max(m - self.features.d, 1)

    def _spread(self, h: int, new: Ahead, old: Ahead) -> tuple[Array, Array, float]:
        """D_h g and g for anything at the probes, as matrices (d, m), and tr D_h over that of the probes.

        With one regression they are made once per planning.
        """
        if self._shared_spread is not None:
            return self._shared_spread
        lam = float(self.ridge.lam) * np.eye(self.features.d)
        D = self.ridge.Lambda[self.horizon.group(h)] - lam - new.phi.T @ (new.times * new.phi)
        counted = old.times * old.phi
        probed = old.phi.T @ counted
        fitted: Array = np.linalg.solve(probed + lam, counted.T)
        found = D @ fitted, fitted, max(0.0, float(np.trace(D))) / max(float(np.trace(probed)), 1e-12)
        if self.horizon.shared:
            self._shared_spread = found
        return found

    def forget(self) -> None:
        self._known.clear()
        self._shared_spread = None

    def _ahead(self, h: int, samples: Transitions) -> Ahead:
        """Features of step h's samples and of what followed; with one regression, made once per planning."""
        key, g, explore = id(samples), self.horizon.group(h), self.exploration
        if key in self._known:
            return self._known[key]
        n, A = int(samples.count[g]), self.features.A
        rows, forms = np.empty((n, A, self.features.d)), np.empty((n, A) if explore.keeps_forms else 0)
        for part in (slice(i, min(i + CHUNK, n)) for i in range(0, n, CHUNK)):  # little memory on the way
            rows[part] = self.features.batch(samples.following[g, part])
            if explore.keeps_forms:
                forms[part] = explore.forms(self.horizon.level(h + 1), rows[part])
        found = Ahead(samples.phi(g), samples.times[g, :n, None], rows, forms)
        if self.horizon.shared:
            self._known[key] = found
        return found

    def _value(self, h: int, samples: Transitions, ahead: Ahead, greedy: Array | None = None) -> Valued:
        """V of what followed, with the Q that follows step h or, with weights `greedy`, without exploration."""
        after, explore, rows = self.horizon.level(h + 1), self.exploration, ahead.rows
        alive, cap = samples.alive[self.horizon.group(h), : len(rows)], explore.caps[after]
        if greedy is None:
            vectors = stacked(explore.vectors(after))
            products = (vectors @ rows.reshape(-1, rows.shape[-1]).T).reshape(len(vectors), *rows.shape[:2])
            q = explore.q(after, products, ahead.forms)
        else:
            q = np.minimum(rows @ greedy, cap)
        best = explore.best(q, axis=-1).argmax(axis=-1)
        value = q[np.arange(len(q)), best] * alive
        return Valued(value, np.where(alive & (value < cap - explore.tie), best, -1))

    def _choose_probes(self, g: int, rng: np.random.Generator) -> None:
        """New probes out of the old ones and what is folded."""
        rare = (~self._staying[g]).nonzero()[0]
        n, m, M, old = len(rare), int(self.probe.count[g]), self.M, int(self.folded[g])
        fresh = n if self.probes == "recent" or not old else int(rng.hypergeometric(n, old, min(M, n + old)))
        fresh = max(fresh, M - m) if n + m >= M else n
        mine = rng.permutation(m)[: min(m, M - fresh)]
        theirs = rare[rng.permutation(n)[: min(n, fresh)]]
        self.probe.take(g, self.buffer, mine, theirs)

    def _note_reference(self, h: int) -> None:
        """What V and its best actions are at the new probes of step h."""
        V, best = self._value(h, self.probe, self._ahead(h, self.probe))
        self.V_ref[h, : len(V)] = V
        if self.slopes:
            self.best_ref[h, : len(best)] = best

    def q_values(self, h: int, state: State) -> Array:
        return self.exploration.q_of_rows(h, self.features.phi(state))

    def best_table(self, h: int) -> BoolArray:
        assert isinstance(self.features, TableFeatures)
        q = self.exploration.q_of_rows(h, self.features.columns.T)
        best: BoolArray = self.exploration.best(q.reshape(self.features.A, self.features.S))
        return best

    def played(self, h: int, state: State, action: int) -> None:
        if self.errors.any():
            inverse, phi = self.ridge.Lambda_inv[self.horizon.group(h)], self.features.phi(state)[action]
            self.staleness += self.off(h, float(phi @ inverse @ phi))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.buffer.nbytes + self.probe.nbytes

    def bytes_after(self, samples: int) -> int:
        parts, L, d = (self.buffer, self.probe), self.horizon.levels, self.features.d
        past = L * (self.M * self.V_ref.itemsize + self.slopes * (8 * d * d + 4 * self.M))
        missing = 0 if self.folded.any() or not len(self.folded) else past
        return self.nbytes + missing + sum(part.bytes_when_full(self._state_bytes) - part.nbytes for part in parts)

    def state_dict(self) -> StateDict:
        parts = prefixed("buffer", self.buffer.state_dict()) | prefixed("probe", self.probe.state_dict())
        return super().state_dict() | parts

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        folded = saved_array(state, "folded")
        if not (folded >= 0).all():
            raise InvalidData("'folded' of a saved agent must not be negative.")
        self._make_past(folded=bool(folded.any()))
        for name in self._arrays:
            load_array(getattr(self, name), state, name)
        if not all((getattr(self, name) >= 0).all() for name in ("apart", "errors", "staleness")):
            raise InvalidData("'apart', 'errors' and 'staleness' of a saved agent must not be negative.")
        if not ((self.best_ref >= -1) & (self.best_ref < self.features.A)).all():
            raise InvalidData(f"'best_ref' of a saved agent must be in [-1, {self.features.A - 1}] everywhere.")
        self.buffer.load_state_dict(under("buffer", state))
        self.probe.load_state_dict(under("probe", state))


def _chosen(rows: Array, best: IntArray) -> Array:
    """phi(s'_i, best_i) of rows (n, A, d), (n, d); zero where there is no best action."""
    psi: Array = rows[np.arange(len(rows)), np.maximum(best, 0)] * (best >= 0)[:, None]
    return psi
