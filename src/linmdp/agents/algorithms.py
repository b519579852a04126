"""LSVI-UCB as the paper has it: `LSVIAgent` with other defaults."""

from __future__ import annotations

from typing import Any, ClassVar

from linmdp.agents.lsvi import LSVIAgent
from linmdp.agents.schedules.base import Always, Growing, Schedule
from linmdp.errors import check_number
from linmdp.types import Task


class LSVIUCB(LSVIAgent):
    """LSVI-UCB (Algorithm 1): optimistic least-squares value iteration over all data.

    Parameters
    ----------
    task : what the environment tells an agent
    beta : width of the confidence bonus: "auto" (from the data), a number, or "theory" or "published"
        (both need `episodes`)
    lam : ridge parameter lambda > 0. "auto": with beta "auto" both follow from the evidence in the data (docs,
        evidence); with any other beta, or cap "H", it is 0.1
    cap : "remaining" clips Q at what the steps left can pay, "H" at what all H steps can (the paper's)
    ties : "random" among the best actions, or "first" (the paper's argmax)
    memory : another name of `storage`, with plainer values: "samples" (features), "table" (counts or sparse),
        "transitions" (merged) or "centres"
    storage : "counts" (finite states: exact, and memory does not grow), "sparse" (unit vectors: exact, in memory for
        the transitions seen), "features" (the paper's), "states", "merged" (states that are not finite: at
        most M transitions), "centres" (any states: next states merged into at most M, with a bound of the error),
        "search" (bilinear features, many actions: exact), or
        "auto": search, counts or sparse where states are finite, else merged if beta and lam are "auto", else features
    dtype : "float64" or "float32" for whatever is kept per state or per sample; d x d matrices stay float64
    episodes : K, where a parameter depends on it
    stationary : true: one regression for all steps, for tasks whose dynamics do not depend on h: H times less memory,
        and H times more data for each weight. "auto": as the task says if beta and lam are "auto", else false
    discount : below 1, with `stationary`: one Q for all steps, of discounted rewards. "auto": 1; with
        storage "sparse", if beta and lam are "auto" and the weights of all steps would take much memory, 0.99, or 0.9
        where states have no bound
    max_bytes : the most memory, planning included: a number of bytes, or "2MiB". How samples are kept (exactly or,
        where there is no space for that, merged), their precision and (in the other agents) rho, budget, m and M are
        chosen for it, and shown with the reason as `agent.chosen`
    replan : plan when the number of episodes (of steps, if beta and lam are "auto") has grown by this fraction; 0: in
        every episode; default: 0; with beta and lam "auto" 0.02, and 0.1 with
        "merged" or "centres" where states are not finite
    lookahead : steps that are planned ahead, with `stationary`; "auto": 200 with storage "merged" or "centres" where
        states are not finite, if beta and lam are "auto", else all
    M : with storage "merged": transitions in all; default: 3,000. With storage "centres": next states kept per step
        (default 256), or in all with `stationary` (1,000). With storage "sparse": different transitions kept; default:
        all
    inflate : with storage "centres", or "sparse" and M: the share, from 0 to 1, of the bound of its error that widens
        the bonus; the theorem needs 1 (docs, memory)
    """

    name, in_lockstep = "lsvi-ucb", True
    test_parameters: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"beta": 0.1},
        {"beta": "published", "cap": "H", "ties": "first"},
        {"storage": "states", "dtype": "float32"},
        {"stationary": True, "discount": 0.8, "storage": "features"},
        {"lam": 0.1},
        {"lam": "auto", "storage": "features"},
        {"lam": "auto", "stationary": True, "discount": 0.9},
        {"memory": "centres", "M": 5},
        {"storage": "centres", "M": 4, "beta": 0.1, "inflate": 0.5},
    )

    merges_for_bytes: ClassVar = True

    def __init__(self, task: Task, *, lam: float | str = "auto", replan: float | None = None, **common: Any) -> None:
        self.replan = replan
        super().__init__(task, lam=lam, **common)

    def growth(self) -> float:
        """The fraction by which the data grow before the next planning; 0: it plans in every episode."""
        usual = 0.0 if not self.auto else 0.1 if self._storing.merges else 0.02
        return check_number(self.name, "replan", usual if self.replan is None else self.replan, low=0.0, high=1.0)

    def make_schedule(self) -> Schedule:
        fraction = self.growth()
        return Growing(self.horizon.groups, fraction, by_steps=self.auto) if fraction else Always(self.horizon.groups)
