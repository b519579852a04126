"""Asterix on a small board, in the manner of MinAtar.

The player moves left, right, up, down or stays. Treasures and enemies come in from the left or the right at random, at
most one in each row but the first and the last, and cross the board by a cell in each one or two steps. To touch
a treasure pays; to touch an enemy ends the episode, or costs a fine in some instances. Shown are planes of zeros and
ones: the player, the enemies, the treasures, and the cells that were just left, which tell directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.boards import Board, first_move, hand_best

MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0))


@dataclass
class Thing:
    """What crosses the board in a row."""

    row: int
    column: int
    way: int
    treasure: bool


class Asterix(Board):
    """One board."""

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
        """Player, enemies, treasures, what was just left."""
        moved = self.time % self.period == 0
        return [
            [self.player],
            [(t.row, t.column) for t in self.crossing if not t.treasure],
            [(t.row, t.column) for t in self.crossing if t.treasure],
            [(t.row, t.column - t.way) for t in self.crossing if moved],
        ]

    def policy(self) -> int:
        """Plan as if nobody else came in."""
        T = self.period * self.columns
        pay = np.full((T, self.rows, self.columns), 0.0)
        pay[:, 1:-1, [0, -1]] -= 0.02  # somebody may come in here
        for t in self.crossing:
            worth, at = (1.0 if t.treasure else -10.0 if self.deadly else -1.0 - self.fine), t.column
            for step in range(T):
                if at == self.columns or at < 0:
                    break
                pay[step, t.row, at] += worth
                if (self.time + step + 1) % self.period == 0:
                    at += t.way
                    if 0 <= at < self.columns:
                        pay[step, t.row, at] += worth
        centre = -0.01 * np.abs(np.arange(self.columns) - (self.columns - 1) / 2)
        return first_move(pay, self.player, self.moves, centre)


FAMILY = Family(name="asterix", half="kept", make=Asterix, H=100, episodes=runs(75), best=hand_best)
