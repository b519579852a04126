"""A plug-in of linmdp: one agent, one environment, one feature map."""

from typing import Any

import numpy as np

import linmdp
from linmdp.features import BlockFeatures, Scaling


@linmdp.register_agent
class Cyclic(linmdp.Agent):
    """Plays the actions in turn."""

    name = "cyclic"

    def __init__(self, task: linmdp.Task, *, stride: int = 1) -> None:
        super().__init__(task)
        self.stride = stride

    def act(self, h: int, state: Any) -> int:
        return h * self.stride % self.task.A

    def q_values(self, h: int, state: Any) -> Any:
        return np.eye(self.task.A)[self.act(h, state)]

    def policy(self, h: int) -> Any:
        return np.full(self.task.S or 1, self.act(h, 0))


@linmdp.register_env("corridor")
def corridor(*, length: int = 4, H: int = 6) -> linmdp.LinearModel:
    """A corridor with a reward at its end: action 1 goes right, action 0 back to the start."""
    mu, theta = np.zeros((H, 2 * length, length)), np.zeros((H, 2 * length))
    for state in range(length):
        mu[:, 2 * state, 0] = mu[:, 2 * state + 1, min(state + 1, length - 1)] = 1
    theta[:, -1] = 1
    return linmdp.LinearModel(name="corridor", features=linmdp.one_hot(length, 2), theta=theta, mu=mu)


class Powers(BlockFeatures):
    """1, x, ..., x^degree of every number x of a state."""

    name = "powers"

    def __init__(self, A: int, scaling: Scaling, degree: int) -> None:
        super().__init__(A, 1 + scaling.k * degree)
        self.scaling, self.degree = scaling, degree

    def psi(self, states: Any) -> Any:
        x = self.scaling(states)
        powers = np.hstack([np.ones((len(x), 1)), *(x**n for n in range(1, self.degree + 1))])
        return powers / np.sqrt(self.p)

    @property
    def nbytes(self) -> int:
        return self.scaling.nbytes


def powers(view: Any, *, degree: int = 2) -> Powers:
    """Powers of observations that are scaled to [0, 1]."""
    _, scaling = view.scaled("powers", "bounds", warmup=1000, seed=0)
    return Powers(view.A, scaling, degree)
