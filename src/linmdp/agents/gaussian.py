"""A Gaussian process over states and actions in three parts, whose shares follow from the evidence.

Of a function f(x, a) with mean 0 it assumes

    cov(f(x, a), f(y, b)) = theta_0 k(x, y) + theta_1 k(x, y) [a = b] + theta_2 [x = y, a = b]:

what all actions share, what each has of its own, and what each state has of its own. k is smooth; of n states it is
kept as p features F with F F' close to it (a Cholesky factor whose pivots are the states that the features so far say
least about), and what they leave over counts as the state's own (Snelson and Ghahramani 2006: FITC). So a cell c, a
state and an action with n_c visits, has noise tau_c + sigma^2 / n_c around its smooth part, and the smooth part is a
ridge regression on p features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linmdp.types import Array, IntArray

LEAST, MOST = 1e-10, 1e4
"""Bounds of each variance, in units of the mean square of the targets."""

CLOSE = 1e-6
"""States about which features say as much, up to rounding, are equal: the first of them is chosen."""

LEFT_OUT = 1e-4
"""A feature that adds less than this to any state is left out, and so are all that would follow."""

SHORT, SHORTER = 0.05, 3.0
"""The share of k that is of a shorter length, and how much shorter that is."""


def kernel(squares: Array) -> Array:
    """k of squared distances in units of the length: Gaussian, with a small part of a shorter length."""
    found: Array = (1 - SHORT) * np.exp(-0.5 * squares) + SHORT * np.exp(-0.5 * SHORTER**2 * squares)
    return found


def distances(X: Array, Z: Array) -> Array:
    """Squared distances between the rows of X (n, k) and of Z (p, k), (n, p)."""
    squares = np.einsum("nk,nk->n", X, X)[:, None] + np.einsum("pk,pk->p", Z, Z) - 2 * X @ Z.T
    found: Array = np.maximum(squares, 0.0)
    return found


class Smooth(NamedTuple):
    """Features of n states in which k is a product, as far as p of them go."""

    F: Array  # (n, p)
    left: Array  # (n,) what they leave of k(x, x) = 1
    pivots: IntArray  # (p,) the states that they are made of
    inverse: Array  # (p, p): the features of any x are inverse @ k(Z, x), with Z the pivots


def smooth(X: Array, p: int, dtype: str) -> Smooth:
    """The features of states X (n, k), in units of the length; fewer than p if those say it all. F is of `dtype`."""
    n = len(X)
    F, left, pivots = np.zeros((n, min(p, n))), np.ones(n), list[int]()
    for j in range(min(p, n)):
        i = int((left > left.max() - CLOSE).argmax())
        if left[i] < LEFT_OUT:
            break
        F[:, j] = (kernel(distances(X, X[i : i + 1])[:, 0]) - F[:, :j] @ F[i, :j]) / np.sqrt(left[i])
        left = np.maximum(left - F[:, j] ** 2, 0.0)
        pivots.append(i)
    F = F[:, : len(pivots)]
    inverse = np.linalg.inv(np.tril(F[pivots]))
    return Smooth(F.astype(dtype), left, np.array(pivots, dtype=np.int64), inverse)


class Shares(NamedTuple):
    """The variances: what actions share, what each has of its own, what each state has of its own, and the noise."""

    shared: float
    own: float
    exact: float
    noise: float


START = Shares(1.0, 1.0, 1.0, 0.3)
"""Before the first data, in units of the mean square of the targets."""


def _trace(matrix: Array) -> float:
    return float(np.einsum("pp->", matrix))


class Weights(NamedTuple):
    """From sums z_a = sum over the cells of a of omega_c phi_c y_c, (p, A), to the weights of each action.

    With Lambda_a = sum omega phi phi' + I / own and S = I / shared + sum_a (I - Lambda_a^-1 / own) / own, the shared
    weights are w_0 = S^-1 sum_a Lambda_a^-1 z_a / own, and those of action a are Lambda_a^-1 (z_a + w_0 / own): ridge
    regression that shrinks towards what all actions share.
    """

    inverses: Array  # (A, p, p) Lambda_a^-1
    common: Array  # (p, p) S^-1
    own: float

    def __call__(self, z: Array) -> tuple[Array, Array]:
        """Weights (p, A), and the shared ones (p,)."""
        alone = np.matmul(self.inverses, z.T[:, :, None])[:, :, 0].T
        shared = self.common @ alone.sum(axis=1) / self.own
        return alone + (self.inverses @ shared).T / self.own, shared

    def variance(self, phi: Array) -> Array:
        """Of the smooth part at states phi (n, p), for each action, (n, A)."""
        B = phi @ self.inverses
        found: Array = np.einsum("anp,np->na", B, phi) + np.einsum("anp,anp->na", B @ self.common, B) / self.own**2
        return found


def weights(phi: Array, action: IntArray, omega: Array, A: int, shares: Shares) -> Weights:
    """The regression on cells with features phi (C, p), actions and weights omega (C,)."""
    p = phi.shape[1]
    inverses, eye = np.empty((A, p, p)), np.eye(p)
    for a in range(A):
        rows = phi[action == a]
        inverses[a] = np.linalg.inv((rows * omega[action == a, None]).T @ rows + eye / shares.own)
    common = np.linalg.inv(eye / shares.shared + (A * eye - inverses.sum(axis=0) / shares.own) / shares.own)
    return Weights(inverses, common, shares.own)


class Data(NamedTuple):
    """Cells and their targets."""

    phi: Array  # (C, p) features
    left: Array  # (C,) what they leave over
    action: IntArray  # (C,)
    times: Array  # (C,) visits
    stands: Array  # (C,) states that a cell stands for
    y: Array  # (C,) mean targets
    within: float  # sum of squares of targets around these means

    def omega(self, shares: Shares) -> Array:
        """One over the variance of each mean target around the smooth part, (C,)."""
        tau = shares.exact + (shares.shared + shares.own) * self.left
        found: Array = 1 / (tau / self.stands + shares.noise / self.times)
        return found

    def power(self) -> float:
        """The mean square of the targets of all visits."""
        return float(self.times @ (self.y * self.y) / self.times.sum())


def evidence(data: Data, A: int, shares: Shares, *, floor: float, quiet: float, steps: int) -> Shares:
    """Shares nearer to those that make the targets most likely: so many steps of the fixed point

        theta_g <- theta_g^2 (a' K_g a) / (theta_g tr P K_g),  P = K^-1, a = P y.

    `floor` is the least that states may have of their own, `quiet` the least noise, as parts of the mean square.
    """
    power, p = data.power(), data.phi.shape[1]
    low, high = LEAST * power, MOST * power
    for _ in range(steps):
        shared, own, exact, noise = map(np.float64, shares)  # whose squares are infinite, and no error
        omega = data.omega(shares)
        fit = weights(data.phi, data.action, omega, A, shares)
        z = np.stack([(omega * data.y)[data.action == a] @ data.phi[data.action == a] for a in range(A)], axis=1)
        w, w_0 = fit(z)
        variance, free = np.zeros(len(data.y)), 0.0  # of each fit; how many own weights the data have fixed
        for a in range(A):
            mine = data.action == a
            B = data.phi[mine] @ fit.inverses[a]
            variance[mine] = np.einsum("np,np->n", B, data.phi[mine])
            variance[mine] += np.einsum("np,np->n", B @ fit.common, B) / own**2
            towards = np.eye(p) - fit.inverses[a] / own
            free += float(p - (_trace(fit.inverses[a]) + np.einsum("pq,pq->", towards @ fit.common, towards)) / own)
        alpha = omega * (data.y - np.einsum("cp,pc->c", data.phi, w[:, data.action]))
        trace = np.maximum(omega - omega**2 * variance, 0.0)
        left = data.left / data.stands
        over, over_trace = float(left @ alpha**2), float(left @ trace)

        def renewed(squares: float, fixed: float) -> float:
            return min(max(float(squares) / max(float(fixed), 1e-300), low), high)

        visits = float(noise**2 * (alpha**2 / data.times).sum()) + data.within
        shares = Shares(
            renewed(float(w_0 @ w_0) + shared**2 * over, p - _trace(fit.common) / shared + shared * over_trace),
            renewed(float(((w - w_0[:, None]) ** 2).sum()) + own**2 * over, free + own * over_trace),
            max(renewed(exact * (alpha**2 / data.stands).sum(), (trace / data.stands).sum()), floor * power),
            max(renewed(visits, noise * (trace / data.times).sum() + data.times.sum() - len(data.y)), quiet**2 * power),
        )
        shares = shares._replace(own=max(shares.own, 1e-3 * shares.shared))
    return shares
