"""Transitions as a file: what training reads, on this machine or another. NumPy and safetensors, nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, LinMDPError, check_int, check_number, one_line
from linmdp.features.learned import Layout, check_origin, checked_layout, width_of
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import array_of, packed, read_tensors
from linmdp.types import Array, BoolArray, IntArray

ARRAYS = ("states", "actions", "rewards", "next_states", "terminated", "episode", "step")


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Transitions of one environment, in the order in which they were seen.

    Attributes
    ----------
    meta : `env` (its id), `kwargs`, `A`, `layout` (see `features.learned`), `H`, and versions
    states, next_states : (n, width), bytes or float32
    actions, episode, step : (n,); rewards : (n,) as the environment paid them; terminated : (n,)
    """

    meta: dict[str, Any]
    states: np.ndarray
    actions: IntArray
    rewards: Array
    next_states: np.ndarray
    terminated: BoolArray
    episode: IntArray
    step: IntArray

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def env_id(self) -> str:
        """The Gymnasium id of the environment."""
        return str(self.meta["env"])

    @property
    def A(self) -> int:
        """Number of actions."""
        return int(self.meta["A"])

    @property
    def layout(self) -> Layout:
        """The parts of an observation."""
        return tuple((str(kind), int(n)) for kind, n in self.meta["layout"])

    @property
    def reward_scale(self) -> float:
        """What a reward is divided by: the 99th percentile of the sizes of those that are not 0, or 1 if all are."""
        sizes = np.abs(self.rewards[self.rewards != 0])
        return float(np.quantile(sizes, 0.99, method="nearest")) if len(sizes) else 1.0

    @property
    def reward_range(self) -> tuple[float, float]:
        """Range of a scaled reward: [0, 1], or from -1 where there are negative ones."""
        return (-1.0 if (self.rewards < 0).any() else 0.0, 1.0)

    @property
    def scaled_rewards(self) -> Array:
        """Rewards divided by their scale and clipped to their range, (n,)."""
        scaled: Array = np.clip(self.rewards / self.reward_scale, *self.reward_range)
        return scaled

    @property
    def fingerprint(self) -> str:
        """The same for the same transitions."""
        whole = hashlib.sha256(self.states.tobytes())
        for array in (self.actions, self.rewards, self.next_states, self.episode):
            whole.update(array.tobytes())
        return whole.hexdigest()

    def take(self, rows: np.ndarray) -> Dataset:
        """Some of the transitions."""
        return Dataset(meta=self.meta, **{name: getattr(self, name)[rows] for name in ARRAYS})

    def split(self, held_out: float, seed: int) -> tuple[IntArray, IntArray]:
        """Rows to train on and rows held out: whole episodes, at least one of each."""
        check_number("linearize", "held_out", held_out, low=0.0, high=0.9, open_low=True)
        episodes = np.unique(self.episode)
        if len(episodes) < 2:
            raise InvalidData(f"A dataset must have at least 2 episodes, one to hold out. '{self.env_id}' has 1.")
        order = np.random.default_rng([seed, 1]).permutation(episodes)
        count = min(max(1, round(held_out * len(order))), len(order) - 1)
        held = np.isin(self.episode, order[:count])
        return np.flatnonzero(~held), np.flatnonzero(held)

    def save(self, path: Path) -> None:
        """Write it as safetensors, whole or not at all."""
        write_atomic(path, packed("dataset", self.meta, {name: getattr(self, name) for name in ARRAYS}))


def read_dataset(path: Path, env_id: str | None = None) -> Dataset:
    """The dataset in a file; of that environment, if one is named."""
    file = read_tensors(path, "dataset")
    where = f"the dataset '{path}'"
    if env_id is not None and file.meta.get("env") != env_id:
        raise InvalidData(f"The dataset '{path}' must be of '{env_id}'. Got one of '{file.meta.get('env')}'.")
    n = len(array_of(file, "actions", (None,), where=where))
    width = array_of(file, "states", (n, None), where=where).shape[1]
    for name in ARRAYS:
        array_of(file, name, (n, width) if name in ("states", "next_states") else (n,), where=where)
    try:
        data = Dataset(meta=file.meta, **{name: file.arrays[name] for name in ARRAYS})
        check_origin(where, file.meta)
        A, layout = check_int(where, "A", file.meta["A"], low=1), checked_layout(where, file.meta["layout"])
        fits = width == width_of(layout) and n > 0
        fits = fits and all(file.arrays[name].dtype.kind in "bui" for name in ("actions", "terminated", "episode"))
        fits = fits and bool(data.actions.min() >= 0 and data.actions.max() < A)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LinMDPError):
            raise
        raise InvalidData(f"The metadata of {where} lack a part: {one_line(str(error), 200)}.") from error
    if not fits:
        raise InvalidData(f"The arrays of {where} must fit its metadata: {A} actions, layout {layout}.")
    return data
