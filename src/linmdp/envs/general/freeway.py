"""Freeway: cross some lanes of cars, again and again, in the manner of MinAtar on a smaller board.

A chicken in the middle column moves up, down or stays. Each lane between the first and the last row has one or two
cars that drive left or right, by a cell in each one, two or three steps, and come in again at the other side. Whoever
is hit starts again at the bottom, for a fine in some instances; to arrive at the top pays, and starts again too. Shown
are planes of zeros and ones: the chicken, and the cars by the steps until they move next. Where the cars are at the
start is drawn anew for each episode, with the distances between them as they always are. Roads that nobody can cross,
or that anybody can cross without looking, are drawn again.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, TableInstance, runs
from linmdp.envs.general.explored import explored
from linmdp.types import IntArray

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
    def outcomes(state: tuple[int, int], action: int) -> list[tuple[float, tuple[int, int] | None, float]]:
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


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a road that can be crossed at least three times, and where always going up is not as good as looking."""
    while True:
        env = road(rng)
        best, uniform, constant = env.model.values()
        if best >= 3 * env.model.reward.max() and constant.max() - uniform < 0.8 * (best - uniform):
            return env


FAMILY = Family(name="freeway", half="kept", make=make, H=80, episodes=runs(80))
