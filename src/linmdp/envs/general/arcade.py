"""Games on boards of zeros and ones: catch and freeway, whose transitions are known, and others of MinAtar's kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, Outcomes, TableInstance, explored, family, runs
from linmdp.types import BoolArray, IntArray


@family("catch", "made", H=21, episodes={"quick": 160, "full": 400})
def catch(rng: np.random.Generator) -> TableInstance:
    """Catch: a ball falls down a board, and a paddle at the bottom moves left, stays or moves right.

    The board is of four to eight rows and columns and is seen as zeros and ones: the ball is a one, and so is each cell
    of the paddle, which is one or two cells wide. In some instances wind moves the ball to a side at random. When the
    ball arrives at the last row it pays if the paddle is there and costs if not, and the next ball falls from a random
    column; an episode is one to three balls.
    """
    rows, columns = int(rng.integers(5, 9)), int(rng.integers(4, 8))
    wide, balls = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    wind = float(rng.choice([0.0, 0.1, 0.3]))
    won = float(rng.choice([1.0, 10.0]))
    lost = -won * float(rng.choice([0.0, 1.0]))
    order = rng.permutation([-1, 0, 1])

    def outcomes(state: tuple[int, int, int], action: int) -> Outcomes:
        row, ball, paddle = state
        paddle = min(max(paddle + int(order[action]), 0), columns - wide)
        for side, p in ((0, 1 - wind), (-1, wind / 2), (1, wind / 2)):
            at = min(max(ball + side, 0), columns - 1)
            if row + 1 < rows - 1:
                yield p, (row + 1, at, paddle), 0.0
            else:
                reward = won if paddle <= at < paddle + wide else lost
                yield from ((p / columns, (0, new, paddle), reward) for new in range(columns))

    middle = (columns - wide) // 2
    start = {(0, ball, middle): 1 / columns for ball in range(columns)}
    model, states = explored(start, 3, balls * (rows - 1), outcomes)
    boards = np.zeros((len(states), rows, columns), np.float32)
    for board, (row, ball, paddle) in zip(boards, states, strict=True):
        board[row, ball] = 1
        board[rows - 1, paddle : paddle + wide] = 1
    flat = bool(rng.random() < 0.3)
    shown = boards.reshape(len(states), -1) if flat else boards
    space = spaces.Box(0, 1, shown.shape[1:], np.float32)
    return TableInstance(model, space=space, shown=lambda s: shown[s].copy(), ends=bool(rng.random() < 0.5))


PERIODS = (1, 2, 3)
"""Steps in which a car moves by a cell."""


def road(rng: np.random.Generator) -> TableInstance:
    """Draw a road, whatever it is worth."""
    lanes, columns = int(rng.integers(3, 6)), int(rng.integers(5, 9))
    period, side = rng.choice(PERIODS, lanes), rng.choice([-1, 1], lanes)
    first, shift = rng.integers(columns, size=(lanes, 1)), rng.integers(6, size=lanes)
    first = np.hstack([first, first + rng.choice([0, columns // 2], (lanes, 1))])
    middle, cycle = columns // 2, 6 * columns  # after which all cars are where they were
    unit, fine = float(rng.choice([1.0, 5.0])), float(rng.choice([0.0, 0.2]))
    order, H = rng.permutation([-1, 0, 1]), int(rng.integers(40, 81))

    def cars(time: int) -> IntArray:
        """The columns of the two cars of each lane, (lanes, 2); one car counts twice."""
        now: IntArray = (first + (side * ((time + shift) // period))[:, None]) % columns
        return now

    # row 0 is the top, row lanes + 1 the bottom
    def outcomes(state: tuple[int, int], action: int) -> Outcomes:
        row, time = state
        row = min(max(row + int(order[action]), 0), lanes + 1)
        later, bottom = (time + 1) % cycle, lanes + 1
        if row == 0:
            return [(1.0, (bottom, later), unit)]
        if row <= lanes and middle in (*cars(time)[row - 1], *cars(later)[row - 1]):
            return [(1.0, (bottom, later), -fine * unit)]
        return [(1.0, (row, later), 0.0)]

    start = {(lanes + 1, time): 1 / cycle for time in range(cycle)}
    model, states = explored(start, 3, H, outcomes)
    boards = np.zeros((len(states), lanes + 2, columns, 1 + max(PERIODS)), np.int8)
    for board, (row, time) in zip(boards, states, strict=True):
        board[row, middle, 0] = 1
        moves_in = period - (time + shift) % period
        board[1 + np.arange(lanes)[:, None], cars(time), moves_in[:, None]] = 1
    space = spaces.MultiBinary(boards.shape[1:])
    return TableInstance(model, space=space, shown=lambda s: boards[s].copy(), ends=bool(rng.random() < 0.5))


@family("freeway", "kept", H=80, episodes=runs(80))
def freeway(rng: np.random.Generator) -> TableInstance:
    """Freeway: cross some lanes of cars, again and again, in the manner of MinAtar on a smaller board.

    A chicken in the middle column moves up, down or stays. Each lane between the first and the last row has one or two
    cars that drive left or right, by a cell in each one, two or three steps, and come in again at the other side.
    Whoever is hit starts again at the bottom, for a fine in some instances; to arrive at the top pays, and starts again
    too. Shown are planes of zeros and ones: the chicken, and the cars by the steps until they move next. Where the cars
    are at the start is drawn anew for each episode, with the distances between them as they always are. Roads that
    nobody can cross, or that anybody can cross without looking, are drawn again.
    """
    while True:
        env = road(rng)
        best, uniform, constant = env.model.values()
        if best >= 3 * env.model.reward.max() and constant.max() - uniform < 0.8 * (best - uniform):
            return env


class Board(Instance):
    """A game on a board that is seen as planes of zeros and ones, (rows, columns, planes)."""

    def __init__(self, *, H: int, A: int, rows: int, columns: int, planes: int, ends: bool) -> None:
        self.rows, self.columns, self.planes = rows, columns, planes
        super().__init__(H=H, A=A, space=spaces.MultiBinary((rows, columns, planes)), ends=ends)

    @abstractmethod
    def things(self) -> list[Sequence[tuple[int, int]]]:
        """The cells (row, column) of each plane; those that are not on the board are left out."""

    def show(self) -> Any:
        board = np.zeros((self.rows, self.columns, self.planes), np.int8)
        for plane, cells in enumerate(self.things()):
            for row, column in cells:
                if 0 <= row < self.rows and 0 <= column < self.columns:
                    board[row, column, plane] = 1
        return board


MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0))


@dataclass
class Thing:
    """What crosses the board in a row."""

    row: int
    column: int
    way: int
    treasure: bool


@family("asterix", "kept", H=100, episodes=runs(75))
class Asterix(Board):
    """Asterix on a small board, in the manner of MinAtar.

    The player moves left, right, up, down or stays. Treasures and enemies come in from the left or the right at random,
    at most one in each row but the first and the last, and cross the board by a cell in each one or two steps. To touch
    a treasure pays; to touch an enemy ends the episode, or costs a fine in some instances. Shown are planes of zeros
    and ones: the player, the enemies, the treasures, and the cells that were just left, which tell directions.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.period, self.comes = int(rng.integers(1, 3)), rng.uniform(0.15, 0.5)
        self.share, self.deadly = rng.uniform(0.3, 0.6), bool(rng.random() < 0.6)
        self.unit, self.fine = float(rng.choice([1.0, 10.0])), rng.uniform(0.5, 2.0)
        self.moves = tuple(MOVES[i] for i in rng.permutation(5))
        rows, columns = int(rng.integers(5, 8)), int(rng.integers(5, 9))
        H, ends = int(rng.integers(40, 101)), bool(rng.random() < 0.5)
        super().__init__(H=H, A=5, rows=rows, columns=columns, planes=4, ends=ends)
        self.crossing: list[Thing] = []

    def begin(self) -> None:
        """The player in the middle of an empty board."""
        self.player = self.rows // 2, self.columns // 2
        self.crossing, self.time = [], 0

    def touched(self) -> tuple[float, bool]:
        """What is paid for what is where the player is, and whether that is the end."""
        reward, over = 0.0, False
        for thing in [t for t in self.crossing if (t.row, t.column) == self.player]:
            self.crossing.remove(thing)
            if thing.treasure:
                reward += self.unit
            elif self.deadly:
                over = True
            else:
                reward -= self.fine * self.unit
        return reward, over

    def move(self, action: int) -> tuple[float, bool]:
        """Move the player, then the others, then let one more in."""
        (row, column), (down, right) = self.player, self.moves[action]
        self.player = min(max(row + down, 0), self.rows - 1), min(max(column + right, 0), self.columns - 1)
        reward, over = self.touched()
        self.time += 1
        if self.time % self.period == 0:
            for thing in self.crossing:
                thing.column += thing.way
            self.crossing = [t for t in self.crossing if 0 <= t.column < self.columns]
            more, end = self.touched()
            reward, over = reward + more, over or end
        free = set(range(1, self.rows - 1)) - {t.row for t in self.crossing}
        if free and self.np_random.random() < self.comes:
            row = sorted(free)[self.np_random.integers(len(free))]
            way = 1 if self.np_random.random() < 0.5 else -1
            column = 0 if way > 0 else self.columns - 1
            if (row, column) != self.player:
                self.crossing.append(Thing(row, column, way, bool(self.np_random.random() < self.share)))
        return reward, over

    def things(self) -> list[Sequence[tuple[int, int]]]:
        moved = self.time % self.period == 0
        return [
            [self.player],
            [(t.row, t.column) for t in self.crossing if not t.treasure],
            [(t.row, t.column) for t in self.crossing if t.treasure],
            [(t.row, t.column - t.way) for t in self.crossing if moved],
        ]


