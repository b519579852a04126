"""Which storage and horizon an agent has: as asked for, by default or, within `max_bytes`, the first that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from linmdp.agents.afresh import Afresh
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
    stagewise_bytes,
)
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.exploration.evidence import Evidence
from linmdp.agents.exploration.spread import Spread
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import DELAY
from linmdp.agents.stages import Stages
from linmdp.agents.storage.base import Parts, Storage
from linmdp.agents.storage.centres import Centres
from linmdp.agents.storage.counts import Counts
from linmdp.agents.storage.fold import CORRECTIONS, PROBES, Fold
from linmdp.agents.storage.merged import Merged, least_merged
from linmdp.agents.storage.rows import group_blocks
from linmdp.agents.storage.samples import Samples
from linmdp.agents.storage.searched import Searched
from linmdp.agents.storage.sparse import Sparse
from linmdp.agents.storage.stagewise import Stagewise
from linmdp.errors import InvalidParameter, check_choice, check_int, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.groups import GroupFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import LARGEST_DENSE, is_unit, unit_index

if TYPE_CHECKING:
    from linmdp.agents.lsvi import LSVIAgent

STORAGES = ("auto", "features", "states", "counts", "sparse", "stagewise", "merged", "centres", "fold", "search")
MERGED = 3000
"""M of a storage of merged transitions, where it is not given."""

CENTRES, CENTRES_OF_ALL = 256, 1000
"""M of a storage of centres, where it is not given: for each step, and for all together."""

LEAST_MERGED = 8

STAGEWISE, STAGEWISE_DISCOUNT = 30_000, 0.97
"""M of a stagewise storage, and its discount, where they are not given."""

LOOKAHEAD = 200
"""Steps that are planned ahead with merged transitions: over more, errors of the regression add up."""

MERGED_LEVELS = 3 << 17
"""Bytes of the weights of all steps, at most, with merged transitions; if they would take more, steps share."""

SPARSE_LEVELS, DISCOUNT, SHORT_DISCOUNT = 1 << 20, 0.99, 0.9
"""If the weights of all steps take more bytes than this with unit vectors, there is one Q, of discounted rewards; where
states have no bound, with a shorter view: new ones turn up all the time, and a long one would wait for them."""


class StorageChoice:
    """How the samples of an agent are kept, and how its horizon is planned."""

    __slots__ = ("agent", "bilinear", "grouped", "index", "table", "unit")

    def __init__(self, agent: LSVIAgent) -> None:
        self.agent, self.table = agent, isinstance(agent._features, TableFeatures)
        self.bilinear = isinstance(agent._features, BilinearFeatures)
        self.index, self.unit = unit_index(agent._features), is_unit(agent._features)
        self.grouped = agent._features if isinstance(agent._features, GroupFeatures) else None
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
        if self.grouped and agent._features.d > LARGEST_DENSE and self.asked != "stagewise":
            invalid(agent.name, "storage", f"'stagewise' for cells with d over {LARGEST_DENSE}", self.asked)
        if self.asked == "stagewise":
            self._check_stagewise()
        if self.unbounded:
            self._check_unwritten("states without a bound", "where states have no bound", "features other than hashed")
        merging = ("fold", "merged", "centres", "stagewise")
        if agent.own_M:
            if self.asked in merging:
                invalid(agent.name, "storage", "one that holds the samples as they are", self.asked)
        elif self.asked in merging:
            self.size(self.asked)
        elif agent.M is not None:
            invalid(agent.name, "M", "left out unless storage is 'fold', 'merged', 'centres' or 'stagewise'", agent.M)

    def make_horizon(self) -> Horizon:
        """What the steps share, how far ahead they are planned, and how many of their Q are kept."""
        agent, task = self.agent, self.agent.task
        stages = self.asked == "stagewise"
        shared = (agent.auto and task.stationary) or stages if agent.stationary == "auto" else bool(agent.stationary)
        ahead = LOOKAHEAD if agent.auto and shared and self.merges else task.H
        if agent.lookahead != "auto":
            ahead = check_int(agent.name, "lookahead", agent.lookahead, low=1)
            if ahead < task.H and not shared:
                invalid(agent.name, "lookahead", "'auto' unless stationary=true: only then do steps share", ahead)
        H = min(ahead, task.H)
        discount, levels = agent.discount, 8 * H * task.d
        if discount == "auto":
            many = agent.auto and shared and self.asked == "sparse" and levels > SPARSE_LEVELS
            discount = STAGEWISE_DISCOUNT if stages else (DISCOUNT if task.S else SHORT_DISCOUNT) if many else 1.0
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
            if self.bilinear:
                return "search"
            return "stagewise" if self.grouped else self.agent.usual_storage(table=self.table, unit=self.unit)
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
        made: dict[str, type[Storage]] = {"sparse": Sparse, "stagewise": Stagewise, "merged": Merged}
        made |= {"centres": Centres}
        return made.get(self.name, Storage).own_ends

    def make_ridge(self) -> Afresh | Stages | None:
        """Regressions that are made afresh at every planning; None where Lambda^-1 is kept as a whole matrix."""
        agent = self.agent
        if self.name == "stagewise":
            assert self.grouped is not None
            return Stages(self.grouped, self.grouped.scale**2 if agent.auto else agent.lam_value)
        if self.name not in ("sparse", "merged", "centres"):
            return None
        blocks = self.width if self.name == "sparse" else group_blocks(agent._features)
        return Afresh(agent.horizon.groups, self.width, agent.lam_value, blocks)

    def make_automatic(self) -> Exploration:
        """How Q is made optimistic where beta and lam are "auto"."""
        agent = self.agent
        if self.asked == "stagewise":
            return Spread(agent.horizon, agent.caps)
        lows = agent.horizon.lows(agent.task.reward_range[0])
        found = Evidence(agent.horizon, agent._features, agent.caps, lows, own_ends=self.own_ends)
        found.inflate = float(agent.inflate)
        return found

    @property
    def width(self) -> int:
        """Weights of a regression at the start: d, or none where there is a state or a cell to each that was seen."""
        return 0 if self.unbounded or self.name == "stagewise" else self.agent.task.d

    @property
    def unbounded(self) -> bool:
        """Whether states are numbered as they come, with A unit vectors each."""
        return self.unit and not self.table and getattr(self.agent._features, "S", None) is None

    def _check_unwritten(self, what: str, where: str, instead: str) -> None:
        """Refuse what needs phi written out, which is longer than any memory."""
        agent = self.agent
        own = sum("make_exploration" in vars(cls) for cls in type(agent).__mro__) > 1
        if own or agent.schedule_type.reads_features:
            raise InvalidParameter(
                f"{agent.name} must have features that can be written out, and {what} have none: "
                f"use lsvi-ucb, or {instead}. Got d={agent.task.d}."
            )
        if agent.beta == "auto" and not agent.auto:
            invalid(agent.name, "lam", f"'auto' {where}, or beta a number", agent.lam)

    def _check_search(self) -> None:
        """Refuse what needs the features of all actions."""
        agent = self.agent
        if not self.bilinear:
            invalid(agent.name, "storage", "another where features are not bilinear", "search")
        if self.asked != "search":
            invalid(agent.name, "storage", "'search' where features are bilinear", self.asked)
        if agent.beta == "auto" and agent.follows_evidence and not agent.auto:  # others are refused for what they are
            invalid(agent.name, "lam", "'auto' with storage 'search', or beta a number", agent.lam)

    def _check_stagewise(self) -> None:
        """Refuse what stages cannot do: they have one Q for all steps, and no inverse of Lambda."""
        agent = self.agent
        if not self.grouped:
            invalid(agent.name, "storage", "another where features are not groups of cells", "stagewise")
        if not (agent.horizon.shared and agent.horizon.discounted):
            invalid(agent.name, "discount", "below 1, with stationary=true, for storage 'stagewise'", agent.discount)
        self._check_unwritten("groups of cells", "with storage 'stagewise'", "other features")

    def size(self, storage: str) -> int:
        """M of a storage: transitions, or centres, of which there are no more than states."""
        if storage == "fold":
            return self.fold_size()
        if self.agent.M is None and storage == "centres":
            usual = CENTRES_OF_ALL if self.agent.horizon.shared else CENTRES
            return max(2, min(usual, self.agent.task.S or usual))
        least = self._least(storage)
        if self.agent.M is None:
            return STAGEWISE if storage == "stagewise" else max(MERGED, least)
        return check_int(self.agent.name, "M", self.agent.M, low=least, high=10**7)

    def _least(self, storage: str) -> int:
        """The least M: transitions of different steps, actions, or ends are never merged."""
        return least_merged(self.agent.horizon.groups, self.agent.task.A) if storage == "merged" else 2

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
        if self.asked in ("merged", "centres", "stagewise"):
            size = self.size(self.asked)
            for M in descending(size, min(max(LEAST_MERGED, self._least(self.asked)), size)):
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
            yield from ({"storage": "centres", "M": M} for M in descending(self.size("centres"), LEAST_MERGED))

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
        if choice["storage"] == "stagewise":
            assert self.grouped is not None
            return stagewise_bytes(self.grouped.G, self.grouped.cells, self.grouped.C, choice["M"])
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
        if self.name == "stagewise":
            assert self.grouped is not None
            M = agent.chosen_within.get("M", self.size(self.name))
            return Stagewise(parts, self.grouped, M, opening=agent.auto)
        if self.name == "merged":
            return Merged(parts, features, agent.chosen_within.get("M", self.size(self.name)), agent._state_bytes)
        if self.name == "centres":
            spans = agent.caps[-parts.horizon.H :] - parts.horizon.lows(agent.task.reward_range[0])
            return Centres(parts, features, agent.chosen_within.get("M", self.size(self.name)), self.dtype, spans)
        if self.name == "fold":
            return Fold(
                parts,
                features,
                M=agent.chosen_within.get("M", self.size(self.name)),
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
