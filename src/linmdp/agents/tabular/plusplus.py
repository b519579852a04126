"""LSVI-UCB++ (He, Zhao, Zhou, Gu, 2023): samples count by how noisy they are; on finite states."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from linmdp.agents.budget import held_within
from linmdp.agents.greedy import GreedyAgent
from linmdp.errors import InvalidParameter, check_choice, check_int, check_number, invalid
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, State, Task

BETA = 0.1
"""In standard deviations."""


class Widths(NamedTuple):
    """The constants of the algorithm, by the names of its page."""

    beta: float
    beta_low: float
    beta_square: float
    share_E: float
    share_D: float
    extra: float
    root: float


class LSVIUCBPlusPlus(GreedyAgent):
    """LSVI-UCB++: weighted regression, in which a sample counts 1 / (variance of what follows); finite states only.

    Parameters
    ----------
    beta : width of the bonus, in standard deviations: default 0.1; left out with constants="theory"
    lam : ridge parameter; default: beta^2 / (d cap^2), or 1/H^2 with constants="theory"
    constants : "practical", or "theory": those of the paper, with which all weights are equal, and tiny
    delta : the chance with which the bounds of the theory may fail
    episodes : K, for the constants of the theory
    max_bytes : the most memory; there is nothing to choose, so less than it needs is refused
    """

    name = "lsvi-ucb++"
    test_parameters = ({}, {"constants": "theory"}, {"beta": 0.3, "lam": 1.0})
    _arrays = ("_Q", "_low", "_Sigma", "_u", "_N", "_reference")
    _scratch = ("_inverse", "_w", "_floor")

    def __init__(
        self,
        task: Task,
        *,
        beta: float | None = None,
        lam: float | None = None,
        constants: str = "practical",
        delta: float = 0.1,
        episodes: int | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        super().__init__(task)
        self.beta, self.lam, self.constants, self.delta = beta, lam, constants, delta
        self.episodes, self.max_bytes = episodes, max_bytes
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        self.caps: Array = self._caps_of_table()
        self._Q = self._optimistic_table()
        if not isinstance(task.features, TableFeatures):
            raise InvalidParameter(f"{self.name} needs features that are a table. Got {type(task.features).__name__}.")
        check_choice(self.name, "constants", constants, ("practical", "theory"))
        theory = constants == "theory"
        if theory and beta is not None:
            invalid(self.name, "beta", "left out with constants='theory'", beta)
        self._beta = check_number(self.name, "beta", BETA if beta is None else beta, low=0.0)
        # what is unknown must stay at its cap, since Q never rises: beta / sqrt(lam) >= cap sqrt(d), as in the theory
        usual = 1 / task.H**2 if theory else max(self._beta**2 / (task.d * max(self.caps[0], 1e-12) ** 2), 1e-12)
        self._lam = check_number(self.name, "lam", usual if lam is None else lam, low=1e-100)
        self._delta = check_number(self.name, "delta", delta, low=0.0, high=1.0, open_low=True)
        (H, S, A), d = self._Q.shape, task.d
        self._columns = task.features.columns
        self._low = np.zeros((H, S, A))
        self._Sigma = np.broadcast_to(self._lam * np.eye(d), (H, d, d)).copy()
        self._u, self._N, self._reference = np.zeros((H, d)), np.zeros((H, d, S)), np.full(H, d * math.log(self._lam))
        self._inverse, self._w = np.zeros((H, d, d)), np.zeros((4, H, d))
        self._widths = self._theory() if theory else self._practical()
        self.chosen = held_within(self.name, max_bytes, self.nbytes + 8 * (2 * H * d * d + 3 * d * S * A))

    def _practical(self) -> Widths:
        self._floor = np.maximum(self.task.reward_range[1] ** 2 / 4, 0.01 * self.caps**2)
        return Widths(self._beta, self._beta, 0.0, 0.0, 0.0, 0.0, 0.0)

    def _theory(self) -> Widths:
        d, H = self.task.d, self.task.H
        if self._K is None:
            invalid(self.name, "episodes", "given with constants='theory'", None)
        L, ridge = math.log(d * H * self._K / (self._delta * self._lam)), H * math.sqrt(d * self._lam)
        low, square = ridge + math.sqrt(d**3 * H**2) * L, H * ridge + math.sqrt(d**3 * H**4) * L
        self._floor = np.full(H, float(H))
        return Widths(ridge + math.sqrt(d) * L, low, square, 1.0, 1.0, H, 2 * d**3 * H**2)

    def begin_episode(self) -> None:
        super().begin_episode()
        self._inverse[:] = np.linalg.inv(self._Sigma)
        log_dets = np.linalg.slogdet(self._Sigma)[1]
        switch = bool((log_dets - self._reference >= math.log(2)).any())
        V, low = np.zeros((2, self._Q.shape[1]))
        for h in reversed(range(self.task.H)):
            sums = np.stack((self._u[h], self._N[h] @ V, self._N[h] @ low, self._N[h] @ (V * V)))
            self._w[:, h] = sums @ self._inverse[h]
            if switch:
                self._renew(h)
            V, low = self._Q[h].max(axis=1), self._low[h].max(axis=1)
        if switch:
            self._reference[:] = log_dets
        if switch or self._k == 1:
            self._planned(self.task.H)

    def _renew(self, h: int) -> None:
        """Q falls, and its lower bound rises, never back."""
        (_, S, A), (reward, w, w_low, _) = self._Q.shape, self._w[:, h]
        rows = np.stack((reward + w, reward + w_low)) @ self._columns
        norms = np.sqrt(np.abs((self._columns * (self._inverse[h] @ self._columns)).sum(0)))
        upper, lower = rows[0] + self._widths.beta * norms, rows[1] - self._widths.beta_low * norms
        self._Q[h] = np.minimum(np.minimum(upper.reshape(A, S).T, self._Q[h]), self.caps[h])
        self._low[h] = np.maximum(np.maximum(lower.reshape(A, S).T, self._low[h]), 0.0)

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        phi = self.task.features.phi(state)[action]
        scaled = phi / self._deviation(h, phi) ** 2
        self._Sigma[h] += scaled[:, None] * phi
        self._u[h] += reward * scaled
        if not terminated:
            self._N[h, :, next_state] += scaled

    def _deviation(self, h: int, phi: Array) -> float:
        """sigma bar, from what was known before the episode."""
        H, d, c = self.caps[0], self.task.d, self._widths
        norm = math.sqrt(abs(phi @ self._inverse[h] @ phi))
        _, mean, low, square = (self._w[:, h] @ phi).tolist()
        variance = min(max(square, 0.0), H**2) - min(max(mean, 0.0), H) ** 2
        E = min(c.beta_square * norm, H**2) + min(2 * H * c.beta_low * norm, H**2)
        D = min(4 * d**3 * H**2 * (mean - low + 2 * c.beta_low * norm), d**3 * H**3)
        total = variance + c.share_E * E + c.share_D * D + c.extra
        return max(math.sqrt(max(total, self._floor[h])), c.root * math.sqrt(norm))