class Ball(NamedTuple):
    """Its cell, and its way along the diagonal."""

    row: int
    column: int
    down: int
    right: int


@family("breakout", "made", H=100, episodes=runs(75))
class Breakout(Board):
    """Breakout on a small board, in the manner of MinAtar.

    A paddle in the last row moves left, right or stays. The ball moves by a cell along a diagonal in each step and
    turns round at the walls, at the ceiling, at a brick, which goes away and pays, and above the paddle: it goes on to
    the same side if the paddle is under it, and straight back if the paddle is where it would have come down. Whoever
    misses the ball has lost; in some instances it is served again instead. A miss costs a fine in some instances. When
    all bricks are gone there are new ones. At the start the ball is under the bricks, in a random column. Shown are
    planes of zeros and ones: the paddle, the ball, where the ball has been, and the bricks.
    """

    bricks: BoolArray

    def __init__(self, rng: np.random.Generator) -> None:
        self.layers, self.serves = int(rng.integers(1, 4)), bool(rng.random() < 0.4)
        self.unit, self.fine = float(rng.choice([1.0, 7.0])), float(rng.choice([0.0, 1.0]))
        self.order = rng.permutation([-1, 0, 1])
        rows, columns = self.layers + int(rng.integers(5, 7)), int(rng.integers(5, 9))
        H, ends = int(rng.integers(50, 101)), bool(rng.random() < 0.5)
        super().__init__(H=H, A=3, rows=rows, columns=columns, planes=4, ends=ends)

    def begin(self) -> None:
        """All bricks, and a ball under them."""
        self.bricks = np.zeros((self.rows, self.columns), np.bool_)
        self.bricks[1 : 1 + self.layers] = True
        self.paddle = self.columns // 2
        self.serve()

    def serve(self) -> None:
        """Put the ball into a random column, on its way down."""
        row, column = 1 + self.layers, int(self.np_random.integers(self.columns))
        self.ball, self.been = Ball(row, column, 1, 1 if self.np_random.random() < 0.5 else -1), (row, column)

    def fly(self, ball: Ball, bricks: BoolArray) -> tuple[Ball, bool]:
        """The ball after a step over the paddle, and whether it hit a brick, which is gone then."""
        row, column, down, right = ball
        if not 0 <= column + right < self.columns:
            right = -right
        if row + down < 0:
            return Ball(row, column + right, 1, right), False
        if bricks[row + down, column + right]:
            bricks[row + down, column + right] = False
            return Ball(row, column + right, -down, right), True
        return Ball(row + down, column + right, down, right), False

    def landing(self, ball: Ball) -> tuple[int, int] | None:
        """Where a ball that arrives at the last row is caught so that it goes on, and so that it goes straight back."""
        if ball.row + ball.down < self.rows - 1:
            return None
        side = ball.column + ball.right
        return ball.column, side if 0 <= side < self.columns else ball.column - ball.right

    def caught(self, ball: Ball, paddle: int) -> Ball:
        """The ball after it was caught there."""
        column, side = self.landing(ball) or (0, 0)
        right = side - column
        return Ball(ball.row, side, -1, -right if paddle == side else right)

    def move(self, action: int) -> tuple[float, bool]:
        """Move the paddle, then the ball."""
        self.paddle = min(max(self.paddle + int(self.order[action]), 0), self.columns - 1)
        landing = self.landing(self.ball)
        if landing and self.paddle not in landing:
            self.serve()
            return -self.fine * self.unit, not self.serves
        self.been = self.ball[:2]
        if landing is None:
            self.ball, hit = self.fly(self.ball, self.bricks)
            return self.unit * hit, False
        self.ball = self.caught(self.ball, self.paddle)
        if not self.bricks.any():
            self.bricks[1 : 1 + self.layers] = True
        return 0.0, False

    def things(self) -> list[Sequence[tuple[int, int]]]:
        return [
            [(self.rows - 1, self.paddle)],
            [self.ball[:2]],
            [self.been],
            list(zip(*self.bricks.nonzero(), strict=True)),
        ]


