"""Space invaders on a small board, in the manner of MinAtar.

The player in the last row moves left or right, stays, or shoots if no shot of it is in the air. A block of aliens moves
to a side with some chance a step; at the edge it comes down by a row and turns round. At random, the lowest alien
of a column shoots. Shots move by a cell in each step. To hit an alien pays; to be hit, or an alien in the last row,
ends the episode. When all aliens are gone there are new ones. Shown are planes of zeros and ones: the player, the
aliens, the aliens if they move to the left, the same for the right, the player's shot, and theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.boards import Board, first_move, hand_best
from linmdp.types import BoolArray


class Invaders(Board):
    """One board."""

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
        """Player, aliens, where these go, the shots."""
        aliens = list(zip(*self.aliens.nonzero(), strict=True))
        left, right = (aliens, []) if self.way < 0 else ([], aliens)
        return [[(self.rows - 1, self.player)], aliens, left, right, [self.shot], self.shots]

    def policy(self) -> int:
        """Keep away from shots, stay under the aliens, and shoot where one will be."""
        bottom, T = self.rows - 1, self.rows
        under = np.any(self.aliens, axis=0)
        pay = np.zeros((T, 1, self.columns))
        if under.any():
            ahead = np.flatnonzero(under) + self.way * self.steps * 2
            pay[:, 0] = -0.02 * np.abs(np.arange(self.columns)[:, None] - ahead[None]).min(axis=1)
        for row, column in self.shots:
            if row < bottom:
                pay[bottom - row - 1, 0, column] -= 10
        best = first_move(pay, (0, self.player), ((0, -1), (0, 0), (0, 1)))
        depth = bottom - 1 - max(np.flatnonzero(self.aliens.any(axis=1)), default=0)
        goes = self.player - round(self.way * self.steps * depth)  # the alien that will be here is there now
        worth = under[self.player] or (0 <= goes < self.columns and under[goes])
        safe = not any(row == bottom - 1 and column == self.player for row, column in self.shots)
        what = 3 if self.shot[0] < 0 and worth and safe else best
        return int(np.flatnonzero(self.order == what)[0])


FAMILY = Family(name="invaders", half="kept", make=Invaders, H=100, episodes=runs(75), best=hand_best)
