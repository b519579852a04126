"""Which storage and horizon an agent has: as asked for, by default or, within `max_bytes`, the first that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from linmdp.agents.budget import (
    Choice,
    Sizes,
    centres_bytes,
    common_bytes,
    descending,
    fold_bytes,
    lsvi_bytes,
    merged_bytes,
    search_bytes,
    sparse_bytes,
)
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import DELAY
from linmdp.agents.storage.base import Parts, Storage
from linmdp.agents.storage.centres import Centres
from linmdp.agents.storage.counts import Counts
from linmdp.agents.storage.fold import CORRECTIONS, PROBES, Fold
from linmdp.agents.storage.merged import Merged
from linmdp.agents.storage.rows import group_blocks
from linmdp.agents.storage.samples import Samples
from linmdp.agents.storage.searched import Searched
from linmdp.agents.storage.sparse import Sparse
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import LARGEST_DENSE, is_unit, unit_index

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

STORAGES = ("auto", "features", "states", "counts", "sparse", "merged", "centres", "fold", "search")
MERGED = 3000
"""M of a storage of merged transitions, where it is not given."""

CENTRES, CENTRES_OF_ALL = 256, 1000
"""M of a storage of centres, where it is not given: for each step, and for all together."""

LEAST_MERGED = 8

LOOKAHEAD = 200
"""Steps that are planned ahead with merged transitions: over more, errors of the regression add up."""

MERGED_LEVELS = 3 << 17
"""Bytes of the weights of all steps, at most, with merged transitions; if they would take more, steps share."""

SPARSE_LEVELS, DISCOUNT, SHORT_DISCOUNT = 1 << 20, 0.99, 0.9
"""If the weights of all steps take more bytes than this with unit vectors, there is one Q, of discounted rewards; where
states have no bound, with a shorter view: new ones turn up all the time, and a long one would wait for them."""


class StorageChoice:
    """How the samples of an agent are kept, and how its horizon is planned."""

    __slots__ = ("agent", "bilinear", "index", "table", "unit")

    def __init__(self, agent: LSVIAgent) -> None:
        self.agent, self.table = agent, isinstance(agent._features, TableFeatures)
        self.bilinear = isinstance(agent._features, BilinearFeatures)
        self.index, self.unit = unit_index(agent._features), is_unit(agent._features)
        check_choice(agent.name, "storage", agent.storage, STORAGES)

    def check(self) -> None:
        """Refuse what does not go together."""
        agent = self.agent
        check_choice(agent.name, "probes", agent.probes, PROBES)
        check_choice(agent.name, "correction", agent.correction, CORRECTIONS)
        if self.bilinear or self.asked == "search":
            self._check_search()
        others = "'sparse'" if self.unit else "'features', 'states', 'merged', 'centres' or 'fold'"
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
            if self.asked in ("fold", "merged", "centres"):
                invalid(agent.name, "storage", "one that holds the samples as they are", self.asked)
        elif self.asked == "fold":
            self.fold_size()
        elif self.asked in ("merged", "centres"):
            self.merged_size()
        elif agent.M is not None:
            invalid(agent.name, "M", "left out unless storage is 'fold', 'merged' or 'centres'", agent.M)

    def make_horizon(self) -> Horizon:
        """What the steps share, how far ahead they are planned, and how many of their Q are kept."""
        agent, task = self.agent, self.agent.task
        shared = (agent.auto and task.stationary) if agent.stationary == "auto" else bool(agent.stationary)
        ahead = LOOKAHEAD if agent.auto and shared and self.merges else task.H
        if agent.lookahead != "auto":
            ahead = check_int(agent.name, "lookahead", agent.lookahead, low=1)
            if ahead < task.H and not shared:
                invalid(agent.name, "lookahead", "'auto' unless stationary=true: only then do steps share", ahead)
        H = min(ahead, task.H)
        discount, levels = agent.discount, 8 * H * task.d
        if discount == "auto":
            many = agent.auto and shared and self.asked == "sparse" and levels > SPARSE_LEVELS
            discount = (DISCOUNT if task.S else SHORT_DISCOUNT) if many else 1.0
        stride = -(-levels // MERGED_LEVELS) if self.merges and shared and discount == 1 and not agent.inflate else 1
        return Horizon(H, shared, float(discount), min(stride, H), task.H)

    def chosen(self) -> Choice:
        """What the agent chose by itself for parameters that were left to it."""
        agent, found = self.agent, Choice()
        if agent.stationary == "auto":
            found["stationary"] = agent.horizon.shared
        if agent.storage == "auto":
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
    def asked(self) -> str:
        """The storage asked for."""
        if self.agent.storage == "auto":
            return "search" if self.bilinear else self.agent.usual_storage(table=self.table, unit=self.unit)
        return self.agent.storage

    @property
    def merges(self) -> bool:
        """Whether transitions between states that are not finite are merged."""
        return self.asked in ("merged", "centres") and not self.table

    @property
    def name(self) -> str:
        """The storage there is."""
        return str(self.agent.chosen_within.get("storage", self.asked))

    @property
    def dtype(self) -> str:
        """The precision of what is kept per state or per sample."""
        return str(self.agent.chosen_within.get("dtype", self.agent.dtype))

    @property
    def delay(self) -> int:
        """Features that wait for Lambda; 0 where it need not be kept, since it can be made again from the samples."""
        if self.agent.horizon.shared or self.name in ("counts", "search"):
            return DELAY
        return int(self.name == "fold")  # a long wait would take more memory than the rest

    @property
    def own_ends(self) -> bool:
        """Whether the storage counts the samples that ended an episode by itself."""
        made: dict[str, type[Storage]] = {"sparse": Sparse, "merged": Merged, "centres": Centres}
        return made.get(self.name, Storage).own_ends

    @property
    def blocks(self) -> int | None:
        """Blocks of Lambda where it is made afresh at every planning; None where it is a whole matrix."""
        if self.name == "sparse":
            return self.width
        return group_blocks(self.agent._features) if self.name in ("merged", "centres") else None

    @property
    def width(self) -> int:
        """Weights of a regression at the start: d, or none where there is a state to each that was seen."""
        return 0 if self.unbounded else self.agent.task.d

    @property
    def unbounded(self) -> bool:
        """Whether states are numbered as they come, with A unit vectors each."""
        return self.unit and not self.table and getattr(self.agent._features, "S", None) is None

    def _check_unbounded(self) -> None:
        """Refuse what needs phi written out, which is longer than any memory."""
        agent = self.agent
        own = sum("make_exploration" in vars(cls) for cls in type(agent).__mro__) > 1
        if own or agent.schedule_type.reads_features:
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
        if agent.beta == "auto" and not agent.auto:
            invalid(agent.name, "lam", "'auto' with storage 'search', or beta a number", agent.lam)

    def merged_size(self) -> int:
        """M of merged transitions, or of centres: of these no more than there are states."""
        if self.agent.M is None:
            usual = CENTRES_OF_ALL if self.agent.horizon.shared else CENTRES
            return MERGED if self.asked == "merged" else max(2, min(usual, self.agent.task.S or usual))
        return check_int(self.agent.name, "M", self.agent.M, low=2, high=10**7)

    def fold_size(self) -> int:
        """M of a fold: given, or 4 d within bounds; with one regression space for ten episodes, and for two at least.

        Every fold leaves an error behind, and a buffer that is full after one or two episodes folds often.
        """
        agent, steps = self.agent, self.agent.horizon.samples_per_episode
        if agent.M is None:
            return max(int(np.clip(max(4 * agent.task.d, 10 * steps), 64, 512)), 2 * steps)
        return check_int(agent.name, "M", agent.M, low=max(2, steps), high=10**7)

    def choices(self) -> Iterator[Choice]:
        """From the best to the smallest."""
        if self.asked == "fold":
            yield from self._fold_choices()
            return
        if self.asked in ("merged", "centres"):
            size = self.merged_size()
            for M in descending(size, min(LEAST_MERGED, size)):
                yield {"storage": self.asked, "M": M}
            return
        if self.asked == "search":
            yield {"storage": "search"}
            return
        storages = [self.asked]
        if self.agent.storage == "auto" and (self.asked == "features" or self.agent.episodes is not None):
            storages.append("states")
        for storage in storages:
            for dtype in self._dtypes()[: 1 if storage == "sparse" else None]:
                yield {"storage": storage, "dtype": dtype}
        if self.agent.storage == "auto" and self.agent.merges_for_bytes and self.table and not self.unit:
            yield from ({"storage": "centres", "M": M} for M in descending(self.merged_size(), LEAST_MERGED))

    def _fold_choices(self) -> Iterator[Choice]:
        """Fewer transitions, down to d; then no slopes; then as few transitions as can be, in single precision."""
        agent, horizon = self.agent, self.agent.horizon
        least, most = max(2, horizon.samples_per_episode), self.fold_size()
        enough, dtype = min(most, max(least, agent.task.d)), agent.dtype
        without = "probe" if agent.correction == "slope" else agent.correction
        forms = [(without, most, enough, dtype), (without, enough, least, self._dtypes()[-1])]
        if agent.correction == "slope" and (not horizon.shared or horizon.discounted):
            forms.insert(0, ("slope", most, enough, dtype))
        for correction, high, low, kind in forms:
            for M in descending(high, low):
                yield {"storage": "fold", "M": M, "correction": correction, "dtype": kind}

    def _dtypes(self) -> tuple[str, ...]:
        """Precisions to choose from: the one given, or a smaller one."""
        given = self.agent.dtype
        return (given,) if given == "float32" else (given, "float32")

    def sizes(self) -> Sizes:
        """What the formulas of memory ask for."""
        agent, task = self.agent, self.agent.task
        return Sizes(task.S or 0, task.A, task.d, agent.horizon, self.table, agent._state_bytes)

    def bytes_in_all(self, choice: Choice, held: int | None) -> int:
        """The most bytes of the agent, with so many samples per regression at most (None: any number)."""
        agent, s, explore = self.agent, self.sizes(), self.agent._exploration
        common = common_bytes(s, auto=agent._auto_beta is not None) + agent.schedule_type.forecast_bytes(s)
        rewards = {"counts": 2 * s.S, "features": held or 0, "states": held or 0}.get(choice["storage"], 0)
        drawn = explore.adaptive * 8 * s.horizon.groups * rewards
        drawn += explore.nbytes + 8 * (explore.width - 1) * 2 * (s.horizon.levels * s.d + max(s.rows, 256 * s.A))
        return common + drawn + self._bytes_of(choice, held)

    def _bytes_of(self, choice: Choice, held: int | None) -> int:
        """The same of its regressions and storage."""
        agent, s = self.agent, self.sizes()
        if choice["storage"] == "merged":
            return merged_bytes(s, choice["M"], group_blocks(agent._features))
        if choice["storage"] == "centres":
            e = np.dtype(agent.dtype).itemsize
            return centres_bytes(s, choice["M"], group_blocks(agent._features), e, absorbing=agent.auto)
        if choice["storage"] == "sparse":
            if self.unbounded:
                held = agent._known_K() * agent.horizon.samples_per_episode
            return sparse_bytes(s, held)
        if choice["storage"] == "search":
            assert isinstance(agent._features, BilinearFeatures)
            return search_bytes(s, agent._features.p)
        if choice["storage"] == "fold":
            e = np.dtype(choice["dtype"]).itemsize
            return fold_bytes(s, choice["M"], slopes=choice["correction"] == "slope", e=e, rewards=agent.auto)
        return lsvi_bytes(s, choice["storage"], choice["dtype"], held or 0, capacity=agent.own_M or self._known)

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
            return Sparse(parts, features, self.index)
        if self.name == "merged":
            return Merged(parts, features, agent.chosen_within.get("M", self.merged_size()), agent._state_bytes)
        if self.name == "centres":
            spans = agent.caps[-parts.horizon.H :] - parts.horizon.lows(agent.task.reward_range[0])
            return Centres(parts, features, agent.chosen_within.get("M", self.merged_size()), self.dtype, spans)
        if self.name == "fold":
            return Fold(
                parts,
                features,
                M=agent.chosen_within.get("M", self.fold_size()),
                probes=agent.probes,
                correction=agent.chosen_within.get("correction", agent.correction),
                dtype=self.dtype,
                state_bytes=agent._state_bytes,
            )
        capacity = agent.chosen_within.get("M", agent.M) if agent.own_M else None
        if not agent.own_M and self._known:
            capacity = agent.samples_after(agent.episodes or 0)
        return Samples(parts, features, self.dtype, keep_features=self.name == "features", capacity=capacity)

    @property
    def _known(self) -> bool:
        """Whether the number of episodes says how many samples a regression will hold."""
        return self.agent.episodes is not None and not self.agent.horizon.shared
