"""Next states merged into at most M centres: every target is made again at every planning, and the error is bounded.

z = sum_i phi_i V(s'_i) = sum_c N_c V(c), if every s'_i is the centre c to which it belongs. See docs/bounded-memory.md.

Below is how points are covered by few of them. A point is a row of features, (p,), or one row for each action, (A, d);
the distance of two points is the largest over the actions. A set of n points is (n, p) or (n, A, d).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from linmdp.agents.backend import zeros
from linmdp.agents.exploration.base import Moments
from linmdp.agents.held import check_range
from linmdp.agents.memory.base import BUFFERS, FADED, Parts, RowStorage, Sample
from linmdp.errors import InvalidData
from linmdp.features.base import FeatureMap
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray, State

REACH = 2.0
"""Centres that stand together for a next state are within this many radii of it."""

CHUNK = 8
"""Points whose distances to all others are taken at once."""

NEIGHBOURS = 6
"""Centres that may stand for one point."""

RIDGE, SLACK = 1e-6, 1e-9
"""So that weights are those of one solution, and points as far apart as the radius count as within it."""

ROUNDING = 1e-14
"""Of distances squared that come from products, in units of the norms squared."""

WIDER = 1.5
"""The radius grows by this factor, at least, when there are too many centres: see docs/bounded-memory.md."""

TIMES, REWARD, SQUARES, FORMS = range(4)
"""What `sums` holds of the samples of a centre."""


class Centres(RowStorage):
    """At most M centres for each regression that leads to a next step: next states that were seen.

    A next state within `radius` of a centre belongs to the nearest; any other becomes a centre. When there are more
    than M the radius grows, and centres that are nearer to a heavier one than that are merged into it. The distance of
    two states is that of their features, for the action for which it is largest.

    Where beta and lam are "auto" and states are not finite, ends count as in `Transitions`.

    Attributes
    ----------
    centre : (F, M + 1) the states, where they are finite; else (F, 0), and
    point : (F, M + 1, p) or (F, M + 1, A, d) their features, of the F regressions that lead to a next step
    N : (F, M + 1, d) sum of phi; sums : (F, 4, M + 1) number of samples, sum of their rewards, and bounds of their
        squared distances, and of those in the norm of Lambda^-1 of the next step, to their next states
    W : (F, d, d) or (F, p, p) bound of sum_i sum_a D D', D = phi(s'_i, a) - phi(c_i, a), where d is at most M
    count, radius : (F,); outer : (G, blocks, p, p) sum phi phi'
    ended : (F, d) sum of phi over samples that ended an episode; ends : (F, 2) their number and rewards
    final : (G, d) sum of phi over ended states and actions; finals : (G,) how many these are
    spans : (H,) the largest difference of two values of a step
    errors : (H,) E_h of the last planning; certificate : () see `off`
    older : (G,) whether Lambda^-1 knows samples that have been dropped
    """

    _arrays: ClassVar = (
        *("centre", "point", "N", "sums", "W", "count", "radius", "outer"),
        *("ended", "ends", "final", "finals", "errors", "certificate", "older"),
    )
    _derived: ClassVar = ("spans",)

    def __init__(self, parts: Parts, features: FeatureMap, M: int, dtype: str, spans: Array) -> None:
        super().__init__(parts, features)
        horizon, d, (G, blocks, p, _) = self.horizon, features.d, self.ridge.Lambda_inv.shape
        self.M, self.spans, self.table, F = M, spans, isinstance(features, TableFeatures), horizon.followed
        shape = (0,) if self.table else (F, M + 1, p) if self.blocks else (F, M + 1, self.A, d)
        self.centre = zeros((F, (M + 1) * self.table), np.int32)
        self.point, self.N = zeros(shape, dtype), zeros((F, M + 1, d), dtype)
        self.sums, self.W = zeros((F, 4, M + 1)), zeros((F * (p <= M), p, p))
        self.count, self.radius = np.zeros(F, dtype=np.int64), np.zeros(F)
        self.outer: Array = zeros((G, blocks, p, p))
        self.ended, self.ends = np.zeros((F, d)), np.zeros((F, 2))
        self.absorbing = self.exploration.adaptive and not self.table
        self.final, self.finals = np.zeros((G * self.absorbing, d)), np.zeros(G * self.absorbing)
        self.errors, self.certificate = np.zeros(horizon.H), np.zeros(())
        self.older = np.zeros(G, dtype=np.bool_)
        self._V = np.zeros(0)
        self._held: tuple[int, Array, Array] | None = None  # a regression, its points and their forms

    # samples

    def add(self, h: int, sample: Sample) -> None:
        g, phi = self.horizon.group(h), sample.weight * sample.phi
        where = slice(sample.action * len(phi), (sample.action + 1) * len(phi)) if self.blocks else slice(None)
        self.outer[g, sample.action if self.blocks else 0] += phi[:, None] * sample.phi
        self.ridge.u[g, where] += phi * sample.reward
        if sample.terminated:
            self._add_end(g, where, phi, sample)
        elif g < len(self.count):
            into, weights = self._place(g, sample.next_state, sample.weight)
            self.N[g, into, where] += weights[:, None] * phi
            self.sums[g, :2, into] += sample.weight * weights[:, None] * (1.0, sample.reward)
            while self.count[g] > self.M:
                self._coarsen(g)

    def _add_end(self, g: int, where: slice, phi: Array, sample: Sample) -> None:
        if g < len(self.count):
            self.ended[g, where] += phi
            self.ends[g] += sample.weight, sample.weight * sample.reward
        if self.absorbing:  # nothing follows what ended, whatever one would do there: known without playing
            rows = self.rows(np.asarray(sample.next_state)[None])[0]
            self.outer[g] += sample.weight * (rows[:, None] * rows if self.blocks else rows.T @ rows)
            self.final[g] += sample.weight * (np.tile(rows, self.A) if self.blocks else rows.sum(axis=0))
            self.finals[g] += sample.weight * self.A

    def _place(self, g: int, state: State, weight: float) -> tuple[IntArray, Array]:
        """The centres that stand for a next state, and their weights; how far they are is added to the sums."""
        n, radius = int(self.count[g]), float(self.radius[g])
        if self.table and len(found := np.flatnonzero(self.centre[g, :n] == state)):
            return found, np.ones(1)
        point = self.rows(np.asarray(state)[None])[0].astype(self.point.dtype, copy=False)
        if not np.isfinite(point.sum()):
            raise InvalidData(f"Features of state {state!r} must be finite.")
        if n and (radius > 0 or not self.table):
            shares = shared(point, self.points(g), REACH * radius, radius)
            if len(shares.into):
                outer = self._displace(g, shares, weight) if shares.nearest > 0 else 0.0
                if len(self.W):
                    self.W[g] += outer
                return shares.into, shares.weights
        if self.table:
            self.centre[g, n] = state
        else:
            self.point[g, n] = point
        self.count[g] = n + 1
        return np.array([n]), np.ones(1)

    def points(self, g: int) -> Array:
        """The features of all centres of a regression."""
        n = int(self.count[g])
        return np.ascontiguousarray(self.rows(self.centre[g, :n])) if self.table else self.point[g, :n]

    def _displace(self, g: int, shares: Shares, times: float, old: Sequence[float] = (0.0, 0.0)) -> Any:
        """Samples for which one point stood have others now; what that adds to W, where there is one.

        `times` is their number, and `old` the bounds of their distances, squared, to the point that stood for them.
        """
        into, weights, moved, _ = shares
        for name, squares, before in zip(
            (SQUARES, FORMS), (norms_squared(moved), self._norms_after(g, moved)), old, strict=True
        ):
            self.sums[g, name, into] += weights * moved_farther(before, times, np.sqrt(squares))
        rows = moved.reshape(-1, moved.shape[-1])
        counts = np.repeat(times * weights, len(rows) // len(weights))
        return (counts[:, None] * rows).T @ rows if len(self.W) else 0.0

    def _after(self, g: int) -> int:
        """The regression whose Lambda^-1, as it was at the last planning, is that of the step after those of g."""
        return 0 if self.horizon.shared else g + 1

    def _norms_after(self, g: int, moved: Array) -> Array:
        """The largest over the actions of differences of points in that norm, squared, (n,)."""
        after = self._after(g)
        if self.older[after]:  # it knows samples that have been dropped
            return norms_squared(moved) / float(self.ridge.lam)
        return np.asarray(self.forms(moved, self.ridge.Lambda_inv[after]).max(axis=1))

    def _coarsen(self, g: int) -> None:
        """Merge centres that are nearer to each other than a larger radius, the heaviest first."""
        n = int(self.count[g])
        order = np.argsort(-self.sums[g, TIMES, :n], kind="stable")
        points = self.points(g)[order].astype(np.float64)
        self.radius[g] = radius = max(WIDER * float(self.radius[g]), least_distance(points))
        stays = cover(points, radius)
        self._keep(g, order)
        kept, X, moved_before = np.flatnonzero(stays), 0.0, False
        staying = points[kept]
        for i in np.flatnonzero(~stays):
            shares = shared(points[i], staying, radius)
            shares = shares._replace(into=kept[shares.into])
            times, reward, *old = self.sums[g, :, i].tolist()
            self.N[g, shares.into] += shares.weights[:, None] * self.N[g, i]
            self.sums[g, :2, shares.into] += shares.weights[:, None] * (times, reward)
            X = X + self._displace(g, shares, times, old)
            moved_before |= old[0] > 0
        if len(self.W):
            self.W[g] = moved_outer(self.W[g], X) if moved_before else self.W[g] + X
        self._keep(g, kept)

    def _keep(self, g: int, which: Any) -> None:
        """Keep these centres of a regression."""
        n, old = len(which), int(self.count[g])
        for array in (self.centre[g] if self.table else self.point[g], self.N[g], self.sums[g].T):
            array[:n] = array[which]
            array[n:old] = 0
        self.count[g] = n

    def clear(self, runs: Any = ...) -> None:
        for name in ("N", "sums", "W", "count", "radius", "outer", "ended", "ends", "final", "finals"):
            getattr(self, name)[...] = 0
        self.older[:] = True

    def refresh(self, mask: BoolArray) -> None:
        self.older[mask] = False

    def fade(self, factor: float) -> None:
        # the bounds in the norm of Lambda^-1 stay: that grows by 1 / factor at most
        for array in (self.N, self.sums[:, :FORMS], self.W, self.outer, self.ended, self.ends, self.final, self.finals):
            array *= factor
        for g in range(len(self.count)):
            stay = np.flatnonzero(self.sums[g, TIMES, : self.count[g]] >= FADED)
            if len(stay) < self.count[g]:
                self._keep(g, stay)

    def gram(self, g: int) -> Array:
        return np.asarray(self.outer[g])

    # planning

    def forget(self) -> None:
        self._held, self._V = None, np.zeros(0)

    def hold(self, g: int) -> tuple[Array, Array]:
        """The points of a regression and their forms at the step that follows; made once, as long as it is asked."""
        if self._held is None or self._held[0] != g:
            points, needed = self.points(g), self.exploration.keeps_forms
            self._held = g, points, self.forms(points, self.ridge.Lambda_inv[self._after(g)]) if needed else np.zeros(0)
        return self._held[1:]

    def target(self, h: int) -> Array:
        g, explore = self.horizon.group(h), self.exploration
        z: Array = np.zeros(self.features.d)
        self.errors[h] = 0.0
        if self.absorbing:
            z = explore.ended_value[h] / self.horizon.discount * self.final[g]
        if self.horizon.leads_on(h):
            after = 0 if self.horizon.discounted else h + 1
            points, forms = self.hold(g)
            products = np.stack([self.products(points, vector) for vector in explore.vectors(after)])
            self._V = explore.largest(explore.q(after, products, forms), axis=-1)
            z = z + self._V @ self.N[g, : len(points)] + explore.terminal[h] * self.ended[g]
            self.errors[h] = self.error(g, after)
        return z

    def greedy_target(self, h: int, w: Array) -> Array:
        g, cap = self.horizon.group(h), self.exploration.caps[self.horizon.level(h + 1)]
        points, _ = self.hold(g)
        V = np.minimum(self.products(points, w), cap).max(axis=-1, initial=-np.inf)
        return np.asarray(V @ self.N[g, : len(points)])

    def ahead(self, h: int) -> tuple[float, float]:
        g = self.horizon.group(h)
        times, rewards = np.concatenate((self.sums[g, :2, : self.count[g]], self.ends[g, :, None]), axis=1)
        V = self.horizon.discount * np.append(self._V, self.exploration.terminal[h])
        return float(times @ V), float(times @ (V * V) + 2 * rewards @ V)

    def moments(self, h: int) -> Moments:
        found, y = super().moments(h), float(self.exploration.ended_value[h])
        n = float(self.finals[self.horizon.group(h)]) if self.absorbing else 0.0
        return Moments(found.n + n, found.total + n * y, found.squares + n * y * y)

    # the certificate

    def error(self, g: int, after: int) -> float:
        """E_h: a bound of |(V(c_i) - V(s'_i))_i|, the norm over all samples, for the V of step `after`."""
        explore, (times, _, squares, forms) = self.exploration, self.sums[g].sum(axis=1)
        if not squares:
            return 0.0
        vectors = np.stack([vector.reshape(-1, self.outer.shape[-1]) for vector in explore.vectors(after)])
        steepest = float(np.sqrt(np.einsum("nap,nap->na", vectors, vectors).max()))
        slope, width = steepest * squares**0.5, float(explore.beta[after]) * explore.keeps_forms
        inverse = self.ridge.Lambda_inv[self._after(g)]
        spread = squares / float(self.ridge.lam) if explore.adaptive else forms  # lam may have fallen
        if len(self.W):
            slope = min(slope, float(np.einsum("nap,pq,naq->", vectors, self.W[g], vectors)) ** 0.5)
            spread = min(spread, float(np.einsum("apq,pq->", inverse, self.W[g])))
        lowest = -steepest * self.features.bound  # of phi'w, where it is not clipped
        span = float(self.spans[after]) if explore.clipped else float(explore.caps[after]) - lowest
        return float(min(slope + width * spread**0.5, span * times**0.5))

    def played(self, h: int, state: State, action: int) -> None:
        if self.errors.any():
            inverse, row = self.ridge.Lambda_inv[self.horizon.group(h)], self.rows(np.asarray(state)[None])[0]
            phi, inverse = (row, inverse[action]) if self.blocks else (row[action], inverse[0])
            self.certificate += self.off(h, float(phi @ inverse @ phi))

    # memory and files

    def working_bytes(self, samples: int) -> int:
        """Features of the centres, several times while they merge, and distances of CHUNK of them to all others."""
        (_, blocks, p, _), A, d = self.outer.shape, self.A, self.features.d
        row, separate = (p, 1) if self.blocks else (A * d, A)
        one = 5 * row + 2 * d + 12 * A + CHUNK * (3 * separate + 1)
        return int(BUFFERS + 8 * (self.M + 1) * one + 32 * blocks * p * p)

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        S = self.features.S if isinstance(self.features, TableFeatures) else 1
        check_range("count", self.count, 0, self.M)
        check_range("centre", self.centre, 0, S - 1)
        bounds = {name: getattr(self, name) for name in ("radius", "errors", "certificate", "finals")}
        bounds |= {"sums": self.sums[:, (TIMES, SQUARES, FORMS)], "W": np.diagonal(self.W, axis1=-2, axis2=-1)}
        if not all(np.isfinite(held).all() and (held >= 0).all() for held in bounds.values()):
            raise InvalidData(f"{', '.join(bounds)} of a saved agent must be finite, and not negative.")


def norms_squared(differences: Array) -> Array:
    """The squared distances that n differences of points are, (n,)."""
    squares: Array = np.einsum("...d,...d->...", differences, differences)
    return squares if squares.ndim == 1 else squares.max(axis=1)


def distances_squared(some: Array, points: Array) -> Array:
    """From each of `some` to each of `points`, (m, n), by products: exact to about 1e-16 times the norms squared."""
    if some.ndim == 2:
        some, points = some[:, None], points[:, None]
    some, points = some.swapaxes(0, 1), points.swapaxes(0, 1)  # actions first: one product for each
    own = np.einsum("and,and->an", points, points)[:, None, :]
    squares = own + np.einsum("amd,amd->am", some, some)[:, :, None] - 2 * (some @ points.swapaxes(1, 2))
    return np.asarray(np.maximum(squares.max(axis=0), 0.0))


def least_distance(points: Array) -> float:
    """That of the two points nearest to each other."""
    least, pair = np.inf, (0, 0)
    for i in range(0, len(points) - 1, CHUNK):
        found = distances_squared(points[i : i + CHUNK], points[i:])
        rows = np.arange(len(found))
        found[rows, rows] = np.inf
        if found.min() < least:
            a, b = divmod(int(found.argmin()), found.shape[1])
            least, pair = float(found[a, b]), (i + a, i + b)
    return float(norms_squared(points[[pair[0]]] - points[[pair[1]]])[0] ** 0.5)


def cover(points: Array, radius: float) -> BoolArray:
    """Which points stay, in their order: those farther than `radius` from all that stay before; (n,)."""
    reach = radius**2 * (1 + SLACK) + ROUNDING * float(norms_squared(points).max(initial=0.0))
    nearest = np.full(len(points), np.inf)
    for i in range(len(points)):
        if nearest[i] > reach:
            later = nearest[i + 1 :]
            np.minimum(later, distances_squared(points[i : i + 1], points[i + 1 :])[0], out=later)
    return nearest > reach


class Shares(NamedTuple):
    """Which points stand for another, with which weights, and how far from them it is; `nearest`: from any, squared."""

    into: IntArray
    weights: Array
    moved: Array
    nearest: float


def shared(point: Array, points: Array, reach: float, limit: float = np.inf) -> Shares:
    """The nearest of the points, or up to NEIGHBOURS of them within `reach`, to stand for `point`; none beyond `limit`.

    Their weights are not negative, have the sum 1, and bring the mean of their features as near to those of `point` as
    they can, but for points that are left out on the way, where a weight would be negative.
    """
    moved = point - points
    squares = norms_squared(moved)
    near = np.argsort(squares, kind="stable")[:NEIGHBOURS]
    nearest = float(squares[near[0]])
    if nearest > limit * limit * (1 + SLACK):
        return Shares(near[:0], np.zeros(0), moved[:0], nearest)
    within = squares[near] <= reach * reach * (1 + SLACK)
    near = near[: max(1, np.count_nonzero(within)) if nearest else 1]
    D = moved[near].reshape(len(near), -1).astype(np.float64)
    products, left = D @ D.T, np.arange(len(near))
    products += RIDGE * np.trace(products) * np.eye(len(near))
    while len(left) > 1:
        weights = np.linalg.solve(products[np.ix_(left, left)], np.ones(len(left)))
        if (weights > 0).all():
            return Shares(near[left], weights / weights.sum(), D[left].reshape(-1, *point.shape), nearest)
        left = left[weights > 0]
    return Shares(near[left], np.ones(1), D[left].reshape(-1, *point.shape), nearest)


def moved_farther(squares: float, times: float, distance: Array) -> Array:
    """A bound of sum_i (x_i + D)^2, from sum_i x_i^2 and the number of terms: (sqrt(sum x^2) + D sqrt(n))^2."""
    return np.asarray((squares**0.5 + distance * times**0.5) ** 2)


def moved_outer(W: Array, X: Any) -> Array:
    """A bound, in the order of matrices, of sum (x + y)(x + y)' from sum x x' <= W and X = sum y y'.

    (x + y)(x + y)' <= (1 + c) x x' + (1 + 1/c) y y' for every c > 0; this one makes the trace least.
    """
    before, step = float(np.trace(W)), float(np.trace(X))
    if not before or not step:
        return np.asarray(W + X)
    c = (step / before) ** 0.5
    return np.asarray((1 + c) * W + (1 + 1 / c) * X)
