"""What `max_bytes` may choose: the forms of a storage, from that which loses least to the smallest, and their bytes."""

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
    frequent_bytes,
    kept_bytes,
    lsvi_bytes,
    merged_bytes,
    search_bytes,
    sparse_bytes,
)
from linmdp.agents.horizon import Horizon
from linmdp.agents.storage.frequent import FEWEST
from linmdp.agents.storage.merged import least_merged
from linmdp.agents.storage.rows import block_features, group_blocks
from linmdp.errors import check_choice, check_int
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import is_unit, unit_index

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

STORAGES = ("auto", "features", "states", "counts", "sparse", "merged", "centres", "search")
FOLD = "fold"
"""An old value, which is read as "centres"."""

MERGED = 3000
"""M of a storage of merged transitions, where it is not given."""

CENTRES, CENTRES_OF_ALL = 256, 1000
"""M of a storage of centres, where it is not given: for each step, and for all together."""

LEAST_MERGED = 8

FREQUENT, MOST_LINKS = 1 << 14, 1 << 24
"""M of states without a bound in bounded memory, where it is not given, and the most that `max_bytes` chooses."""


class Forms:
    """The storage that an agent asked for, and the forms of it that differ in size."""

    __slots__ = ("agent", "bilinear", "index", "table", "unit")

    def __init__(self, agent: LSVIAgent) -> None:
        self.agent, self.table = agent, isinstance(agent._features, TableFeatures)
        self.bilinear = isinstance(agent._features, BilinearFeatures)
        self.index, self.unit = unit_index(agent._features), is_unit(agent._features)
        if agent.storage != FOLD:
            check_choice(agent.name, "storage", agent.storage, STORAGES)

    @property
    def asked(self) -> str:
        """The storage asked for."""
        if self.agent.storage == "auto":
            if self.bilinear:
                return "search"
            return self.agent.usual_storage(table=self.table, unit=self.unit)
        return "centres" if self.agent.storage == FOLD else self.agent.storage

    @property
    def unbounded(self) -> bool:
        """Whether states are numbered as they come, with A unit vectors each."""
        return self.unit and not self.table and getattr(self.agent._features, "S", None) is None

    def size(self, storage: str) -> int:
        """M of a storage: transitions, or centres, of which there are no more than states."""
        if self.agent.M is None and storage == "centres":
            usual = CENTRES_OF_ALL if self.agent.horizon.shared else CENTRES
            return max(2, min(usual, self.agent.task.S or usual))
        least = self._least(storage)
        if self.agent.M is None:
            return max(MERGED, least)
        return check_int(self.agent.name, "M", self.agent.M, low=least, high=10**7)

    def _least(self, storage: str) -> int:
        """The least M: transitions of different steps, actions, or ends are never merged."""
        return least_merged(self.agent.horizon.groups, self.agent.task.A) if storage == "merged" else 2

    def choices(self) -> Iterator[Choice]:
        """From that which loses least, as far as that is known, to the smallest: see docs, memory."""
        agent, free = self.agent, self.agent.storage == "auto"
        if self.asked in ("merged", "centres"):
            size = self.size(self.asked)
            yield from self._sized(self.asked, size, min(max(LEAST_MERGED, self._least(self.asked)), size))
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
                yield from self._sized("centres", self.size("centres"), LEAST_MERGED)

    def _sized(self, storage: str, most: int, least: int) -> Iterator[Choice]:
        yield from ({"storage": storage, "M": M} for M in descending(most, least))

    def _sparse_choices(self) -> Iterator[Choice]:
        """A table that grows with the links that come; else space for all that can, down to one for each vector.

        Where states have no bound, down to a few of them.
        """
        agent, s = self.agent, self.sizes()
        if agent.M is None and not (self.unbounded and agent.episodes is None):
            yield {"storage": "sparse"}
        if self.unbounded and not agent.own_M:
            yield from self._sized("sparse", agent.M or MOST_LINKS, agent.M or self.fewest_links)
        elif not agent.own_M:
            rows = s.horizon.followed * s.d
            yield from self._sized("sparse", agent.M or rows * (s.S + 1), agent.M or max(2, rows))

    @property
    def fewest_links(self) -> int:
        """M at least, where states have no bound."""
        return FEWEST * self.agent.task.A * self.agent.horizon.groups

    @property
    def smaller(self) -> str:
        """What a user could do to need less."""
        return ", and less with fewer features (dim=32)" if block_features(self.agent._features) else ""

    def _dtypes(self) -> tuple[str, ...]:
        """Precisions to choose from: the one given, or a smaller one."""
        given = self.agent.dtype
        return (given,) if given == "float32" else (given, "float32")

    def sizes(self, horizon: Horizon | None = None, d: int | None = None) -> Sizes:
        """What the formulas of memory ask for."""
        agent, task = self.agent, self.agent.task
        return Sizes(task.S or 0, task.A, d or task.d, horizon or agent.horizon, self.table, agent._state_bytes)

    def bytes_in_all(self, choice: Choice, held: int | None) -> int:
        """The most bytes of the agent, with so many samples per regression at most (None: any number)."""
        agent, s, explore = self.agent, self.sizes(), self.agent._exploration
        common = common_bytes(s, auto=agent._auto_beta is not None) + agent.schedule_bytes(s)
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
            if not agent.own_M and "M" in choice:
                return (frequent_bytes if self.unbounded else kept_bytes)(s, choice["M"])
            if self.unbounded:
                held = agent._known_K() * agent.horizon.samples_per_episode
            return sparse_bytes(s, held)
        if choice["storage"] == "search":
            assert isinstance(agent._features, BilinearFeatures)
            return search_bytes(s, agent._features.p)
        return lsvi_bytes(s, choice["storage"], choice["dtype"], held or 0, capacity=agent.own_M or self._known)

    @property
    def _known(self) -> bool:
        """Whether the number of episodes says how many samples a regression will hold."""
        return self.agent.episodes is not None and not self.agent.horizon.shared
