"""max_bytes: which parameters keep an agent's memory below a number that the user chooses.

The formulas here say beforehand what the arrays of an agent will take, and what planning needs beside them for a
moment. `tests/test_budget.py` holds them to what agents really allocate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.horizon import Horizon
from linmdp.agents.memory.limited import most_states
from linmdp.agents.memory.links import NAMED, links_bytes
from linmdp.agents.memory.samples import block_size
from linmdp.agents.ridge import BLOCK_BYTES, DELAY
from linmdp.errors import InvalidParameter, invalid
from linmdp.io.units import human_bytes
from linmdp.types import WHOLE

Choice = dict[str, Any]
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
OBJECTS = 8192
"""Small Python objects that no array counts."""

STATE_BYTES = 512
"""Taken for a state that is not finite, where a task does not say what one takes."""

BUFFERS = 8 * 8192
"""NumPy's own buffers for products that do not lie in one piece."""


def parse_bytes(owner: str, value: Any, parameter: str = "max_bytes") -> int:
    """A number of bytes, or text such as "256KiB" or "2 MB"."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if found and len(found[1]) < 30 and found[2].upper() in UNITS:
        value = int(float(found[1]) * UNITS[found[2].upper()])
    if not isinstance(value, WHOLE) or isinstance(value, bool) or value < 1:
        invalid(owner, parameter, "a whole number of bytes, or text such as 256KiB or 2MiB", value)
    return int(value)


def chosen_within(
    owner: str, max_bytes: Any, choices: Iterable[Choice], bytes_of: Callable[[Choice], int], hint: str = ""
) -> Choice:
    """What an agent makes of its `max_bytes`, the bytes that it will take, and why; nothing where no limit is given.

    The first choice that fits; they come in the order of what they lose, as far as that is known.
    """
    if max_bytes is None:
        return {}
    limit, refused = parse_bytes(owner, max_bytes), list[tuple[int, Choice]]()
    for choice in choices:
        need = bytes_of(choice)
        if need <= limit:
            found = choice | {"bytes": need}
            return found | {"reason": reason(*refused[0], found)} if refused else found
        refused.append((need, choice))
    least = min(need for need, _ in refused)
    raise InvalidParameter(
        f"The 'max_bytes' parameter of {owner} must be at least {least} ({human_bytes(least)}): its smallest form on "
        f"this task needs that{hint}. Got {limit}."
    )


def reason(need: int, best: Choice, found: Choice) -> str:
    """Why something else was chosen than what loses least."""
    names = [name for name in best if best[name] != found.get(name)]
    if "storage" in best and "storage" not in names:
        names = ["storage", *names]
    words = " ".join(str(best[name]) if name == "storage" else f"{name}={best[name]}" for name in names)
    return f"{words or 'the best form'} would take {human_bytes(need)}"


def as_it_is(owner: str, max_bytes: Any, held: int) -> Choice:
    """The same of an agent that has nothing to choose."""
    return chosen_within(owner, max_bytes, [{}], lambda _: held + OBJECTS)


def descending(high: int, low: int) -> Iterator[int]:
    """Whole numbers from `high` down to `low`, each about a tenth less than the one before."""
    while high > low:
        yield high
        high = min(high - 1, int(high * 0.9))
    yield low


class Sizes(NamedTuple):
    """The sizes of a task and its horizon. `table`: states are finite; `state`: bytes of one that is not."""

    S: int
    A: int
    d: int
    horizon: Horizon
    table: bool
    state: int

    @property
    def rows(self) -> int:
        """Pairs of a state and an action."""
        return self.A * self.S


def common_bytes(s: Sizes, *, auto: bool) -> int:
    """What every LSVI agent holds: the tie-breaks, the decision of the schedule, and what beta="auto" remembers."""
    return 10 * s.horizon.H + OBJECTS + (8 * (s.horizon.levels * s.d + 15 + 3 * s.d) if auto else 0)


def ridge_bytes(s: Sizes, *, kept: bool) -> int:
    """Regressions, with Lambda beside its inverse if it is `kept`, and their planning."""
    G, d = s.horizon.groups, s.d
    work = 8 * (3 * d * d + 6 * G * d) + min(BLOCK_BYTES + 8 * d * d, 8 * G * d * d)
    return 8 * G * d * (d * (1 + kept) + 2 + kept * DELAY) + 2 * G + work


def sketch_bytes(s: Sizes, m: int) -> int:
    """Regressions of 2m rows each, and their planning; forms are made of two products more."""
    G, d, n = s.horizon.groups, s.d, 2 * m
    return (
        8 * G * (n * d + n * n + d + 5)
        + 2 * G
        + 8 * (8 * n * n + 4 * n * d + 6 * G * d + 2 * n * max(s.rows, 256 * s.A))
    )


def lsvi_bytes(s: Sizes, storage: str, dtype: str, samples: int, *, capacity: bool) -> int:
    """Regressions and a storage with at most that many samples per regression, and their planning."""
    e, d, horizon = np.dtype(dtype).itemsize, s.d, s.horizon
    G, L, kept = horizon.groups, horizon.levels, horizon.shared or storage == "counts"
    fixed, work = ridge_bytes(s, kept=kept) + 8 * L * d, BUFFERS
    if storage == "counts":
        tables = 1 if horizon.shared else 2
        values = s.S if horizon.shared else (horizon.H + 1) * s.S
        counts = e * (horizon.followed * d * s.S + G * s.rows + values + tables * (d + s.rows))
        best, own = 0 if horizon.shared else horizon.H * s.rows, e * d * s.rows if e < 8 else 0
        return fixed + counts + best + own + work + 3 * 8 * d * s.rows  # fresh forms
    size = block_size(s.A, d, dtype, samples if capacity else None)
    state = s.A * d * e if storage == "features" else (8 if s.table else s.state)
    blocks = -(-max(samples, 1) // size)
    return fixed + work + blocks * size * G * ((d + s.A + 2) * e + state) + 4 * size * s.A * d * 8


def adaptive_bytes(s: Sizes, m: int) -> int:
    """What LEARN holds beside its proxy, and the Gram matrix of its window."""
    G, window = s.horizon.groups, m * s.horizon.samples_per_episode
    return 8 * G * (window * s.d + 1) + 8 * (G * window * window + 2 * G * s.d)


def merged_bytes(s: Sizes, M: int, blocks: int) -> int:
    """Regressions and a `Transitions`, and their planning: features of both ends of all transitions, twice."""
    G, L, d, p = s.horizon.groups, s.horizon.levels, s.d, s.d // blocks
    matrices, vectors = 8 * G * blocks * p * p, 8 * d * (2 * G + L)
    kept = (M + 1) * (2 * s.state + 4 + 24)
    rows = p if blocks > 1 else s.A * d
    work = 8 * M * (4 * rows + 6 * s.A + 12) + 3 * 8 * blocks * p * p
    return matrices + vectors + kept + work + BUFFERS + (M + 1) * (2 * s.state + 28)


def centres_bytes(s: Sizes, M: int, blocks: int, e: int, *, absorbing: bool) -> int:
    """Regressions and a `Centres`, and their planning: features of the centres, several times while they merge."""
    G, L, d, p, F = s.horizon.groups, s.horizon.levels, s.d, s.d // blocks, s.horizon.followed
    row = p if blocks > 1 else s.A * d
    matrices, vectors = 8 * (2 * G * blocks * p * p + F * p * p * (p <= M)), 8 * d * (2 * G + L + 2 * F)
    kept = F * ((M + 1) * (e * d + 32 + (4 if s.table else e * row)) + 40) + 17 * s.horizon.H + 8 * (G + 2)
    distances = 8 * (3 * (s.A if blocks == 1 else 1) + 1)  # of eight centres to all others
    work = 8 * (M + 1) * (5 * row + 2 * d + 12 * s.A + distances) + 4 * 8 * blocks * p * p
    return matrices + vectors + kept + work + BUFFERS + absorbing * 8 * G * (d + 1)


def search_bytes(s: Sizes, p: int) -> int:
    """Regressions and a `Searched`, and a planning that has to open every cell."""
    G, L, d, horizon = s.horizon.groups, s.horizon.levels, s.d, s.horizon
    matrices = 8 * G * d * (2 * d + 2 + DELAY) + 8 * L * d + 2 * G
    counts = 8 * s.S * (horizon.followed * (d + 2) + (1 if horizon.shared else horizon.H + 1))
    work = 8 * (3 * d * d + 6 * G * d + s.A * (3 * p + 14)) + s.rows
    return matrices + counts + work + BUFFERS


def sparse_bytes(s: Sizes, samples: int | None) -> int:
    """Regressions and a `Sparse` with a different transition in every sample, and their planning.

    Where the number of samples is not known: with every transition there can be.
    """
    G, states, d = s.horizon.groups, s.S, s.d
    if samples is not None and not s.S:  # each is numbered when it is seen, in arrays that double
        states = 2 * (samples * G + 1)
        d = min(d, s.A * states)
    links = G * d * (states + 1) if samples is None else min(samples * G, G * d * (states + 1))
    return _linked_bytes(s, states, d, links) + BUFFERS


def limited_bytes(s: Sizes, M: int) -> int:
    """Regressions and at most M links, and their planning, or two tables and all links while some of them go."""
    G, states = s.horizon.groups, s.S or most_states(M, s.A * s.horizon.groups)
    d = s.d if s.S else s.A * states
    leaving = links_bytes(M) + 8 * (21 * M + 4 * G * d + G * (states + 1) + 3 * s.A * states)
    work = max(_planning_bytes(s, states, d, M), leaving) + (0 if s.S else BUFFERS)
    return links_bytes(M) + _rows_bytes(s, states, d) + work


def _linked_bytes(s: Sizes, states: int, d: int, links: int) -> int:
    """Regressions over d unit vectors, that many links, and their planning."""
    return links_bytes(links) + _rows_bytes(s, states, d) + _planning_bytes(s, states, d, links)


def _rows_bytes(s: Sizes, states: int, d: int) -> int:
    """Regressions over d unit vectors, and the names of states without a bound."""
    return 8 * d * (4 * s.horizon.groups + s.horizon.levels) + NAMED * (states if not s.S else 0)


def _planning_bytes(s: Sizes, states: int, d: int, links: int) -> int:
    rows = s.A * states
    return 8 * (rows + 12 * links + 8 * max(rows, d) + 2 * states)
