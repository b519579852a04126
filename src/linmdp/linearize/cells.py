"""Cells from a dataset: which numbers of an observation the action moves, as a file for `features=cells,model=FILE`."""

from __future__ import annotations

import numpy as np

from linmdp.errors import InvalidData
from linmdp.features.cell_choice import Played, fitted_cells
from linmdp.features.cells import Cells
from linmdp.linearize.data import Dataset


def cells_of_dataset(data: Dataset, seed: int) -> Cells:
    """The cells that the transitions suggest, which must be of random play."""
    return fitted_cells(played_in(data), data.A, np.random.default_rng(seed))


def played_in(data: Dataset) -> Played:
    """The transitions as steps of play, with the step as the last number of a state."""
    states = data.states.astype(np.int64)
    if not np.array_equal(states, data.states):
        raise InvalidData(f"Observations of '{data.env_id}' must be whole numbers for cells. Got others.")
    numbers = np.column_stack((states, data.step.astype(np.int64)))
    return Played(numbers, data.actions.astype(np.int64), data.rewards.astype(np.float64), data.episode)
