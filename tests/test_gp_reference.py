"""The fast `lsvi-gp` is compared with its literal transcription on random inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linmdp.agents import LSVIGP
from linmdp.agents.experience import Experience
from linmdp.agents.gaussian import Data, Shares, evidence, smooth, weights
from linmdp.agents.returns import Returns
from linmdp.agents.scouts import Scouts
from linmdp.types import Array, IntArray, Task
from reference_gp import (
    Episode,
    Kernel,
    Pair,
    Point,
    Posterior,
    ReferenceGP,
    ReferenceScouts,
    Visit,
    discounted,
    evidence_step,
    top_and_low,
)

SEEDS = st.integers(0, 2**32 - 1)
REWARDS = st.lists(st.integers(-8, 8).map(lambda x: x / 4), min_size=1, max_size=9)
SHARES = [Shares(1.0, 1.0, 1.0, 0.3), Shares(2.0, 0.01, 1e-4, 0.05), Shares(1e-3, 3.0, 0.2, 1e-3)]


def point(x: Array) -> Point:
    return tuple(map(float, x))


class Cloud:
    """States with their features, fast and literal, and cells of them: random, on a grid where distances tie."""

    def __init__(self, seed: int, n: int = 14, A: int = 3) -> None:
        self.rng, self.A = np.random.default_rng(seed), A
        X = self.rng.normal(size=(n, 3)) if seed % 2 else self.rng.permutation(27)[:n, None] // (1, 3, 9) % 3 * 0.6
        self.X, self.p = X.astype(np.float64), int(self.rng.integers(2, n + 1))
        self.states = [point(x) for x in self.X]
        self.S = smooth(self.X, self.p, "float64")
        self.kernel = Kernel([1.0, 1.0, 1.0], 1.0, self.states, self.p)  # three coordinates: a length is a unit
        which = self.rng.permutation(n * A)[: int(self.rng.integers(1, n * A))]
        self.state, self.action, self.times = which // A, which % A, self.rng.integers(1, 5, len(which))
        self.stands = self.rng.integers(1, 4, len(which)).astype(float)
        self.phi, self.left = self.S.F[self.state], self.S.left[self.state]
        self.cells: list[Pair] = [
            (self.states[s], a) for s, a in zip(self.state.tolist(), self.action.tolist(), strict=True)
        ]
        self.kernel.stands = dict(zip(self.cells, self.stands.tolist(), strict=True))


@settings(deadline=None, max_examples=60)
@given(
    episodes=st.lists(st.tuples(REWARDS, st.booleans()), max_size=4),
    now=REWARDS,
    L=st.integers(1, 12),
    discount=st.sampled_from([1.0, 0.99, 0.5, 0.0]),
    sign=st.sampled_from([0, -1, 1]),
)
def test_the_most_and_the_least_are_those_of_all_windows(
    episodes: list[tuple[list[float], bool]], now: list[float], L: int, discount: float, sign: int
) -> None:
    fast, seen, every = Returns(L, discount), list[Episode](), list[float]()
    for rewards, over in [*episodes, (now, False)]:
        paid = [sign * (abs(r) + 0.25) if sign else r for r in rewards]
        every += paid
        for reward in paid:
            fast.paid(reward)
        top, low = top_and_low(seen, every, L, discount)
        np.testing.assert_allclose(fast.bounds(), (top, low), atol=1e-12)
        seen.append(Episode(paid, over))
        assert fast.ended(np.array(paid), over) == pytest.approx(discounted(paid, discount))
        assert fast.fixed == (len({len(e.rewards) for e in seen}) == 1)


@settings(deadline=None, max_examples=12)
@given(SEEDS)
def test_products_of_features_are_what_the_pivots_say_of_the_kernel(seed: int) -> None:
    of = Cloud(seed)
    assert [of.states[i] for i in of.S.pivots] == of.kernel.pivots
    assert len(of.S.pivots) <= of.p
    says: Array = np.array([[of.kernel.smooth(x, y) for y in of.states] for x in of.states])
    k = of.kernel.between(of.states, of.states)
    np.testing.assert_allclose(of.S.F @ of.S.F.T, says, atol=1e-9)
    np.testing.assert_allclose((of.S.F @ of.S.F.T)[of.S.pivots], k[of.S.pivots], atol=1e-9)
    np.testing.assert_allclose(of.S.left, [of.kernel.left(x) for x in of.states], atol=1e-9)
    new = [point(x) for x in of.rng.normal(size=(4, 3))]
    F = of.kernel.between(new, of.kernel.pivots) @ of.S.inverse.T
    np.testing.assert_allclose(F @ of.S.F.T, [[of.kernel.smooth(x, y) for y in of.states] for x in new], atol=1e-9)


@pytest.mark.parametrize("shares", SHARES)
@settings(deadline=None, max_examples=6)
@given(seed=SEEDS)
def test_weights_and_deviations_are_those_of_a_dense_solve(shares: Shares, seed: int) -> None:
    of = Cloud(seed)
    y, zero = of.rng.normal(size=len(of.cells)), np.zeros(len(of.cells))
    omega = Data(of.phi, of.left, of.action, of.times.astype(float), of.stands, zero, 0.0).omega(shares)
    fit = weights(of.phi, of.action, omega, of.A, shares)
    z = np.stack([(omega * y)[of.action == a] @ of.phi[of.action == a] for a in range(of.A)], axis=1)
    w, variance = fit(z)[0], fit.variance(of.S.F)
    dense = Posterior(of.kernel, of.cells, of.times.tolist(), shares)
    for s, x in enumerate(of.states):
        tau = shares.exact + (shares.shared + shares.own) * of.S.left[s]
        for a in range(of.A):
            factors, expected = dense.about((x, a))
            mean, found = float(of.S.F[s] @ w[:, a]), float(variance[s, a]) + tau
            for c in [i for i, cell in enumerate(of.cells) if cell == (x, a)]:
                kept, m = tau * omega[c] / of.stands[c], of.stands[c]
                mean, found = mean + kept * (y[c] - mean), (1 - kept) ** 2 * variance[s, a] + tau * (1 - kept / m)
            np.testing.assert_allclose((mean, found), (float(factors @ y), expected), rtol=1e-7, atol=1e-9)


def of_visits(cells: IntArray, y: Array, times: IntArray) -> tuple[Array, float]:
    """Mean targets of cells, and the sum of squares around them."""
    means = np.bincount(cells, y, len(times)) / times
    return means, float(((y - means[cells]) ** 2).sum())


@pytest.mark.parametrize("shares", SHARES)
@settings(deadline=None, max_examples=5)
@given(seed=SEEDS)
def test_a_step_of_the_evidence_is_that_of_one_matrix_of_all_visits(shares: Shares, seed: int) -> None:
    of = Cloud(seed, n=7)
    floor, quiet = float(of.rng.choice([0.0, 0.9])), float(of.rng.choice([1e-6, 0.01]))
    cell = np.repeat(np.arange(len(of.cells)), of.times)
    y = of.rng.normal(size=len(cell)) * of.rng.choice([0.1, 1.0]) + of.rng.normal(size=len(of.cells))[cell]
    data = Data(of.phi, of.left, of.action, of.times.astype(float), of.stands, *of_visits(cell, y, of.times))
    found = evidence(data, of.A, shares, floor=floor, quiet=quiet, steps=2)
    expected: list[float] = list(shares)
    for _ in range(2):
        visits = [of.cells[c] for c in cell]
        expected = evidence_step(of.kernel, visits, y.tolist(), expected, floor=floor, quiet=quiet)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@settings(deadline=None, max_examples=60)
@given(SEEDS)
def test_scouts_are_sent_when_they_should(seed: int) -> None:
    rng = np.random.default_rng(seed)
    every, budget = int(rng.integers(1, 5)), float(rng.choice([0.1, 0.5, 5.0]))
    fast = Scouts(1, every=every, budget=budget, settled=0.05, rate=0.1)
    slow = ReferenceScouts(every=every, budget=budget, settled=0.05)
    for _ in range(60):
        span = float(rng.choice([0.0, 1.0, 3.0], p=[0.1, 0.6, 0.3]))
        assert fast.begin(span) == slow.begin(span)
        value, earned = float(rng.normal(0.3, 0.5)), float(rng.normal(0.5, 0.4))
        fast.started(np.zeros(1))
        fast.thinks(value)
        slow.thinks(value)
        fast.ended(earned, span + 0.5)
        slow.ended(earned, span + 0.5)
        assert fast.numbers[[2, 4, 5]] == pytest.approx([slow.usual, slow.value, slow.first])


class FromMemory(ReferenceGP):
    """Made of what the memory of the fast one holds: as many visits to each transition, with such rewards."""

    def __init__(self, A: int, H: int, memory: Experience, **parameters: Any) -> None:
        super().__init__(A, H, **parameters)
        self.memory = memory

    def remember(self, visit: Visit) -> None:
        self.visits, self.stands, e = [], {}, self.memory
        for i in range(e.count):
            n, r = int(e.times[i]), float(e.reward[i])
            x, y = point(e.ends[i, 0]), point(e.ends[i, 1])
            cell = x, int(e.action[i])
            self.stands[cell] = self.stands.get(cell, 1) + int(e.others[i])
            away = np.sqrt(max(float(e.squared[i]) - r * r, 0.0) * (n - 1))  # of the first; the others balance it
            for j in range(n):
                reward = r + (away if j == 0 else -away / (n - 1))
                self.visits.append(Visit(x, int(e.action[i]), reward, y, bool(e.over[i])))


def rewards(rng: np.random.Generator, paid: str, n: int, A: int) -> Array:
    """Of each state, action and next state, (n, A, n)."""
    some = np.round(rng.normal(size=(n, A, n)), 2)
    kinds = {
        "by state and action": some[:, :, :1],
        "by action": some[:1, :, :1],
        "by next state": some,
        "costs": -np.abs(some[:, :, :1]) - 0.1,
        "ones": np.ones((1, 1, 1)),
        "nothing": np.zeros((1, 1, 1)),
    }
    return np.broadcast_to(kinds[paid], (n, A, n))


def compared(
    seed: int, *, n: int = 5, paid: str = "by state and action", H: int = 6, episodes: int = 12, **parameters: Any
) -> tuple[LSVIGP, int]:
    """Plays a random task of n states; the two agree on all values and on scouts. How many of these there were."""
    rng, A, k, sent = np.random.default_rng(seed), 2, 2, 0
    task = Task.put_off({}, S=None, A=A, H=H, state_bytes=8 * k, stationary=True)
    fast = LSVIGP(task, dtype="float64", **parameters)
    fast.rng = np.random.default_rng(seed)
    merges = "states" in parameters
    parameters.pop("states", None)
    slow = FromMemory(A, H, fast.experience, **parameters) if merges else ReferenceGP(A, H, **parameters)
    X, R = rng.normal(size=(n, k)).astype(np.float32), rewards(rng, paid, n, A)
    last = -1 if seed % 3 == 0 else n - 1  # a state that ends episodes
    for _ in range(episodes):
        fast.begin_episode()
        slow.begin_episode()
        assert fast.scouts.sent == slow.scouts.sent
        sent, i = sent + slow.scouts.sent, 0
        for h in range(H):
            for x in (X[i], rng.normal(size=k).astype(np.float32)):
                np.testing.assert_allclose(fast.q_values(h, x), slow.q_values(h, point(x)), rtol=1e-6, atol=1e-6)
            if h == 0:
                slow.begins_in(point(X[i]))
            action = fast.act(h, X[i])
            action = int(rng.integers(A)) if rng.random() < 0.3 else action
            j = int(rng.integers(n)) if rng.random() < 0.4 else (i + action + 1) % n
            step = (action, float(R[i, action, j]))
            fast.observe(h, X[i], *step, X[j], j == last)
            slow.observe(h, point(X[i]), *step, point(X[j]), j == last)
            i = j
            if i == last:
                break
        fast.end_episode()
        slow.end_episode()
    return fast, sent


@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(
    "task",
    [
        {},
        {"paid": "costs"},
        {"paid": "ones"},
        {"paid": "nothing", "episodes": 5},
        {"n": 16, "features": 5},
        {"n": 40, "H": 4, "episodes": 6},
        {"H": 9, "levels": 7, "kept": 3, "evidence": 1, "discount": 0.9},
        {"beta": 0.5, "exact": 0.0, "noise": 0.1, "length": 2.0, "replan": 0.5, "scout": 0.0},
    ],
    ids=str,
)
def test_plannings_are_those_of_the_transcription(seed: int, task: dict[str, Any]) -> None:
    compared(seed, **task)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plans_of_scouts_are_those_of_the_transcription(seed: int) -> None:
    assert compared(seed, n=3, every=2, budget=20.0, settled=1.0)[1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_so_they_are_where_transitions_were_merged(seed: int) -> None:
    fast, _ = compared(seed, n=30, H=5, paid="by action", states=16, features=6)
    assert fast.experience.radius > 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_so_they_are_where_rewards_depend_on_what_follows(seed: int) -> None:
    compared(seed, paid="by next state")
