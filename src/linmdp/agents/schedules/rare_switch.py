"""LSVI-UCB-RareSwitch (Wang, Zhou, Gu, 2021): plan only when the data have grown enough."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.ridge import downdate
from linmdp.agents.schedules.base import Decision, Proxy, Schedule
from linmdp.errors import check_number
from linmdp.types import Task


class RareSwitch(Proxy):
    """Plan all steps when log det Lambda of one of them has grown by log eta since the last planning; store always.

    Attributes
    ----------
    grown : (G, *batch) by how much it has grown
    """

    by_growth = joins = True
    _arrays = (*Proxy._arrays, "grown")
    _derived = (*Proxy._derived, "log_eta")

    def __init__(
        self, G: int, d: int, lam: Any, log_eta: Any, *, batch: tuple[int, ...] = (), backend: Backend = NUMPY
    ) -> None:
        super().__init__(G, d, lam, batch=batch, backend=backend)
        self.log_eta = backend.array(np.broadcast_to(log_eta, batch))
        self.grown = backend.zeros((G, *batch)) + np.finfo(np.float64).max  # the first episode plans

    @classmethod
    def joined(cls, schedules: Sequence[Any], backend: Backend) -> Any:
        lam, log_eta = (np.array([float(getattr(s, name)) for s in schedules]) for name in ("lam", "log_eta"))
        G, d = schedules[0].L_inv.shape[:2]
        return cls(G, d, lam, log_eta, batch=(len(schedules),), backend=backend)

    def begin_episode(self) -> Decision:
        due = self.backend.host((self.grown > self.log_eta).any(0))
        plan = np.broadcast_to(due, self.grown.shape)
        return Decision(reset=np.zeros_like(due), plan=plan, store=np.ones_like(plan))

    def planned(self, runs: Any = ...) -> None:
        self.grown[:, runs] = 0.0

    def moved(self, phi: Any) -> None:
        v = downdate(self.L_inv, phi)  # v = L^-1 phi / sqrt(c), and det L grows by c = 1 + phi' L^-1 phi
        self.grown += 2 * self.backend.xp.arcsinh((phi * v).sum(-1) / 2)

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

    name, schedule_type, in_lockstep = "lsvi-ucb-rare-switch", RareSwitch, True
    test_parameters = ({}, {"eta": 2.0, "beta": 0.1}, {"storage": "features"})

    def __init__(self, task: Task, *, growth: float = 0.04, eta: float | None = None, **common: Any) -> None:
        self.growth, self.eta = growth, eta
        super().__init__(task, **common)

    def make_schedule(self) -> Schedule:
        log_eta = self.task.d * np.log1p(check_number(self.name, "growth", self.growth, low=0.0))
        if self.eta is not None:
            log_eta = np.log(check_number(self.name, "eta", self.eta, low=1.0))
        return RareSwitch(self.horizon.groups, self.task.d, self.lam_value, float(log_eta))
