"""The environments of bsuite (Osband et al. 2020) as they come in its package: `bsuite:deep_sea/0`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from linmdp.errors import InvalidParameter, needed, unknown

LONGEST = {"cartpole": 1001, "mountain_car": 1000}
"""Steps of an episode at most, by how the name of an experiment begins; elsewhere all episodes have the same number."""


class BSuite(gymnasium.Env[Any, Any]):
    """One setting of an experiment. Its own random numbers follow the seed of `reset`.

    Parameters
    ----------
    id : the name of an experiment and the number of a setting, as in "deep_sea/0"
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it an instance attribute)

    def __init__(self, id: str) -> None:
        words = f"'bsuite:{id}' needs {{name}}, which is not installed: pip install 'linmdp[bsuite]'."
        package, settings = needed("bsuite.bsuite", words), needed("bsuite.sweep", words).SETTINGS
        if id not in settings:
            unknown("setting of bsuite", id, settings)
        name = id.partition("/")[0]
        if name.startswith("mnist"):
            raise InvalidParameter(f"The setting of bsuite must need no files of the network. Got '{id}'.")
        self._inner = package.load(name, settings[id])
        shape, dtype = self._inner.observation_spec().shape, self._inner.observation_spec().dtype
        self._shape = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
        self.observation_space = spaces.Box(-np.inf, np.inf, self._shape, dtype.type)
        self.action_space = spaces.Discrete(self._inner.action_spec().num_values)
        H = next((steps for begin, steps in LONGEST.items() if name.startswith(begin)), None) or self._length()
        place, which = "linmdp.envs.bsuite:BSuite", f"bsuite/{id.replace('/', '-')}"
        self.spec = EnvSpec(which, entry_point=place, max_episode_steps=H, kwargs={"id": id})

    def _length(self) -> int:
        """Steps of an episode."""
        self.reset(seed=0)
        steps, over = 0, False
        while not over:
            steps, over = steps + 1, self.step(0)[2]
        return steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        part = self._inner if seed is not None else None
        while part is not None:  # an environment, perhaps in a wrapper that draws noise
            if hasattr(part, "_rng"):
                part._rng = np.random.RandomState(seed)
            part = getattr(part, "_env", None)
        return self._seen(self._inner.reset()), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; every end is a termination."""
        found = self._inner.step(int(action))
        return self._seen(found), float(found.reward), bool(found.last()), False, {}

    def _seen(self, found: Any) -> Any:
        return np.array(found.observation).reshape(self._shape)


def bsuite(*, id: str = "deep_sea/0") -> BSuite:
    """A setting of an experiment of bsuite, by its id.

    Parameters
    ----------
    id : the name of the experiment and the number of the setting
    """
    return BSuite(str(id))
