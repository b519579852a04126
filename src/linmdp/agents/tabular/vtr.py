"""UCRL-VTR (Ayoub, Jia, Szepesvari, Wang, Yang, 2020): the weights of a mixture of known models, from their values."""

from __future__ import annotations

import math

import numpy as np

from linmdp.agents.budget import held_within
from linmdp.agents.greedy import GreedyAgent
from linmdp.errors import InvalidParameter, check_int, check_number
from linmdp.types import Array, State, Task


class UCRLVTR(GreedyAgent):
    """UCRL-VTR: for models that are mixtures of J known ones, where the task offers these (`base_models`).

    What it learns is J weights, the same for rewards and transitions: each episode's own value function is what they
    have to predict. Memory is J^2 numbers, and Q.

    Parameters
    ----------
    c : what the width of the confidence set is multiplied by; 1 is the paper's
    lam : ridge parameter, in squares of the largest reward; none: H^2 J, the paper's
    W : episodes after which a sample has weight 1/e, for tasks that drift; none: nothing is forgotten (the paper)
    delta : the chance with which the bounds of the paper may fail
    episodes : not needed, and without effect
    max_bytes : the most memory; there is nothing to choose, so less than it needs is refused
    """

    name = "ucrl-vtr"
    test_parameters = ({}, {"c": 1.0, "lam": None, "W": 5})
    _arrays = ("_Q", "_V", "_M", "_b")

    def __init__(
        self,
        task: Task,
        *,
        c: float = 1e-4,
        lam: float | None = 0.01,
        W: int | None = None,
        delta: float = 0.1,
        episodes: int | None = None,
        max_bytes: int | str | None = None,
    ) -> None:
        if not task.base_models:
            raise InvalidParameter(f"{self.name} needs a task that offers base models, as drift does. Got one without.")
        super().__init__(task)
        self.c, self.lam, self.W, self.delta, self.episodes, self.max_bytes = c, lam, W, delta, episodes, max_bytes
        self._c = check_number(self.name, "c", c, low=0.0)
        self._keep = 1.0 if W is None else 1 - 1 / check_int(self.name, "W", W, low=1)
        self._delta = check_number(self.name, "delta", delta, low=0.0, high=1.0, open_low=True)
        self.caps: Array = self._caps_of_table()
        self._Q = self._optimistic_table()
        (H, S, A), J = self._Q.shape, len(task.base_models)
        self._width = max(map(abs, task.reward_range)) or 1.0
        ridge = H * H * J if lam is None else check_number(self.name, "lam", lam, low=1e-12)
        self._lam = ridge * self._width**2
        self._V, self._M, self._b = np.zeros((H + 1, S)), self._lam * np.eye(J), np.zeros(J)
        self.chosen = held_within(self.name, max_bytes, self.nbytes + 8 * S * A * (2 * J + 2))

    def begin_episode(self) -> None:
        super().begin_episode()
        self._plan()
        self._planned(self.task.H)
        self._M[:] = self._keep * self._M + (1 - self._keep) * self._lam * np.eye(len(self._b))
        self._b *= self._keep

    def _plan(self) -> None:
        """Q_h = min(x^T theta + sqrt(beta_k) |x|_{M^-1}, cap), with x_j = r_j + P_j V_{h+1} of each base model j."""
        inverse, root = np.linalg.inv(self._M), self._root_beta()
        theta = inverse @ self._b
        for h in reversed(range(self.task.H)):
            x = np.array([model.q(h, self._V[h + 1]) for model in self.task.base_models])  # (J, A, S)
            norm = np.sqrt(np.maximum(np.einsum("jas,ji,ias->as", x, inverse, x), 0.0))
            q = np.einsum("jas,j->as", x, theta) + root * norm
            self._Q[h] = np.minimum(q, self.caps[h]).T
            self._V[h] = self._Q[h].max(axis=1)

    def _root_beta(self) -> float:
        """c sqrt(beta_k), beta_k = 16 H^2 J log(1 + Hk) log^2((k + 1)^2 H / delta)."""
        H, J, k = self.task.H, len(self._b), self._k
        logs = math.sqrt(math.log(1 + H * k)) * math.log((k + 1) ** 2 * H / self._delta)
        return self._c * 4 * H * self._width * math.sqrt(J) * logs

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        x = np.array([model.value(h, state, action, self._V[h + 1]) for model in self.task.base_models])
        self._M += np.outer(x, x)
        self._b += x * (reward + (0.0 if terminated else self._V[h + 1, next_state]))
