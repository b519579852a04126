"""RLSVI (Osband, Van Roy, Wen, 2016) and OPT-RLSVI (Zanette et al., 2020): one draw of the weights acts."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.perturbation import Perturbation
from linmdp.agents.lsvi import LSVIAgent
from linmdp.errors import check_number, invalid
from linmdp.types import Task


class RLSVI(LSVIAgent):
    """RLSVI: randomised least-squares value iteration. Weights are drawn from N(w, beta^2 Lambda^-1); no bonus.

    Parameters
    ----------
    common : the parameters of `LSVIUCB`; beta is the standard deviation of the draw
    """

    name, follows_evidence, own_weights, in_lockstep = "rlsvi", False, True, True
    test_parameters = ({}, {"beta": 0.3}, {"storage": "features"})

    def __init__(self, task: Task, **common: Any) -> None:
        super().__init__(task, **common)

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        return Perturbation(self, beta, 1, backend)


def refuse_blocks(agent: LSVIAgent) -> None:
    """Refuse storages whose inverses come in blocks."""
    if agent._storing.compact:
        invalid(agent.name, "storage", "'counts', 'features' or 'states'", agent._storing.asked)


class Defaulted(Perturbation):
    """Q = phi'w~ where phi is well known, cap_h where it is not, and in between a mixture of both; no cap on it.

    With a = cap_h / (2 beta sqrt(d)) times `threshold`, phi is well known if its norm in Lambda^-1 is at most a, and
    unknown from 2a on.
    """

    batched: ClassVar = False
    keeps_forms: ClassVar = True
    _derived: ClassVar = (*Perturbation._derived, "defaults")

    def __init__(self, agent: LSVIAgent, beta: Any, threshold: float) -> None:
        super().__init__(agent, beta, 1, NUMPY)
        self.defaults, self.threshold = agent.caps[-self.horizon.H :], threshold
        self.caps = np.full(self.horizon.H, np.inf)  # the tolerance of ties stays that of the values

    def vectors(self, h: int, v: Any = None) -> Any:
        w = self.W[self.horizon.level(h)][0]
        return (w,) if v is None else (w, v)

    def raised(self, h: int, products: Any, forms: Any) -> Any:
        if len(products) > 1:
            forms -= products[1] ** 2
            np.abs(forms, out=forms)  # at least 0; rounding may leave it slightly below
        cap, d = self.defaults[h], self.W.shape[-1]
        known = self.threshold * cap / (2 * max(self.beta[h], 1e-12) * d**0.5)
        unknown = np.clip((np.sqrt(forms) - known) / known, 0.0, 1.0)
        return (1 - unknown) * products[0] + unknown * cap


class OptRLSVI(LSVIAgent):
    """OPT-RLSVI: RLSVI that is optimistic where it knows nothing, and puts no cap on what it has drawn.

    Parameters
    ----------
    threshold : how well a direction must be known for the draw to act; 1 is the practical alpha of its page
    common : the parameters of `LSVIUCB` but `discount`; beta is the standard deviation of the draw
    """

    name, follows_evidence, own_weights = "opt-rlsvi", False, True
    test_parameters = ({}, {"beta": 0.3, "threshold": 0.5}, {"beta": 0.3, "storage": "features"})

    def __init__(self, task: Task, *, threshold: float = 1.0, **common: Any) -> None:
        self.threshold = threshold
        super().__init__(task, **common)
        if self.horizon.discounted:
            invalid(self.name, "discount", "1: without a cap a discounted planning has no scale", self.discount)
        self.caps = None  # type: ignore[assignment]  # Q may be above what the steps left can pay

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        refuse_blocks(self)
        threshold = check_number(self.name, "threshold", self.threshold, low=0.0, open_low=True)
        return Defaulted(self, beta, threshold)
