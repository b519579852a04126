"""LSVI-UCB-RareSwitch (Wang, Zhou, Gu, 2021): plan only when the data have grown enough."""

from typing import Unpack

import numpy as np

from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.parameters import Common
from linmdp.agents.ridge import downdate
from linmdp.agents.schedules.base import Decision, Proxy, Schedule
from linmdp.errors import check_number
from linmdp.types import Array, Task


class RareSwitch(Proxy):
    """Plan all steps when log det Lambda of one of them has grown by log eta since the last planning; store always."""

    _arrays = (*Proxy._arrays, "grown")

    def __init__(self, G: int, d: int, lam: float, log_eta: float) -> None:
        super().__init__(G, d, lam)
        self.log_eta, self.grown = log_eta, np.full(G, np.finfo(np.float64).max)  # the first episode plans

    def begin_episode(self) -> Decision:
        plan = self._all if (self.grown > self.log_eta).any() else self._none
        return Decision(reset=False, plan=plan, store=self._all)

    def planned(self) -> None:
        self.grown[:] = 0.0

    def moved(self, phi: Array) -> None:
        v = downdate(self.L_inv, phi)  # v = L^-1 phi / sqrt(c), and det L grows by c = 1 + phi' L^-1 phi
        self.grown += 2 * np.arcsinh((phi * v).sum(-1) / 2)

    def plannings(self, episodes: int) -> int:  # about: once the data are spread, det L grows as (data)^d
        rate = self._phi.shape[-1] / max(self.log_eta, 1e-9)
        return min(episodes, int(np.ceil(rate * (1 + np.log(max(episodes / rate, 1.0))))))


class LSVIUCBRareSwitch(LSVIAgent):
    """LSVI-UCB-RareSwitch: LSVI-UCB that plans only when the determinant of some Lambda has grown by a factor eta.

    Parameters
    ----------
    growth : eta = (1 + growth)^d: about how much the data of a step must grow
    eta : the factor itself (the paper's), in place of `growth`
    common : the parameters of `LSVIUCB`
    """

    name, schedule_type = "lsvi-ucb-rare-switch", RareSwitch
    test_parameters = ({}, {"eta": 2.0, "beta": 0.1}, {"storage": "features"})

    def __init__(self, task: Task, *, growth: float = 0.1, eta: float | None = None, **common: Unpack[Common]) -> None:
        self.growth, self.eta = growth, eta
        super().__init__(task, **common)

    def make_schedule(self) -> Schedule:
        log_eta = self.task.d * np.log1p(check_number(self.name, "growth", self.growth, low=0.0))
        if self.eta is not None:
            log_eta = np.log(check_number(self.name, "eta", self.eta, low=1.0))
        return RareSwitch(self.horizon.groups, self.task.d, self.lam_value, float(log_eta))
