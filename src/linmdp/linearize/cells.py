"""Cells from a dataset: which numbers of an observation the action moves, as a file for `features=cells,model=FILE`."""

from __future__ import annotations

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.cell_choice import LAG, Played, fitted_cells, moved
from linmdp.features.cells import Cells
from linmdp.linearize.data import Dataset
from linmdp.types import BoolArray


def cells_of_dataset(data: Dataset, seed: int) -> Cells:
    """The cells that the transitions suggest, which must be of random play."""
    return fitted_cells(played_in(data, "cells"), data.A, np.random.default_rng(seed))


def moved_inputs(data: Dataset, seed: int) -> BoolArray:
    """Which inputs of the networks belong to numbers that the action moves, (inputs,)."""
    played = played_in(data, "'controlled'")
    if not len(played.within(LAG)):
        raise InvalidData(f"Episodes of '{data.env_id}' must have at least {LAG + 1} steps for 'controlled'.")
    columns = {column for column, _ in moved(played, data.A, np.random.default_rng(seed))}
    widths = [width for kind, n in data.layout for width in ([1] * n if kind == "box" else [n])]
    return np.repeat([column in columns for column in range(len(widths))], widths)


def played_in(data: Dataset, what: str) -> Played:
    """The transitions as steps of play, with the step as the last number of a state."""
    states = data.states.astype(np.int64)
    if not np.array_equal(states, data.states):
        raise InvalidData(f"Observations of '{data.env_id}' must be whole numbers for {what}. Got others.")
    numbers = np.column_stack((states, data.step.astype(np.int64)))
    return Played(numbers, data.actions.astype(np.int64), data.rewards.astype(np.float64), data.episode)
