"""What these agents share: random actions that grow rare, planning now and then."""

from __future__ import annotations

from linmdp.agents.base import Component
from linmdp.agents.greedy import Falling, GreedyAgent
from linmdp.errors import check_number
from linmdp.types import Task


class Growth(Component):
    """Says when the steps have grown by a fraction since the last planning; with 0 it is always time.

    Attributes
    ----------
    steps, planned : steps so far; those at the last planning
    """

    _counters = ("steps", "planned")

    def __init__(self, owner: str, replan: object) -> None:
        self._fraction = check_number(owner, "replan", replan, low=0.0)
        self.steps = self.planned = 0

    def due(self) -> bool:
        """Whether it is time; if so, it is noted as done."""
        if not self.steps or self.steps < self.planned * (1 + self._fraction):
            return False
        self.planned = self.steps
        return True


class EpsilonGreedy(GreedyAgent):
    """A discounted Q, and random actions whose chance falls from 1 to `epsilon` in a share of the episodes.

    Parameters
    ----------
    discount : gamma
    epsilon : chance of a random action at the end
    explore : share of the episodes in which it falls from 1 to there
    episodes : K, which explore is a share of; 100 where it is not given
    """

    needs_features = False

    def __init__(
        self,
        task: Task,
        *,
        discount: float = 0.99,
        epsilon: float = 0.05,
        explore: float = 0.2,
        episodes: int | None = None,
    ) -> None:
        super().__init__(task, Falling.checked(self.name, epsilon, explore, episodes))
        self.discount, self.epsilon, self.explore, self.episodes = discount, epsilon, explore, episodes
        self._discount = check_number(self.name, "discount", discount, low=0.0, high=1.0)
