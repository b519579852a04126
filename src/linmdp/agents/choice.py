"""Which storage and horizon an agent has: as asked for, by default or, within `max_bytes`, the first that fits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from linmdp.agents.afresh import Afresh
from linmdp.agents.backend import Backend
from linmdp.agents.budget import Choice, varied
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.exploration.evidence import Evidence
from linmdp.agents.horizon import Horizon
from linmdp.agents.memory.base import Parts, Storage, block_features, group_blocks
from linmdp.agents.memory.centres import Centres
from linmdp.agents.memory.limited import FEWEST, Joining, Merging
from linmdp.agents.memory.links import Sparse
from linmdp.agents.memory.samples import Samples
from linmdp.agents.memory.table import Counts, Searched
from linmdp.agents.memory.transitions import Transitions, least_merged
from linmdp.agents.ridge import DELAY
from linmdp.errors import InvalidParameter, LinMDPWarning, check_choice, check_int, check_number, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import LARGEST_DENSE, is_unit, unit_index
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

USUAL_LAM = 0.1
LEAST_LAM_SINGLE = 1e-5
"""A lam below this share of |phi|^2 <= 1 leaves no digit of an inverse in single precision."""

LARGEST_BONUS = 1e100
"""Bound on the first squared bonus: far beyond any use, and far below what a float can hold."""

KINDS: dict[str, type[Storage]] = {
    "features": Samples,
    "states": Samples,
    "counts": Counts,
    "sparse": Sparse,
    "merged": Transitions,
    "centres": Centres,
    "search": Searched,
}
MERGING = ("merged", "centres")
NAMES = {"samples": "features", "transitions": "merged", "fold": "centres"}
"""Other names of these; "fold" is an old one."""

MERGED = 3000
"""M of a storage of merged transitions, where it is not given."""

CENTRES, CENTRES_OF_ALL = 256, 1000
"""M of a storage of centres, where it is not given: for each step, and for all together."""

LEAST_MERGED = 8

MOST_LINKS = 1 << 24
"""M of states without a bound, at most, where `max_bytes` chooses it."""

LOOKAHEAD = 200
"""Steps that are planned ahead with merged transitions: over more, errors of the regression add up."""

MERGED_LEVELS = 3 << 17
"""Bytes of the weights of all steps, at most, with merged transitions. If they would take more, steps share."""

SPARSE_LEVELS, DISCOUNT, SHORT_DISCOUNT = 1 << 20, 0.99, 0.9
"""If the weights of all steps take more bytes than this with unit vectors, or `max_bytes` has no space for them, there
is one Q, of discounted rewards; where states have no bound, with a shorter view: new ones turn up all the time, and a
long one would wait for them."""


class StorageChoice:
    """How the samples of an agent are kept, and how its horizon is planned."""

    __slots__ = ("agent", "bilinear", "given", "index", "table", "unit")

    def __init__(self, agent: LSVIAgent) -> None:
        self.agent, self.table = agent, isinstance(agent._features, TableFeatures)
        self.bilinear = isinstance(agent._features, BilinearFeatures)
        self.index, self.unit = unit_index(agent._features), is_unit(agent._features)
        name = "storage" if agent.memory is None else "memory"
        if name == "memory" and agent.storage != "auto":
            invalid(agent.name, "storage", "left out where 'memory' is given: it is the old name of it", agent.storage)
        given = check_choice(agent.name, name, getattr(agent, name), ("auto", "table", *KINDS, *NAMES))
        self.given: str = NAMES.get(given, given)

    @property
    def asked(self) -> str:
        """The storage asked for."""
        if self.given == "table":
            return "counts" if self.table and not (self.agent.auto and self.unit) else "sparse"
        if self.given != "auto":
            return self.given
        return "search" if self.bilinear else self.agent.usual_storage(table=self.table, unit=self.unit)

    @property
    def unbounded(self) -> bool:
        """Whether states are numbered as they come, with A unit vectors each."""
        return self.unit and not self.table and getattr(self.agent._features, "S", None) is None

    @property
    def size(self) -> int:
        """M of the storage asked for: transitions, or centres, of which there are no more than states."""
        if self.agent.M is not None:
            return self.agent.M
        if self.asked == "merged":
            return max(MERGED, self._least)
        usual = CENTRES_OF_ALL if self.agent.horizon.shared else CENTRES
        return max(2, min(usual, self.agent.task.S or usual))

    @property
    def _least(self) -> int:
        """The least M: transitions of different steps, actions, or ends are never merged."""
        groups, A = self.agent.horizon.groups, self.agent.task.A
        if self.asked == "merged":
            return least_merged(groups, A)
        return FEWEST * A * groups if self.asked == "sparse" and self.unbounded else 2

    def check(self) -> None:
        """Refuse what does not go together."""
        agent = self.agent
        if agent.storage == "fold":
            warnings.warn(f"{agent.name}: storage 'fold' is 'centres' now.", LinMDPWarning)
        if self.bilinear or self.asked == "search":
            self._check_search()
        others = "'sparse'" if self.unit else "'features', 'states', 'merged' or 'centres'"
        if self.asked == "counts" and not self.table:
            invalid(agent.name, "storage", f"{others} where features are not a table", "counts")
        if self.asked == "sparse" and not self.unit:
            invalid(agent.name, "storage", "another where features are not unit vectors", "sparse")
        if self.asked == "merged" and (self.table or self.unit):
            invalid(agent.name, "storage", "another where states are finite", "merged")
        if self.asked == "centres" and self.unit and not self.table:
            invalid(agent.name, "storage", "'sparse' for unit vectors, which are all equally far apart", "centres")
        if not self.table and self.unit and agent._features.d > LARGEST_DENSE and self.asked != "sparse":
            invalid(agent.name, "storage", f"'sparse' for unit vectors with d over {LARGEST_DENSE}", self.asked)
        if self.unbounded:
            self._check_unbounded()
        if agent.own_M:
            if self.asked in MERGING:
                invalid(agent.name, "storage", "one that holds the samples as they are", self.asked)
        elif agent.M is not None:
            if self.asked not in (*MERGING, "sparse"):
                invalid(agent.name, "M", "left out unless storage is 'merged', 'centres' or 'sparse'", agent.M)
            check_int(agent.name, "M", agent.M, low=self._least, high=10**7)
        limited = self.asked == "sparse" and agent.M is not None and not self.unbounded
        if agent.inflate and not (agent.bounded_errors or self.asked == "centres" or limited):
            rule = "0 unless storage is 'centres', or 'sparse' with M, whose errors are bounded"
            invalid(agent.name, "inflate", rule, agent.inflate)

    def make_horizon(self, *, tight: bool = False) -> Horizon:
        """What the steps share, how far ahead they are planned, and how many of their Q are kept.

        `tight`: where one of discounted rewards can do, there is no space for more.
        """
        agent, task = self.agent, self.agent.task
        shared = agent.auto and task.stationary if agent.stationary == "auto" else bool(agent.stationary)
        ahead = LOOKAHEAD if agent.auto and shared and self.merges else task.H
        if agent.lookahead != "auto":
            ahead = check_int(agent.name, "lookahead", agent.lookahead, low=1)
            if ahead < task.H and not shared:
                invalid(agent.name, "lookahead", "'auto' unless stationary=true: only then do steps share", ahead)
        H = min(ahead, task.H)
        if agent.discount != "auto" and float(agent.discount) < 1 and not shared:
            rule = "1 unless stationary=true: only then is there one Q for all steps"
            invalid(agent.name, "discount", rule, agent.discount)
        discount, levels = agent.discount, 8 * H * task.d
        if discount == "auto":
            many = (tight or levels > SPARSE_LEVELS) and agent.auto and shared and self.asked == "sparse"
            view = DISCOUNT if task.S else SHORT_DISCOUNT
            discount = view if many else 1.0
        stride = -(-levels // MERGED_LEVELS) if self.merges and shared and discount == 1 and not agent.inflate else 1
        return Horizon(H, shared, float(discount), min(stride, H), task.H)

    @property
    def could_discount(self) -> bool:
        """Whether one Q of discounted rewards may serve all steps, because `max_bytes` has no space for theirs."""
        agent, horizon = self.agent, self.agent.horizon
        sparse = agent.auto and self.asked == "sparse" and not self.unbounded
        return sparse and horizon.shared and agent.discount == "auto" and not horizon.discounted

    def chosen(self) -> Choice:
        """What the agent chose by itself for parameters that were left to it."""
        agent, found = self.agent, Choice()
        if agent.stationary == "auto":
            found["stationary"] = agent.horizon.shared
        if self.given in ("auto", "table"):
            found["storage"] = self.name
        if agent.discount == "auto" and agent.horizon.discounted:
            found["discount"] = agent.horizon.discount
        if agent.lookahead == "auto" and agent.horizon.H < agent.task.H:
            found["lookahead"] = agent.horizon.H
        for name in ("lam", "beta"):
            if getattr(agent, name) == "auto":
                found[name] = float(f"{getattr(agent, name + '_value'):.3g}")
        return found

    @property
    def merges(self) -> bool:
        """Whether transitions between states that are not finite are merged."""
        return self.asked in MERGING and not self.table

    @property
    def name(self) -> str:
        """The storage there is."""
        return str(self.agent.chosen_within.get("storage", self.asked))

    @property
    def dtype(self) -> str:
        """The precision of what is kept per state or per sample."""
        return str(self.agent.chosen_within.get("dtype", self.agent.dtype))

    @property
    def bounded(self) -> bool:
        """Whether memory is bounded however many samples come."""
        return not (KINDS[self.name].keeps_samples or (self.unbounded and "M" not in self.agent.chosen_within))

    @property
    def delay(self) -> int:
        """Features that wait for Lambda; 0 where it need not be kept, since it can be made again from the samples."""
        return DELAY if self.agent.horizon.shared or not KINDS[self.name].keeps_samples else 0

    @property
    def compact(self) -> bool:
        """Whether the storage makes features from states, and counts the ends of episodes: see there."""
        return KINDS[self.name].compact

    def make_ridge(self) -> Afresh | None:
        """Regressions that are made afresh at every planning; None where Lambda^-1 is kept as a whole matrix."""
        agent = self.agent
        if not self.compact:
            return None
        blocks = self.weights if self.name == "sparse" else group_blocks(agent._features)
        return Afresh(agent.horizon.groups, self.weights, agent.lam_value, blocks)

    def make_automatic(self, batch: tuple[int, ...], backend: Backend) -> Exploration:
        """How Q is made optimistic where beta and lam are "auto"."""
        agent, horizon = self.agent, self.agent.horizon
        lows, own_ends = horizon.lows(agent.task.reward_range[0]), self.compact
        found = Evidence(horizon, agent._features, agent.caps, lows, own_ends=own_ends, batch=batch, backend=backend)
        found.inflate = float(agent.inflate)
        return found

    @property
    def weights(self) -> int:
        """Weights of a regression at the start: d, or none where states are numbered as they come."""
        return 0 if self.unbounded else self.agent.task.d

    def _check_unbounded(self) -> None:
        """Refuse what needs phi written out, which is longer than any memory."""
        agent = self.agent
        if agent.own_weights or agent.schedule_type.reads_features:
            raise InvalidParameter(
                f"{agent.name} must have features that can be written out, and states without a bound have none: "
                f"use lsvi-ucb, or features other than hashed. Got d={agent.task.d}."
            )
        if agent.beta == "auto" and not agent.auto:
            invalid(agent.name, "lam", "'auto' where states have no bound, or beta a number", agent.lam)

    def _check_search(self) -> None:
        """Refuse what needs the features of all actions."""
        agent = self.agent
        if not self.bilinear:
            invalid(agent.name, "storage", "another where features are not bilinear", "search")
        if self.asked != "search":
            invalid(agent.name, "storage", "'search' where features are bilinear", self.asked)
        if agent.beta == "auto" and agent.follows_evidence and not agent.auto:  # others are refused for what they are
            invalid(agent.name, "lam", "'auto' with storage 'search', or beta a number", agent.lam)

    def make(self, parts: Parts) -> Storage:
        """The storage."""
        agent, features = self.agent, self.agent._features
        if self.name == "counts":
            assert isinstance(features, TableFeatures)
            return Counts(parts, features, self.dtype)
        if self.name == "search":
            assert isinstance(features, BilinearFeatures)
            if not isinstance(parts.exploration, Bonus):
                raise InvalidParameter(
                    f"{agent.name} must have a bonus where features are bilinear, for which the best action is "
                    f"searched: use lsvi-ucb. Got A={features.A}."
                )
            return Searched(parts, features)
        if self.name == "sparse":
            M = agent.chosen_within.get("M", agent.M)
            if M is None or agent.own_M:
                return Sparse(parts, features, self.index)
            if self.unbounded:
                return Joining(parts, features, M)
            return Merging(parts, features, self.index, M, self._spans)
        if self.name in MERGING:
            M = agent.chosen_within.get("M") or self.size
            if self.name == "merged":
                return Transitions(parts, features, M, agent._state_bytes)
            return Centres(parts, features, M, self.dtype, self._spans)
        capacity = agent.chosen_within.get("M", agent.M) if agent.own_M else None
        if not agent.own_M and self._known:
            capacity = agent.schedule.most_samples(agent.episodes or 0)
        return Samples(
            parts,
            features,
            self.dtype,
            keep_features=self.name == "features",
            state_bytes=agent._state_bytes,
            capacity=capacity,
        )

    @property
    def _spans(self) -> Array:
        """The largest difference of two values of each step, (H,)."""
        horizon = self.agent.horizon
        return np.asarray(self.agent.caps[-horizon.H :] - horizon.lows(self.agent.task.reward_range[0]))

    # what `max_bytes` may choose

    def choices(self) -> Iterator[Choice]:
        """From that which loses least, as far as that is known, to the smallest: see docs, memory."""
        agent, free = self.agent, self.given == "auto"
        if self.asked in MERGING:
            least = min(max(LEAST_MERGED, self._least), self.size)
            yield from varied([{"storage": self.asked}], "M", self.size, least)
        elif self.asked == "search":
            yield {"storage": "search"}
        elif self.asked == "sparse":
            yield from self._sparse_choices()
        else:
            storages = [self.asked]
            if free and (self.asked == "features" or agent.episodes is not None):
                storages.append("states")
            yield from ({"storage": storage, "dtype": dtype} for storage in storages for dtype in self._dtypes())
            if free and agent.merges_for_bytes and self.table:
                yield from varied([{"storage": "centres"}], "M", self.size, LEAST_MERGED)

    def _sparse_choices(self) -> Iterator[Choice]:
        """A table that grows with the links that come; else space for all that can, down to one for each vector.

        Where states have no bound, down to a few of them.
        """
        agent, task, sparse = self.agent, self.agent.task, Choice(storage="sparse")
        if agent.M is None and not (self.unbounded and agent.episodes is None):
            yield sparse
        if not agent.own_M:
            rows = agent.horizon.followed * task.d
            most, least = (MOST_LINKS, self._least) if self.unbounded else (rows * ((task.S or 0) + 1), max(2, rows))
            yield from varied([sparse], "M", agent.M or most, agent.M or least)

    @property
    def smaller(self) -> str:
        """What a user could do to need less."""
        return ", and less with fewer features (dim=32)" if block_features(self.agent._features) else ""

    def _dtypes(self) -> tuple[str, ...]:
        """Precisions to choose from: the one given, or a smaller one."""
        given = self.agent.dtype
        return (given,) if given == "float32" else (given, "float32")

    @property
    def _known(self) -> bool:
        """Whether the number of episodes says how many samples a regression will hold."""
        return self.agent.episodes is not None and not self.agent.horizon.shared


def check_common(agent: LSVIAgent) -> None:
    """Refuse values that no LSVI agent takes."""
    check_choice(agent.name, "cap", agent.cap, ("H", "remaining"))
    check_choice(agent.name, "ties", agent.ties, ("random", "first"))
    check_choice(agent.name, "dtype", agent.dtype, ("float64", "float32"))
    if agent.lam != "auto" and check_number(agent.name, "lam", agent.lam, low=0.0, open_low=True) < 1 / LARGEST_BONUS:
        invalid(agent.name, "lam", f"at least {1 / LARGEST_BONUS:g}, or 'auto'", agent.lam)
    if agent.dtype == "float32" and not isinstance(agent.lam, str) and agent.lam < LEAST_LAM_SINGLE:
        words = f"lam={agent.lam:g} is lost in single precision, which has 7 digits: Q can be off by its whole range"
        warnings.warn(f"{agent.name}: {words}. Use dtype=float64, or lam >= {LEAST_LAM_SINGLE:g}.", LinMDPWarning)
    if agent.stationary != "auto" and not isinstance(agent.stationary, bool):
        invalid(agent.name, "stationary", "true, false or 'auto'", agent.stationary)
    if agent.discount != "auto":
        check_number(agent.name, "discount", agent.discount, low=0.0, high=1.0, open_low=True)
    check_number(agent.name, "inflate", agent.inflate, low=0.0, high=1.0)
