"""Breakout on a small board, in the manner of MinAtar.

A paddle in the last row moves left, right or stays. The ball moves by a cell along a diagonal in each step and turns
round at the walls, at the ceiling, at a brick, which goes away and pays, and above the paddle: it goes on to the same
side if the paddle is under it, and straight back if the paddle is where it would have come down. Whoever misses the
ball has lost; in some instances it is served again instead. A miss costs a fine in some instances. When all bricks are
gone there are new ones. At the start the ball is under the bricks, in a random column. Shown are planes of zeros and
ones: the paddle, the ball, where the ball has been, and the bricks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.boards import Board, hand_best
from linmdp.types import BoolArray

LANDINGS = 3
"""How often the ball comes down within the sight of the policy made by hand."""


class Ball(NamedTuple):
    """Its cell, and its way along the diagonal."""

    row: int
    column: int
    down: int
    right: int


class Breakout(Board):
    """One board."""

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
        """Paddle, ball, where the ball was, bricks."""
        return [
            [(self.rows - 1, self.paddle)],
            [self.ball[:2]],
            [self.been],
            list(zip(*self.bricks.nonzero(), strict=True)),
        ]

    def promise(self, ball: Ball, bricks: BoolArray, paddle: int, landings: int) -> tuple[float, int]:
        """The bricks that can be hit until the ball has come down so often, and where to be the first time."""
        hits, steps, bricks = 0.0, 1, bricks.copy()
        while (landing := self.landing(ball)) is None:
            ball, hit = self.fly(ball, bricks)
            hits, steps = hits + hit * 0.98**steps, steps + 1
        chances = []
        for at in landing:
            if abs(at - paddle) > steps:
                chances.append((-10.0, at))
            elif landings == 1:
                chances.append((hits, at))
            else:
                later, _ = self.promise(self.caught(ball, at), bricks, at, landings - 1)
                chances.append((hits + 0.98**steps * later, at))
        return max(chances)

    def policy(self) -> int:
        """Be where the ball comes down, on the side that promises more."""
        _, goal = self.promise(self.ball, self.bricks, self.paddle, LANDINGS)
        return int(np.flatnonzero(self.order == np.sign(goal - self.paddle))[0])


FAMILY = Family(name="breakout", half="made", make=Breakout, H=100, episodes=runs(75), best=hand_best)
