"""Grid worlds: walk to a goal around walls and pits, on ground that may be slippery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Outcomes, Table, TableInstance, family, runs, tabulated
from linmdp.types import IntArray

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
FREE, WALL, PIT, GOAL = range(4)
COLOURS = np.array([(200, 200, 200), (60, 60, 60), (200, 60, 40), (60, 180, 60)], dtype=np.uint8)
WALKER = np.array((40, 60, 220), dtype=np.uint8)
SHOWN = ("number", "pair", "floats", "board", "picture")


def drawn_cells(rng: np.random.Generator, rows: int, columns: int) -> tuple[IntArray, int]:
    """What is in each cell, (rows, columns), and the start: far from the goal, which can be reached over free cells."""
    while True:
        cells = rng.choice([FREE, WALL, PIT], p=[0.72, 0.16, 0.12], size=(rows, columns))
        start, goal = (int(i) for i in rng.choice(rows * columns, size=2, replace=False))
        cells.flat[start], cells.flat[goal] = FREE, GOAL
        far = abs(start // columns - goal // columns) + abs(start % columns - goal % columns)
        if far >= (rows + columns) // 2 and reachable(cells, start, goal):
            return cells, start


def reachable(cells: IntArray, start: int, goal: int) -> bool:
    """Whether free cells join start and goal."""
    columns, seen, edge = cells.shape[1], {start}, [start]
    while edge:
        at = edge.pop()
        for to in (walk(cells, at, a) for a in range(4)):
            if to == goal:
                return True
            if to not in seen and cells[to // columns, to % columns] == FREE:
                seen.add(to)
                edge.append(to)
    return False


def walk(cells: IntArray, at: int, action: int) -> int:
    """The cell that a step leads to; walls and edges stop it."""
    rows, columns = cells.shape
    row, column = at // columns + MOVES[action][0], at % columns + MOVES[action][1]
    inside = 0 <= row < rows and 0 <= column < columns
    return row * columns + column if inside and cells[row, column] != WALL else at


def shown_as(kind: str, cells: IntArray) -> tuple[spaces.Space[Any], Callable[[int], Any]]:
    """The space of the observations of that kind, and the observation of each cell."""
    rows, columns = cells.shape
    if kind == "number":
        return spaces.Discrete(rows * columns), int
    if kind == "pair":
        return spaces.MultiDiscrete([rows, columns]), lambda s: np.array(divmod(s, columns))
    if kind == "floats":
        places = np.argwhere(np.ones_like(cells)).astype(np.float32)
        if rows == 1:
            places = places[:, 1:]
        return spaces.Box(0 * places[-1], places[-1], dtype=np.float32), lambda s: places[s].copy()
    if kind == "board":
        boards = np.eye(rows * columns, dtype=np.float32).reshape(-1, rows, columns)
        return spaces.Box(0.0, 1.0, (rows, columns), np.float32), lambda s: boards[s].copy()
    pictures = np.repeat(COLOURS[cells][None], rows * columns, axis=0)
    pictures.reshape(rows * columns, -1, 3)[np.arange(rows * columns), np.arange(rows * columns)] = WALKER
    pictures = pictures.repeat(4, axis=1).repeat(4, axis=2)
    return spaces.Box(0, 255, pictures.shape[1:], np.uint8), lambda s: pictures[s].copy()


def drawn(
    rng: np.random.Generator, model: Table, kinds: Sequence[str], cells: IntArray, noises: Sequence[float], unit: float
) -> TableInstance:
    """Played from its table, shown in one of these ways, with one of these noises on rewards (in units)."""
    space, shown = shown_as(str(rng.choice(kinds)), cells)
    noise = float(rng.choice(noises)) * unit
    return TableInstance(model, space=space, shown=shown, noise=noise, ends=bool(rng.random() < 0.5))


def drawn_table(rng: np.random.Generator, cells: IntArray, start: int) -> Table:
    """The table of a grid with drawn slips and rewards."""
    slip = float(rng.choice([0.0, 0.1, 0.3]))
    unit = rng.uniform(0.5, 5.0)
    step = -unit * float(rng.choice([0.0, 0.02, 0.1]))
    goal, pit = unit * rng.uniform(0.5, 2.0), -unit * rng.choice([0.0, 0.5, 1.0])
    goal_ends, pit_ends = rng.random(2) < 0.7
    H, kinds = int(rng.integers(30, 81)), cells.ravel()

    def outcomes(s: int, a: int) -> Outcomes:
        for turn, chance in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
            to = walk(cells, s, (a + turn) % 4)
            if kinds[to] == GOAL:
                yield chance, None if goal_ends else start, step + goal
            elif kinds[to] == PIT:
                yield chance, None if pit_ends else start, step + pit
            else:
                yield chance, to, step

    return tabulated(cells.size, 4, H, start, outcomes)


@family("grids", "made", H=80, episodes=runs(50))
def grids(rng: np.random.Generator) -> TableInstance:
    """Grid worlds: walk to a goal around walls and pits, on ground that may be slippery.

    The state is a cell; actions are up, right, down and left. With the chance of a slip the walker goes to one of the
    two sides instead; at walls and edges it stays. A pit ends the episode, or costs and puts the walker back to its
    start; the goal pays and ends the episode, or pays and puts the walker back to its start, so that a day has many
    walks.
    """
    rows, columns = (int(n) for n in rng.integers(4, 8, size=2))
    while True:
        cells, start = drawn_cells(rng, rows, columns)
        model = drawn_table(rng, cells, start)
        best, uniform, constant = model.values()
        if best - max(constant) > 0.3 * (best - uniform) > 0:
            break
    return drawn(rng, model, SHOWN, cells, (0.0, 0.0, 0.1), (best - uniform) / 4)
