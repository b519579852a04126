"""What is not all seen: mazes with a door and its key, of which the surroundings are shown, and memory of one thing."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Outcomes, TableInstance, explored, family, runs
from linmdp.types import IntArray

FLOOR, WALL, KEY, DOOR, OPEN, GOAL, LAVA, SELF, BEARER = range(9)
AHEAD = ((-1, 0), (0, 1), (1, 0), (0, -1))
HASHES = 1 << 16


class Place(NamedTuple):
    """Where the walker is and looks, whether it has the key, whether the door is open."""

    row: int
    column: int
    facing: int = 0
    key: bool = False
    open: bool = False


def drawn_rooms(rng: np.random.Generator) -> tuple[IntArray, Place]:
    """The cells, with walls all around, and the start."""
    rows, near, far = (int(n) for n in rng.integers((2, 2, 1), (5, 4, 4)))
    cells = np.full((rows + 2, near + far + 3), WALL)
    cells[1:-1, 1 : near + 1] = cells[1:-1, near + 2 : -1] = FLOOR
    start, key = rng.choice(rows * near, size=2, replace=False)
    cells[1 + key // near, 1 + key % near] = KEY
    cells[1 + rng.integers(rows), near + 1] = DOOR
    goal = rng.integers(rows * far)
    cells[1 + goal // far, near + 2 + goal % far] = GOAL
    lava = rng.integers(rows * far)
    if rng.random() < 0.3 and lava != goal:
        cells[1 + lava // far, near + 2 + lava % far] = LAVA
    return cells, Place(1 + int(start) // near, 1 + int(start) % near, int(rng.integers(4)))


def there(cells: IntArray, s: Place, row: int, column: int) -> int:
    """What is in a cell now: the key may be taken, the door open."""
    what = int(cells[row, column])
    return FLOOR if what == KEY and s.key else OPEN if what == DOOR and s.open else what


def view(cells: IntArray, s: Place, size: int, steers: bool) -> IntArray:
    """The codes of the cells around, or ahead with the walker below in the middle, (size, size) of bytes."""
    half = size // 2
    now = np.array([[there(cells, s, r, c) for c in range(cells.shape[1])] for r in range(cells.shape[0])])
    now[s.row, s.column] = BEARER if s.key and not s.open else SELF
    wide = np.pad(now, size, constant_values=WALL)
    row, column = s.row + size, s.column + size
    if not steers:
        return wide[row - half : row + half + 1, column - half : column + half + 1].astype(np.uint8)
    window = np.rot90(wide[row - size + 1 : row + size, column - size + 1 : column + size], s.facing)
    return window[:size, size - 1 - half : size + half].astype(np.uint8)


@family("mazes", "kept", H=100, episodes=runs(75))
def mazes(rng: np.random.Generator) -> TableInstance:
    """Mazes with a door and its key, of which only the surroundings are seen.

    Two rooms are parted by a wall with a locked door; the key and the start are on the near side, the goal on the far
    side. The walker moves in four directions (walking over the key takes it, walking with it against the door opens
    it), or it steers: turn left, turn right, walk, use what is ahead. The goal ends the episode; lava, in some
    instances, does too.

    It sees the 3 x 3 or 5 x 5 cells around it, or ahead of it where it steers, as codes: a box of bytes, whole numbers
    one by one, or one number that is a hash of them all. Different places may look the same.
    """
    steers, size, idle = bool(rng.random() < 0.5), int(rng.choice([3, 5])), float(rng.choice([0.0, 0.0, 0.1]))
    unit = rng.uniform(0.5, 5.0)
    step, prize, found = -unit * float(rng.choice([0.0, 0.01])), unit, unit * float(rng.choice([0.0, 0.3]))
    H = int(rng.integers(50, 101))

    def outcomes(cells: IntArray, s: Place, a: int) -> list[tuple[float, Place | None, float]]:
        if steers and a < 2:
            turned = s._replace(facing=(s.facing + (3, 1)[a]) % 4)
            return [(1 - idle, turned, step), (idle, s, step)]
        facing = s.facing if steers else a
        uses, walks = (a == 3, a == 2) if steers else (True, True)
        row, column = s.row + AHEAD[facing][0], s.column + AHEAD[facing][1]
        after, what, pay = s, there(cells, s, row, column), step
        if what == KEY and uses:
            after, what, pay = s._replace(key=True), FLOOR, step + found
        elif what == DOOR and uses and s.key:
            after, what = s._replace(open=True), OPEN
        if walks and what in (GOAL, LAVA):
            return [(1 - idle, None, pay + prize * (what == GOAL)), (idle, s, step)]
        if walks and what in (FLOOR, OPEN):
            after = after._replace(row=row, column=column)
        return [(1 - idle, after, pay), (idle, s, step)]

    while True:
        cells, start = drawn_rooms(rng)
        model, places = explored({start: 1.0}, 4, H, partial(outcomes, cells))
        best, uniform, constants = model.values()
        if best > max(uniform, *constants) + 0.3 * unit:
            break
    views = [view(cells, s, size, steers) for s in places]
    space, shown = shown_as(str(rng.choice(["box", "codes", "hash"])), views)
    return TableInstance(model, space=space, shown=shown)


def shown_as(kind: str, views: list[IntArray]) -> tuple[spaces.Space[Any], Callable[[int], Any]]:
    """The space of the observations of that kind, and the observation of each state."""
    if kind == "box":
        return spaces.Box(0, BEARER, views[0].shape, np.uint8), lambda s: views[s].copy()
    if kind == "codes":
        sizes = np.full(views[0].size, BEARER + 1)
        return spaces.MultiDiscrete(sizes), lambda s: views[s].ravel().astype(np.int64)
    return spaces.Discrete(HASHES), lambda s: zlib.crc32(views[s].tobytes()) % HASHES


@family("umbrella", "memory", H=15, episodes=runs(15))
class Umbrella(TableInstance):
    """Memory of one thing: what was seen at the start decides what is right at another time.

    In half of the instances, in the manner of bsuite's umbrella, the first observation is a forecast, and what is taken
    at the first step is carried until the last one, which pays if it fits the forecast and costs if not; nothing that
    is done in between matters. What is carried stays visible, the forecast does not. In the other half the fitting
    action is asked for at the last step, so that whoever forgets can only guess. Each step between pays a random coin.
    Shown are the forecast (only at the first step; else 0), what is carried, the steps that are left, and some coins
    that tell nothing.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        H, A = int(rng.integers(3, 16)), int(rng.integers(2, 4))
        at = 0 if rng.random() < 0.5 else H - 1  # the step at which it is chosen
        won, order = float(rng.choice([1.0, 10.0])), rng.permutation(A) + 1
        lost = -won * float(rng.choice([0.0, 1.0]))

        def outcomes(state: tuple[int, int, int], action: int) -> Outcomes:
            h, forecast, carried = state
            if h == at:
                carried = int(order[action])
            if h < H - 1:
                return [(1.0, (h + 1, forecast, carried), 0.0)]
            return [(1.0, None, won if carried == forecast else lost)]

        model, self.states = explored({(0, f, 0): 1 / A for f in range(1, A + 1)}, A, H, outcomes)
        self.coins, self.coin = int(rng.integers(0, 5)), float(rng.choice([0.0, 0.1])) * won
        space = spaces.MultiDiscrete([A + 1, A + 1, H + 1, *[2] * self.coins])
        super().__init__(model, space=space)

    def move(self, action: int) -> tuple[float, bool]:
        reward, over = super().move(action)
        return reward if over else self.coin * float(1 - 2 * self.np_random.integers(2)), over

    def show(self) -> Any:
        h, forecast, carried = self.states[self.state]
        seen = [forecast if self.h == 0 else 0, carried, self.H - max(h, self.h)]
        return np.array([*seen, *self.np_random.integers(2, size=self.coins)])
