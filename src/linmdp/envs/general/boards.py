"""Boards of bit planes, in the manner of MinAtar on smaller boards, and planning among things whose way is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, mean_return
from linmdp.types import Array, IntArray

Move = tuple[int, int]
"""Rows down and columns to the right."""


class Board(Instance):
    """A game on a board that is seen as planes of zeros and ones, (rows, columns, planes), and can play itself well."""

    def __init__(self, *, H: int, A: int, rows: int, columns: int, planes: int, ends: bool) -> None:
        self.rows, self.columns, self.planes = rows, columns, planes
        super().__init__(H=H, A=A, space=spaces.MultiBinary((rows, columns, planes)), ends=ends)

    @abstractmethod
    def things(self) -> list[Sequence[tuple[int, int]]]:
        """The cells (row, column) of each plane; those that are not on the board are left out."""

    @abstractmethod
    def policy(self) -> int:
        """A good action, made by hand."""

    def show(self) -> Any:
        """The planes."""
        board = np.zeros((self.rows, self.columns, self.planes), np.int8)
        for plane, cells in enumerate(self.things()):
            for row, column in cells:
                if 0 <= row < self.rows and 0 <= column < self.columns:
                    board[row, column, plane] = 1
        return board


def hand_best(env: Any) -> float:
    """What the policy made by hand earns, by play."""
    return mean_return(env, lambda env: env.policy(), 100)


@cache
def _reached(rows: int, columns: int, moves: tuple[Move, ...]) -> IntArray:
    """The cell that each move leads to from each cell, (moves, cells); the edge holds whoever would leave the board."""
    row, column = np.indices((rows, columns))
    to = [(np.clip(row + down, 0, rows - 1), np.clip(column + right, 0, columns - 1)) for down, right in moves]
    return np.array([np.ravel_multi_index(cell, (rows, columns)).ravel() for cell in to])


def first_move(pay: Array, at: tuple[int, int], moves: tuple[Move, ...], last: Array | float = 0.0) -> int:
    """The best first move on a board where being in a cell at a time pays; a fine of more than 1 ends the walk.

    Parameters
    ----------
    pay : (T, rows, columns), what it pays to be in a cell after step t, as far as that is known
    at : the cell at the start
    last : (rows, columns), what it is worth to be in a cell after all steps
    """
    T, rows, columns = pay.shape
    near, pay = _reached(rows, columns, moves), pay.reshape(T, -1)
    worth = pay[-1] + np.broadcast_to(last, (rows, columns)).ravel()
    for t in reversed(range(T - 1)):
        worth = pay[t] + 0.97 * (pay[t] > -1) * worth[near].max(axis=0)
    return int(worth[near[:, at[0] * columns + at[1]]].argmax())
