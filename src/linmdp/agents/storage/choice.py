"""Which storage and horizon an agent has: as asked for, by default or, within `max_bytes`, the first that fits."""

from __future__ import annotations

import warnings

import numpy as np

from linmdp.agents.afresh import Afresh
from linmdp.agents.backend import Backend
from linmdp.agents.budget import Choice, chosen_within, common_bytes, kept_bytes, parse_bytes
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Bonus
from linmdp.agents.exploration.evidence import Evidence
from linmdp.agents.horizon import Horizon
from linmdp.agents.ridge import DELAY
from linmdp.agents.storage import seen_counts
from linmdp.agents.storage.base import Parts, Storage
from linmdp.agents.storage.centres import Centres
from linmdp.agents.storage.counts import Counts
from linmdp.agents.storage.forms import FOLD, FREQUENT, Forms
from linmdp.agents.storage.frequent import Frequent
from linmdp.agents.storage.kept import Kept
from linmdp.agents.storage.merged import Merged
from linmdp.agents.storage.rows import group_blocks
from linmdp.agents.storage.samples import Samples
from linmdp.agents.storage.searched import Searched
from linmdp.agents.storage.sparse import Sparse
from linmdp.errors import InvalidParameter, LinMDPWarning, check_int, invalid
from linmdp.features.bilinear import BilinearFeatures
from linmdp.features.tabular import TableFeatures
from linmdp.features.unit import LARGEST_DENSE
from linmdp.types import Array

LOOKAHEAD = 200
"""Steps that are planned ahead with merged transitions: over more, errors of the regression add up."""

MERGED_LEVELS = 3 << 17
"""Bytes of the weights of all steps, at most, with merged transitions. If they would take more, steps share."""

SPARSE_LEVELS, DISCOUNT, SHORT_DISCOUNT = 1 << 20, 0.99, 0.9
"""If the weights of all steps take more bytes than this with unit vectors, or `max_bytes` has no space for them, there
is one Q, of discounted rewards; where states have no bound, with a shorter view: new ones turn up all the time, and a
long one would wait for them."""


class StorageChoice(Forms):
    """How the samples of an agent are kept, and how its horizon is planned."""

    __slots__ = ()

    def check(self) -> None:
        """Refuse what does not go together."""
        agent = self.agent
        if agent.storage == FOLD:
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
            self._check_unwritten("states without a bound", "where states have no bound", "features other than hashed")
        merging = ("merged", "centres")
        if agent.own_M:
            if self.asked in merging:
                invalid(agent.name, "storage", "one that holds the samples as they are", self.asked)
        elif self.asked in merging:
            self.size(self.asked)
        elif self.asked == "sparse" and agent.M is not None:
            check_int(agent.name, "M", agent.M, low=self.fewest_links if self.unbounded else 2, high=10**7)
        elif agent.M is not None:
            rule = "left out unless storage is 'merged', 'centres' or 'sparse'"
            invalid(agent.name, "M", rule, agent.M)

    def make_horizon(self) -> Horizon:
        """What the steps share, how far ahead they are planned, and how many of their Q are kept."""
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
            many = levels > SPARSE_LEVELS or self._tight(Horizon(H, shared, 1.0, 1, task.H))
            many &= agent.auto and shared and self.asked == "sparse"
            view = DISCOUNT if task.S else SHORT_DISCOUNT
            discount = view if many else 1.0
        stride = -(-levels // MERGED_LEVELS) if self.merges and shared and discount == 1 and not agent.inflate else 1
        return Horizon(H, shared, float(discount), min(stride, H), task.H)

    def within(self) -> Choice:
        """What the agent makes of its `max_bytes`."""
        agent = self.agent
        return chosen_within(agent.name, agent.max_bytes, agent._choices(), agent._bytes_of, self.smaller)

    def _tight(self, horizon: Horizon) -> bool:
        """Whether `max_bytes` has no space for the weights of all steps, with unit vectors."""
        agent = self.agent
        if agent.max_bytes is None or not self.unit or self.unbounded:
            return False
        s = self.sizes(horizon)
        smallest = (
            kept_bytes(s, horizon.followed * s.d) + common_bytes(s, auto=False) + 64 * (horizon.H + horizon.groups)
        )
        return smallest > parse_bytes(agent.name, agent.max_bytes)

    def chosen(self) -> Choice:
        """What the agent chose by itself for parameters that were left to it."""
        agent, found = self.agent, Choice()
        if agent.stationary == "auto":
            found["stationary"] = agent.horizon.shared
        if agent.storage == "auto":
            found["storage"] = self.name
        found |= agent._planner.storage.chosen
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
        return DELAY if self.agent.horizon.shared or self.name in ("counts", "search") else 0

    @property
    def own_ends(self) -> bool:
        """Whether the storage counts the samples that ended an episode by itself."""
        made: dict[str, type[Storage]] = {"sparse": Sparse, "merged": Merged}
        made |= {"centres": Centres}
        return made.get(self.name, Storage).own_ends

    def make_ridge(self) -> Afresh | None:
        """Regressions that are made afresh at every planning; None where Lambda^-1 is kept as a whole matrix."""
        agent = self.agent
        if self.name not in ("sparse", "merged", "centres"):
            return None
        blocks = self.width if self.name == "sparse" else group_blocks(agent._features)
        return Afresh(agent.horizon.groups, self.width, agent.lam_value, blocks)

    def make_automatic(self, batch: tuple[int, ...], backend: Backend) -> Exploration:
        """How Q is made optimistic where beta and lam are "auto"."""
        agent = self.agent
        lows = agent.horizon.lows(agent.task.reward_range[0])
        found = Evidence(
            agent.horizon,
            agent._features,
            agent.caps,
            lows,
            own_ends=self.own_ends,
            batch=batch,
            backend=backend,
        )
        found.inflate = float(agent.inflate)
        return found

    @property
    def width(self) -> int:
        """Weights of a regression at the start: d, or none where states are numbered as they come."""
        return 0 if self.unbounded else self.agent.task.d

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

    def make(self, parts: Parts) -> Storage:
        """The storage."""
        agent, features = self.agent, self.agent._features
        if self.name == "counts":
            assert isinstance(features, TableFeatures)
            # with max_bytes the arrays are to have their full size from the start, as was forecast
            many = features.S >= seen_counts.MANY_STATES and agent.max_bytes is None
            return (seen_counts.SeenCounts if many else Counts)(parts, features, self.dtype)
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
            if self.unbounded and M is None and agent.bounded and agent.max_bytes is None:
                M = max(FREQUENT, self.fewest_links)
            if M is None or agent.own_M:
                return Sparse(parts, features, self.index)
            return Frequent(parts, features, M) if self.unbounded else Kept(parts, features, self.index, M, self._spans)
        if self.name == "merged":
            M = agent.chosen_within.get("M", self.size(self.name))
            return Merged(parts, features, M, agent._state_bytes)
        if self.name == "centres":
            M = agent.chosen_within.get("M", self.size(self.name))
            return Centres(parts, features, M, self.dtype, self._spans)
        capacity = agent.chosen_within.get("M", agent.M) if agent.own_M else None
        if not agent.own_M and self._known:
            capacity = agent.samples_after(agent.episodes or 0)
        return Samples(parts, features, self.dtype, keep_features=self.name == "features", capacity=capacity)

    @property
    def _spans(self) -> Array:
        """The largest difference of two values of each step, (H,)."""
        horizon = self.agent.horizon
        return np.asarray(self.agent.caps[-horizon.H :] - horizon.lows(self.agent.task.reward_range[0]))