@family("invaders", "kept", H=100, episodes=runs(75))
class Invaders(Board):
    """Space invaders on a small board, in the manner of MinAtar.

    The player in the last row moves left or right, stays, or shoots if no shot of it is in the air. A block of aliens
    moves to a side with some chance a step; at the edge it comes down by a row and turns round. At random, the lowest
    alien of a column shoots. Shots move by a cell in each step. To hit an alien pays; to be hit, or an alien in the
    last row, ends the episode. When all aliens are gone there are new ones. Shown are planes of zeros and ones: the
    player, the aliens, the aliens if they move to the left, the same for the right, the player's shot, and theirs.
    """

    aliens: BoolArray

    def __init__(self, rng: np.random.Generator) -> None:
        rows, columns = int(rng.integers(6, 9)), int(rng.integers(5, 9))
        self.block = int(rng.integers(1, 4)), int(rng.integers(2, columns - 1))
        self.steps, self.shoots = rng.uniform(0.2, 0.6), rng.uniform(0.05, 0.4)
        self.unit, self.order = float(rng.choice([1.0, 10.0])), rng.permutation(4)  # left, stay, right, shoot
        H, ends = int(rng.integers(50, 101)), bool(rng.random() < 0.5)
        super().__init__(H=H, A=4, rows=rows, columns=columns, planes=6, ends=ends)

    def begin(self) -> None:
        """A full block at the top."""
        self.player, self.shot, self.shots = self.columns // 2, (-1, 0), list[tuple[int, int]]()
        self.land()

    def land(self) -> None:
        """A new block, on its way to either side."""
        self.aliens = np.zeros((self.rows, self.columns), np.bool_)
        self.aliens[: self.block[0], : self.block[1]] = True
        self.way = 1
        if self.np_random.random() < 0.5:
            self.aliens, self.way = self.aliens[:, ::-1].copy(), -1

    def march(self) -> None:
        """Move the block aside, or down at the edge."""
        if self.aliens[:, 0 if self.way < 0 else -1].any():
            self.aliens, self.way = np.roll(self.aliens, 1, axis=0), -self.way
        else:
            self.aliens = np.roll(self.aliens, self.way, axis=1)

    def hit(self) -> float:
        """Whether the player's shot is where an alien is; both go away then."""
        if self.shot[0] < 0 or not self.aliens[self.shot]:
            return 0.0
        self.aliens[self.shot], self.shot = False, (-1, 0)
        return self.unit

    def move(self, action: int) -> tuple[float, bool]:
        """The player, the shots, the aliens."""
        what, bottom = int(self.order[action]), self.rows - 1
        if what < 3:
            self.player = min(max(self.player + what - 1, 0), self.columns - 1)
        elif self.shot[0] < 0:
            self.shot = bottom, self.player
        if self.shot[0] >= 0:
            self.shot = self.shot[0] - 1, self.shot[1]
        reward = self.hit()
        self.shots = [(row + 1, column) for row, column in self.shots if row < bottom]
        if self.np_random.random() < self.steps:
            self.march()
            reward += self.hit()
        columns = np.flatnonzero(self.aliens.any(axis=0))
        if len(columns) and self.np_random.random() < self.shoots:
            column = int(columns[self.np_random.integers(len(columns))])
            self.shots.append((int(np.flatnonzero(self.aliens[:, column])[-1]) + 1, column))
        over = (bottom, self.player) in self.shots or bool(self.aliens[bottom].any())
        if not self.aliens.any():
            self.land()
        return reward, over

    def things(self) -> list[Sequence[tuple[int, int]]]:
        aliens = list(zip(*self.aliens.nonzero(), strict=True))
        left, right = (aliens, []) if self.way < 0 else ([], aliens)
        return [[(self.rows - 1, self.player)], aliens, left, right, [self.shot], self.shots]
