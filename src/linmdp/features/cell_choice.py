"""Which numbers of an observation become cells, and which actions count as one: from random play, and nothing else.

1. Kept are the numbers that the action moves: mutual information of their change over two steps with the action, less
   that with shuffled actions.
2. Of those at most four are chosen, one after another: by how much more of the discounted return of episodes left out
   the features themselves predict with it (stages from coarse to fine, with weights of cells and of actions), times
   that mutual information.
3. Where actions are many, those that change the chosen numbers and the reward alike, as far as a chi-squared test can
   tell, are one class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.cells import BYTES, Cells, Part
from linmdp.types import Array, BoolArray, IntArray

LAG = 2
"""Steps in which an action has moved what it moves."""
MOVED = 0.005
"""Nats by which the change of a number must tell the action."""
SHUFFLES = 3
MOST_CANDIDATES, MOST_CHOSEN = 32, 4
RETURN_DISCOUNT = 0.8
"""Of the return that is predicted: longer ones are mostly noise in random play."""
LAM = 5.0
"""Imagined samples of each cell, in the choice."""
FOLDS = 5
ALIKE = 4.0
"""The normal deviate beyond which two actions differ."""
FEW_ACTIONS, MANY_ACTIONS = 9, 64
"""With so few actions there is little to be gained from classes, and with more than the second it takes long."""
SPARE = 16
"""Cells of a hashed group, at least this times those seen in random play."""
LEAST_CELLS, MOST_CELLS = 256, 1 << 16


class Played(NamedTuple):
    """Steps of random play, n in all, in the order in which they were seen.

    states : (n, k) whole numbers, of which the last is the step; actions, episode : (n,); rewards : (n,)
    """

    states: IntArray
    actions: IntArray
    rewards: Array
    episode: IntArray

    def within(self, lag: int) -> IntArray:
        """Rows that are followed by `lag` more of their episode."""
        return np.flatnonzero(self.episode[:-lag] == self.episode[lag:])


Moment: TypeAlias = tuple[np.ndarray, int, float, int]
"""State, action, reward and episode of one step."""


def played(rows: Sequence[Moment]) -> Played:
    """Steps as they were played, one by one."""
    states, actions, rewards, episode = zip(*rows, strict=True)
    return Played(np.array(states, dtype=np.int64), np.array(actions), np.array(rewards), np.array(episode))


def fitted_cells(played: Played, A: int, rng: np.random.Generator) -> Cells:
    """The cells that random play suggests."""
    if len(np.unique(played.episode)) < FOLDS or len(played.within(LAG)) < FOLDS:
        raise InvalidData(
            f"Random play for cells must have at least {FOLDS} episodes of {LAG + 1} steps or more: raise 'warmup'. "
            f"Got {len(np.unique(played.episode))}."
        )
    told = moved(played, A, rng)
    chosen, explained = forward(played, told, A)
    classes = alike(played, chosen, A)
    groups = groups_of(chosen, played.states.shape[1])
    codes = [joint(played.states, group) for group in groups]
    sizes = [cells_for(group, code, played.states) for group, code in zip(groups, codes, strict=True)]
    found = {
        "steps": len(played.states),
        "moved": [[int(column), round(nats, 4)] for column, nats in told],
        "chosen": [int(column) for column in chosen],
        "explained": round(explained, 4),
        "seen": [int(code.max()) + 1 for code in codes],
    }
    return Cells(played.states.shape[1], groups, sizes, classes, found)


def cells_for(group: list[Part], code: IntArray, states: IntArray) -> int:
    """Cells of a group: every value of a number that stands alone, else some more than random play has seen."""
    if len(group) == 1:
        return max(BYTES, min(int(states[:, group[0].column].max()) + 1, MOST_CELLS))
    return int(np.clip(1 << (SPARE * int(code.max() + 1) - 1).bit_length(), LEAST_CELLS, MOST_CELLS))


def mutual_information(x: IntArray, y: IntArray, ny: int) -> float:
    """Of two samples of whole numbers from 0 on, in nats."""
    joint = np.bincount(x * ny + y, minlength=(int(x.max()) + 1) * ny).reshape(-1, ny) / len(x)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())


def changes(played: Played, column: int) -> IntArray:
    """How a number changes over LAG steps, as whole numbers from 0 on."""
    rows = played.within(LAG)
    change = played.states[rows + LAG, column] - played.states[rows, column]
    return np.unique(change, return_inverse=True)[1].ravel()


def moved(played: Played, A: int, rng: np.random.Generator) -> list[tuple[int, float]]:
    """Numbers that the action moves, with the nats that they tell of it; the most moved first."""
    actions = played.actions[played.within(LAG)]
    shuffled = [rng.permutation(actions) for _ in range(SHUFFLES)]
    told = []
    for column in range(played.states.shape[1] - 1):
        change = changes(played, column)
        if change.max() > 0:
            chance = sum(mutual_information(change, other, A) for other in shuffled) / SHUFFLES
            told.append((column, mutual_information(change, actions, A) - chance))
    told.sort(key=lambda item: -item[1])
    clear = [item for item in told if item[1] > MOVED]
    return (clear or told)[:MOST_CANDIDATES]


def groups_of(chosen: list[int], width: int) -> list[list[Part]]:
    """Groups from coarse to fine: step; first number; the others, alone and with it; all; all and half the step.

    The first 2 m groups of m numbers are the same whatever is chosen after them.
    """
    clock, parts = Part(width - 1), [Part(column) for column in chosen]
    groups = [[clock]]
    if parts:
        groups.append(parts[:1])
        for other in parts[1:]:
            groups += [[other], [parts[0], other]]
        if len(parts) > 2:
            groups.append(parts)
        groups.append([*parts, Part(width - 1, 1)])
    return groups


def joint(states: IntArray, group: list[Part]) -> IntArray:
    """The different combinations of a group's parts, numbered, (n,)."""
    code = np.zeros(len(states), dtype=np.int64)
    for column, shift in group:
        value = np.unique(states[:, column] >> shift, return_inverse=True)[1].ravel()
        code = np.unique(code * (int(value.max()) + 1) + value, return_inverse=True)[1].ravel()
    return code


