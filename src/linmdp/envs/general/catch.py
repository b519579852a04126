"""Catch: a ball falls down a board, and a paddle at the bottom moves left, stays or moves right.

The board is of four to eight rows and columns and is seen as zeros and ones: the ball is a one, and so is each cell of
the paddle, which is one or two cells wide. In some instances wind moves the ball to a side at random. When the ball
arrives at the last row it pays if the paddle is there and costs if not, and the next ball falls from a random column;
an episode is one to three balls.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, TableInstance
from linmdp.envs.general.explored import explored

State = tuple[int, int, int]
"""Row and column of the ball, first column of the paddle."""


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a board."""
    rows, columns = int(rng.integers(5, 9)), int(rng.integers(4, 8))
    wide, balls = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    wind = float(rng.choice([0.0, 0.1, 0.3]))
    won = float(rng.choice([1.0, 10.0]))
    lost = -won * float(rng.choice([0.0, 1.0]))
    order = rng.permutation([-1, 0, 1])

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        row, ball, paddle = state
        paddle = min(max(paddle + int(order[action]), 0), columns - wide)
        result: list[tuple[float, State | None, float]] = []
        for side, p in ((0, 1 - wind), (-1, wind / 2), (1, wind / 2)):
            at = min(max(ball + side, 0), columns - 1)
            if row + 1 < rows - 1:
                result.append((p, (row + 1, at, paddle), 0.0))
            else:
                reward = won if paddle <= at < paddle + wide else lost
                result += [(p / columns, (0, new, paddle), reward) for new in range(columns)]
        return result

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


FAMILY = Family(name="catch", half="made", make=make, H=21, episodes={"quick": 160, "full": 400})
