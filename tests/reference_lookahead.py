"""A literal transcription of what docs/auto.md says of rewards of many values, with plain loops over all episodes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


class ReferenceLookahead:
    """Three regressions from lists of episodes, and every sequence of actions tried one by one."""

    def __init__(self, psi: Any, scaling: Any, A: int, discount: float, depth: int) -> None:
        self.psi, self.scaling, self.A, self.discount, self.depth = psi, scaling, A, discount, depth
        self.width = scaling.high - scaling.low
        self.hold, self.moves, self.lengths = 0, list[Any](), list[int]()
        self.model: list[tuple[Any, int, Any, float]] = []
        self.paid: list[tuple[Any, float]] = []
        self.values: list[list[tuple[Any, float]]] = []
        self.counted: list[int] = []
        self.W: Any = None
        self.usual: Any = None
        self.reward_w: Any = None
        self.w: Any = None
        self.seen: list[Any] = []
        self.changes: list[Any] = []

    def quadratic(self, s: Any) -> Any:
        z = self.scaling(np.asarray(s)[None])[0] - 0.5
        return np.array([1.0, *z, *(z[i] * z[j] for i in range(len(z)) for j in range(i, len(z)))])

    def v(self, s: Any) -> Any:
        z = self.scaling(np.asarray(s)[None])[0] - 0.5
        return np.array([*self.psi(np.asarray(s)[None])[0], *(self.quadratic(s)[1:] / 3), *(np.abs(z) / 3)])

    def rewards(self, a: int, s: Any, after: Any) -> Any:
        return np.array([*(float(a == b) for b in range(self.A)), *self.quadratic(s)[1:], *(self.v(after) - self.v(s))])

    def learn(self, states: list[Any], actions: list[int], rewards: list[float], over: bool) -> None:
        n = len(actions)
        if not self.hold:
            self.moves.append(np.median([max(abs(b - a) / self.width) for a, b in itertools.pairwise(states)]))
            self.lengths.append(n)
            if len(self.moves) == 3:
                usual = round(0.15 / np.mean(self.moves))
                self.hold = max(1, min(8, int(0.1 * np.mean(self.lengths)), usual))
            return
        begins = [i for i in range(n) if i == 0 or actions[i] != actions[i - 1]]
        pieces = []  # of the same action, each `hold` steps long or, the last ones, shorter
        for i, j in itertools.pairwise([*begins, n]):
            pieces += [(t, min(t + self.hold, j)) for t in range(i, j, self.hold)]
        whole = [(i, j) for i, j in pieces if j - i == self.hold and not (over and j == n)]
        self.learn_model(whole, states, actions, rewards)
        tail = 0.0 if over or self.w is None else self.v(states[n]) @ self.w
        samples = []
        for i in range(0, n, self.hold):
            earned = sum(self.discount ** (t - i) * rewards[t] for t in range(i, n))
            samples.append((self.v(states[i]), earned + self.discount ** (n - i) * tail))
        self.counted.append(len(samples))
        if over:
            i, _ = pieces[-1]
            earned = sum(self.discount ** (t - i) * rewards[t] for t in range(i, n))
            said = self.rewards(actions[-1], states[i], states[n]) @ self.reward_w
            samples.append((self.v(states[n]), earned - said))
        self.values.append(samples)

    def learn_model(self, whole: list[Any], states: list[Any], actions: list[int], rewards: list[float]) -> None:
        new = []
        for i, j in whole:
            x, a, y = self.quadratic(states[i]), actions[i], (states[j] - states[i]) / self.width
            off = 0.0 if self.usual is None else max(abs(y - x @ self.W[a]) / self.usual)
            new.append((x, a, y, min(1.0, 4.0 / max(off, 1e-9))))
            earned = sum(self.discount ** (t - i) * rewards[t] for t in range(i, j))
            self.paid.append((self.rewards(a, states[i], states[j]), earned))
            self.changes.append(y)
        self.model += new
        self.seen += states[:-1]
        p, k = len(new[0][0]), len(new[0][2])
        ridge, self.W = 1e-4 * max(len(self.model), 100), np.zeros((self.A, p, k))
        for a in range(self.A):
            mine = [m for m in self.model if m[1] == a]
            gram = sum((t * np.outer(x, x) for x, _, _, t in mine), ridge * np.eye(p))
            self.W[a] = np.linalg.inv(gram) @ sum((t * np.outer(x, y) for x, _, y, t in mine), np.zeros((p, k)))
        errors = np.median([abs(y - x @ self.W[a]) for x, a, y, _ in new], axis=0) + 1e-4
        self.usual = errors if self.usual is None else 0.95 * self.usual + 0.05 * errors
        self.reward_w = fit(self.paid, 1e-5 * len(self.paid))

    def plan(self) -> None:
        """V, from the returns; those of each episode count 0.98 times as much as those of the next."""
        age = [0.98 ** (len(self.values) - 1 - e) for e in range(len(self.values))]
        samples = [(x, y, t) for t, part in zip(age, self.values, strict=True) for x, y in part]
        n = sum(t * c for t, c in zip(age, self.counted, strict=True))
        gram = sum((t * np.outer(x, x) for x, _, t in samples), 1e-5 * n * np.eye(len(samples[0][0])))
        self.w = np.linalg.solve(gram, sum(t * y * x for x, y, t in samples))

    def q_values(self, s: Any) -> Any:
        best = np.full(self.A, -np.inf)
        for sequence in itertools.product(range(self.A), repeat=self.depth):
            total, at, factor = 0.0, np.array(s, dtype=float), 1.0
            for a in sequence:
                x = self.quadratic(at)
                total += factor * (self.reward_w[a] + x[1:] @ self.reward_w[self.A : self.A + len(x) - 1])
                change = np.clip(x @ self.W[a], np.min(self.changes, axis=0), np.max(self.changes, axis=0))
                at = np.clip(at + change * self.width, np.min(self.seen, axis=0), np.max(self.seen, axis=0))
                factor *= self.discount**self.hold
            theta = self.reward_w[self.A + len(self.quadratic(s)) - 1 :]
            total += theta @ (self.v(at) - self.v(s)) + factor * (self.w @ self.v(at))
            best[sequence[0]] = max(best[sequence[0]], total)
        return best


def fit(samples: list[tuple[Any, float]], ridge: float) -> Any:
    """Ridge regression."""
    gram = sum((np.outer(x, x) for x, _ in samples), ridge * np.eye(len(samples[0][0])))
    return np.linalg.solve(gram, sum(y * x for x, y in samples))