def returns(played: Played) -> Array:
    """Discounted return from each row on, less its mean at that step."""
    total, step = np.zeros(len(played.rewards)), played.states[:, -1]
    following = 0.0
    for i in range(len(total) - 1, -1, -1):
        last = i + 1 == len(total) or played.episode[i + 1] != played.episode[i]
        following = played.rewards[i] + (0.0 if last else RETURN_DISCOUNT * following)
        total[i] = following
    mean = np.bincount(step, total) / np.maximum(np.bincount(step), 1)
    return np.asarray(total - mean[step])


class Stages:
    """Stages from coarse to fine, fitted to all episodes but those of one fold, for each fold."""

    def __init__(self, played: Played, A: int) -> None:
        self.y, self.actions, self.A, fold = returns(played), played.actions, A, played.episode % FOLDS
        self.held = [fold == i for i in range(FOLDS)]
        self.left = [self.y] * FOLDS

    def with_group(self, code: IntArray) -> Stages:
        """After one more group, whose cells the rows are in."""
        more = copy(self)
        more.left = [self._after(left, held, code) for left, held in zip(self.left, self.held, strict=True)]
        return more

    def _after(self, left: Array, held: BoolArray, code: IntArray) -> Array:
        for cell in (code, code * self.A + self.actions):
            n, fit = int(cell.max()) + 1, cell[~held]
            left = left - (np.bincount(fit, left[~held], n) / (np.bincount(fit, minlength=n) + LAM))[cell]
        return left

    def explained(self) -> float:
        """The share of the squared returns that they explain of the episodes left out of the fit."""
        unexplained = sum(float((left[held] ** 2).sum()) for left, held in zip(self.left, self.held, strict=True))
        return 1 - unexplained / float((self.y**2).sum())


