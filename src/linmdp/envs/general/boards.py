"""Games on boards of zeros and ones whose transitions are known."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Outcomes, TableInstance, explored, family, runs
from linmdp.types import IntArray


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