def forward(played: Played, told: list[tuple[int, float]], A: int) -> tuple[list[int], float]:
    """Numbers chosen one after another while the returns of episodes left out are predicted better.

    What is gained with a number counts times the nats that it tells of the action: of two that predict the return
    alike, such as where a player is and where its last shot was fired, the one that the action moves is the one to act
    by. Where all returns are the same there is nothing to predict, and the first candidates are taken.
    """
    width, chosen, stages = played.states.shape[1], list[int](), Stages(played, A)
    if not stages.y.any():
        return [column for column, _ in told[:MOST_CHOSEN]], 0.0
    coarse = stages.with_group(joint(played.states, [Part(width - 1)]))
    best = coarse.explained()
    while len(chosen) < MOST_CHOSEN:
        tried, known = list[tuple[float, int, int, float]](), max(1, 2 * len(chosen))
        for column, nats in ((c, nats) for c, nats in told if c not in chosen):
            stages = coarse
            for group in groups_of([*chosen, column], width)[known:]:
                stages = stages.with_group(joint(played.states, group))
            explained = stages.explained()
            tried.append(((explained - best) * max(nats, MOVED), -len(tried), column, explained))
        if not tried or max(tried)[0] <= 0:
            break
        *_, column, best = max(tried)
        chosen.append(column)
        for group in groups_of(chosen, width)[known : 2 * len(chosen)]:
            coarse = coarse.with_group(joint(played.states, group))
    return chosen or [told[0][0]], best


def alike(played: Played, chosen: list[int], A: int) -> IntArray:
    """Classes of actions, (A,): the two that differ least become one until all differ.

    If that leaves one class alone they stay apart: else nothing could be learned.
    """
    if not FEW_ACTIONS < A <= MANY_ACTIONS:
        return np.arange(A)
    rows = played.within(LAG)
    actions = played.actions[rows]
    paid = np.unique(sum(played.rewards[rows + i] for i in range(LAG)), return_inverse=True)[1].ravel()
    outcomes = [*(changes(played, column) for column in chosen), paid]
    tables = list[Array]()
    for outcome in outcomes:
        n = int(outcome.max()) + 1
        tables.append(np.bincount(actions * n + outcome, minlength=A * n).reshape(A, n).astype(np.float64))
    members = [[a] for a in range(A)]
    while len(members) > 1:
        pairs = ((differ(tables, i, j), i, j) for j in range(len(members)) for i in range(j))
        least, i, j = min(pairs)
        if least > ALIKE:
            break
        members[i] += members.pop(j)
        for t, table in enumerate(tables):
            table[i] += table[j]
            tables[t] = np.delete(table, j, axis=0)
    if len(members) == 1:
        return np.arange(A)
    classes = np.zeros(A, dtype=np.int64)
    for number, group in enumerate(members):
        classes[group] = number
    return classes


def differ(tables: list[Array], i: int, j: int) -> float:
    """How far apart two rows of counts are, the most of all tables: chi squared as a normal deviate.

    The cube root of chi squared is nearly normal (Wilson and Hilferty).
    """
    most = -math.inf
    for table in tables:
        one, two = table[i], table[j]
        rare = one + two < FOLDS
        one, two = (np.append(x[~rare], x[rare].sum()) for x in (one, two))
        there, n, m = one + two > 0, one.sum(), two.sum()
        if not n or not m:
            continue
        apart = (math.sqrt(m / n) * one - math.sqrt(n / m) * two)[there] ** 2 / (one + two)[there]
        free = max(int(there.sum()) - 1, 1)
        spread = 2 / (9 * free)
        most = max(most, ((float(apart.sum()) / free) ** (1 / 3) - (1 - spread)) / math.sqrt(spread))
    return most


def described(cells: Cells, names: list[str] | None = None) -> list[str]:
    """What was found, in a few lines; `names` are those of the actions."""
    found: dict[str, Any] = cells.found
    names = names or [str(a) for a in range(cells.A)]
    merged = [[names[a] for a in np.flatnonzero(cells.classes == c)] for c in range(cells.C)]
    told = dict(found.get("moved", []))
    numbers = ", ".join(f"{column} ({told.get(column, 0.0):.3f} nats)" for column in found.get("chosen", []))
    return [
        f"cells of {len(cells.columns)} of {cells.width - 1} numbers, and of the step: {numbers}",
        f"{len(told)} numbers are moved by the action; the chosen ones explain {found.get('explained', 0.0):.1%} "
        f"of the returns of {found.get('steps', 0):,} steps of random play, in episodes left out",
        f"{cells.G} groups of {', '.join(str(n) for n in cells.sizes)} cells, of which random play saw "
        f"{', '.join(str(n) for n in found.get('seen', []))}",
        f"{cells.C} classes of {cells.A} actions: {'; '.join(' '.join(group) for group in merged)}",
    ]
