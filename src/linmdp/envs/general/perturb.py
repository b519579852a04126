"""Changes to a task that must not matter: whoever learns it should learn it as well after any of them.

Each is drawn from the seed of the instance. What an episode is worth does not change, but for its units: `original`
gives returns back as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformAction, TransformObservation

from linmdp.envs.observations import is_image
from linmdp.errors import InvalidParameter, unknown
from linmdp.types import Array

Env: TypeAlias = gymnasium.Env[Any, Any]
Rng: TypeAlias = np.random.Generator
Wrap: TypeAlias = Callable[[Env, Rng], Env]

NOISE = 1e-6
FACTOR = 37.0
STEPS = 500
"""Of random play, in which the size of rewards and the spread of observations are seen."""
WIDEST = 4096
"""Numbers of a one-hot observation, at most."""
BESIDE, VALUES = 2, 5
"""Coordinates of noise beside an observation, and how many values each has where they are whole numbers."""


class DoesNotApply(InvalidParameter):
    """A perturbation of something that the task does not have."""


class Perturbation(NamedTuple):
    """`words` say what is done; `wrap` does it, or raises `DoesNotApply`."""

    kind: str
    words: str
    wrap: Wrap
    shifts: bool = False
    """Whether it adds to the reward of every step."""


def perturbed(env: Env, name: str, seed: int) -> Env:
    """An instance with that perturbation."""
    if name not in PERTURBATIONS:
        unknown("perturbation", str(name), PERTURBATIONS)
    return PERTURBATIONS[name].wrap(env, np.random.default_rng([seed, *name.encode()]))


def original(env: Env, returns: Array) -> Array:
    """The returns of episodes in the units of the instance itself."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, Changed):
            returns = (returns - env.shift * env.H) / env.factor
        env = env.env
    return returns


class Changed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An instance whose steps are changed; random numbers are its own, so that those of the instance stay as they are.

    Parameters
    ----------
    factor, shift : rewards are multiplied and shifted. Where an episode ends early the last reward has the shifts of
        the steps that are left: every episode is worth H shifts more, so that to end early is neither better nor worse
    noise : standard deviation of the Gaussian noise on rewards
    beside : the space of observations with coordinates that say nothing beside them, and the largest of these: whole
        numbers, or real ones where it is 0
    ends : whether the end of the H-th step is reported as a termination; None: as it is
    """

    def __init__(
        self,
        env: Env,
        *,
        factor: float = 1.0,
        shift: float = 0.0,
        noise: float = 0.0,
        beside: tuple[spaces.Space[Any], int] | None = None,
        ends: bool | None = None,
    ) -> None:
        super().__init__(env)
        inner: Any = env.unwrapped
        self.H, self.h, self.rng = int(inner.H), 0, np.random.default_rng(0)
        self.factor, self.shift, self.noise, self.beside, self.ends = factor, shift, noise, beside, ends
        if beside is not None:
            self.observation_space = beside[0]

    def _shown(self, observation: Any) -> Any:
        if self.beside is None:
            return observation
        space, most = self.beside
        noise = self.rng.integers(most + 1, size=BESIDE) if most else self.rng.uniform(-1, 1, size=BESIDE)
        return np.append(observation, noise).astype(space.dtype)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.h = 0
        if seed is not None:
            self.rng = np.random.default_rng([seed, 1])
        observation, info = self.env.reset(seed=seed, options=options)
        return self._shown(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.h += 1
        paid, left = float(reward), self.H - self.h if terminated or truncated else 0
        if self.shift or self.factor != 1:
            paid = self.factor * paid + self.shift * (1 + left)
        if self.noise:
            paid += self.noise * self.rng.standard_normal()
        if self.ends is not None and self.h >= self.H:
            terminated, truncated = self.ends, not self.ends
        return self._shown(observation), paid, terminated, truncated, info


def _random_play(env: Env) -> tuple[list[Any], float]:
    """The observations of random play, and the size of its largest reward; 1 where nothing was paid."""
    rng, seen, largest = np.random.default_rng(0), list[Any](), 0.0
    observation, _ = env.reset(seed=0)
    for _ in range(STEPS):
        seen.append(observation)
        observation, reward, terminated, truncated, _ = env.step(int(rng.integers(_actions(env))))
        largest = max(largest, abs(float(reward)))
        if terminated or truncated:
            observation, _ = env.reset()
    return seen, largest or 1.0


def _paid_more(env: Env, rng: Rng, sign: int) -> Env:
    return Changed(env, shift=sign * _random_play(env)[1])


def _actions(env: Env) -> int:
    space: Any = env.action_space
    return int(space.n)


def _refuse(what: str, env: Env) -> DoesNotApply:
    return DoesNotApply(f"This perturbation is for {what}. Got {env.observation_space}.")


def _box(low: Any, high: Any, dtype: Any) -> spaces.Box:
    return spaces.Box(np.asarray(low).astype(dtype), np.asarray(high).astype(dtype), dtype=dtype)


def _is_box(space: spaces.Space[Any], kinds: str) -> bool:
    """Whether it is a Box, but no picture, whose numbers are of these kinds: "f" real ones, "iu" whole ones."""
    return isinstance(space, spaces.Box) and space.dtype.kind in kinds and not is_image(space)


def _counted(space: spaces.Space[Any]) -> Any:
    """The space as a MultiDiscrete one, if it is made of whole numbers that can be counted; else None."""
    if isinstance(space, spaces.Discrete):
        return _numbers([space.n], [space.start])
    return space if isinstance(space, spaces.MultiDiscrete) else None


def _numbers(sizes: Any, start: Any, dtype: Any = np.int64) -> spaces.MultiDiscrete:
    return spaces.MultiDiscrete(np.asarray(sizes), dtype=dtype, start=np.asarray(start))


def _vector(env: Env) -> Any:
    """The space of observations, if they are vectors of real numbers."""
    space = env.observation_space
    if _is_box(space, "f") and len(space.shape or ()) == 1:
        return space
    raise _refuse("vectors of real numbers", env)


def _spans(env: Env) -> Array:
    """How far each coordinate reaches: by its bounds, or as seen in random play; never 0."""
    space = _vector(env)
    seen = np.ptp(np.array(_random_play(env)[0], dtype=np.float64), axis=0)
    width = space.high.astype(np.float64) - space.low
    spans: Array = np.where(np.isfinite(width) & (width < 1e6), width, seen)
    return np.where(spans > 0, spans, 1.0)


def _linear(env: Env, matrix: Array, offset: Array) -> Env:
    """Observations x as matrix x + offset, and their bounds."""
    space = _vector(env)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    with np.errstate(invalid="ignore"):  # 0 times infinity
        ends = [np.where(matrix == 0, 0.0, matrix * bound) for bound in (low, high)]
    slack = 1e-5 * (1 + np.abs(offset))  # rounding must not leave the space
    low, high = np.minimum(*ends).sum(axis=1) + offset - slack, np.maximum(*ends).sum(axis=1) + offset + slack
    with np.errstate(over="ignore"):
        after = _box(low, high, space.dtype)
    return TransformObservation(env, lambda x: (matrix @ x.astype(np.float64) + offset).astype(space.dtype), after)


def _scaled(env: Env, rng: Rng) -> Env:
    k = _vector(env).shape[0]
    return _linear(env, np.diag(10 ** rng.uniform(-3, 3, size=k)), np.zeros(k))


def _rotated(env: Env, rng: Rng) -> Env:
    """In units of the spans: else the coordinate with the largest numbers would hide the others."""
    k = _vector(env).shape[0]
    if k < 2:
        raise _refuse("vectors of several real numbers", env)
    return _linear(env, np.linalg.qr(rng.standard_normal((k, k)))[0] / _spans(env), np.zeros(k))


def _shifted(env: Env, rng: Rng) -> Env:
    space = env.observation_space
    if isinstance(space, spaces.Discrete):
        by = int(rng.integers(2, 100))
        return TransformObservation(env, lambda x: int(x) + by, spaces.Discrete(space.n, start=space.start + by))
    if isinstance(space, spaces.MultiDiscrete):
        add = rng.integers(2, 100, size=space.shape)
        return TransformObservation(env, lambda x: x + add, _numbers(space.nvec, space.start + add, space.dtype))
    k = _vector(env).shape[0]
    return _linear(env, np.eye(k), rng.uniform(-10, 10, size=k) * _spans(env))


def _twice(x: Any) -> Any:
    return np.concatenate(2 * [np.atleast_1d(x)], axis=-1)


def _doubled(env: Env, rng: Rng) -> Env:
    space: Any = env.observation_space
    if (whole := _counted(space)) is not None:
        return TransformObservation(env, _twice, _numbers(_twice(whole.nvec), _twice(whole.start), whole.dtype))
    if _is_box(space, "fiu"):
        return TransformObservation(env, _twice, _box(_twice(space.low), _twice(space.high), space.dtype))
    raise _refuse("numbers and arrays that are no picture", env)


def _beside(env: Env, rng: Rng) -> Env:
    space: Any = env.observation_space
    whole = _counted(space)
    if whole is not None and len(whole.shape) == 1:
        sizes, start = np.append(whole.nvec, BESIDE * [VALUES]), np.append(whole.start, BESIDE * [0])
        return Changed(env, beside=(_numbers(sizes, start, whole.dtype), VALUES - 1))
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise _refuse("numbers and vectors", env)
    # of whole numbers the noise has as many values as a bit or a byte in them
    least, most = (-1, 0) if _is_box(space, "f") else (0, min(int(space.high.max()), VALUES - 1))
    bounds = np.append(space.low, BESIDE * [least]), np.append(space.high, BESIDE * [most or 1])
    return Changed(env, beside=(_box(*bounds, space.dtype), most))


def _permuted(env: Env, rng: Rng) -> Env:
    order = rng.permutation(_actions(env))
    if np.array_equal(order, np.arange(len(order))):
        order = np.roll(order, 1)
    return TransformAction(env, lambda a: int(order[int(a)]), env.action_space)


def _actions_twice(env: Env, rng: Rng) -> Env:
    A = _actions(env)
    return TransformAction(env, lambda a: int(a) % A, spaces.Discrete(2 * A))


def _as_floats(env: Env, rng: Rng) -> Env:
    space: Any = env.observation_space
    if (whole := _counted(space)) is not None:
        low, high = whole.start, whole.start + whole.nvec - 1
    elif _is_box(space, "iu"):
        low, high = space.low, space.high
    else:
        raise _refuse("whole numbers", env)
    shown = _box(low, high, np.float32)
    return TransformObservation(env, lambda x: np.asarray(x, dtype=np.float32).reshape(low.shape), shown)


def _onehot(env: Env, rng: Rng) -> Env:
    whole = _counted(env.observation_space)
    if whole is None:
        raise _refuse("whole numbers that can be counted", env)
    sizes = whole.nvec.ravel()
    n = int(sizes.sum())
    if n > WIDEST:
        raise _refuse(f"at most {WIDEST} values in all", env)
    first = np.append(0, sizes[:-1].cumsum()) - whole.start.ravel()

    def shown(x: Any) -> Array:
        row = np.zeros(n, dtype=np.float32)
        row[np.asarray(x).ravel() + first] = 1
        return row

    return TransformObservation(env, shown, _box(np.zeros(n), np.ones(n), np.float32))


def _of_type(env: Env, rng: Rng, kind: Any) -> Env:
    space: Any = env.observation_space
    if not _is_box(space, "f") or space.dtype == kind:
        raise _refuse("real numbers of another type", env)
    return _typed(env, _box(space.low, space.high, kind))


def _typed(env: Env, space: Any) -> Env:
    return TransformObservation(env, lambda x: np.asarray(x, dtype=space.dtype), space)


def _integers(env: Env, rng: Rng) -> Env:
    space: Any = env.observation_space
    kind: Any = np.int32 if space.dtype == np.int64 else np.int64
    if isinstance(space, spaces.Discrete):
        return TransformObservation(env, np.int64, space)
    if isinstance(space, spaces.MultiDiscrete):
        return _typed(env, _numbers(space.nvec, space.start, kind))
    if _is_box(space, "iu"):
        return _typed(env, _box(space.low, space.high, kind))
    raise _refuse("whole numbers", env)


def _ended(env: Env, rng: Rng, terminated: bool) -> Env:
    inner: Any = env.unwrapped
    if inner.ends == terminated:
        raise DoesNotApply("The last step of this task ends like that anyway.")
    return Changed(env, ends=terminated)


PERTURBATIONS: dict[str, Perturbation] = {
    "noise": Perturbation("rewards", f"noise of {NOISE:g} on every reward", lambda env, _: Changed(env, noise=NOISE)),
    "times37": Perturbation("rewards", f"times {FACTOR:g}", lambda env, _: Changed(env, factor=FACTOR)),
    "up": Perturbation("rewards", "plus the largest one", partial(_paid_more, sign=1), shifts=True),
    "down": Perturbation("rewards", "minus the largest one", partial(_paid_more, sign=-1), shifts=True),
    "scaled": Perturbation("observations", "each coordinate times a number from 0.001 to 1000", _scaled),
    "rotated": Perturbation("observations", "a random rotation", _rotated),
    "shifted": Perturbation("observations", "a number added to each coordinate", _shifted),
    "doubled": Perturbation("observations", "every coordinate twice", _doubled),
    "beside": Perturbation("observations", f"{BESIDE} coordinates of noise beside the others", _beside),
    "permuted": Perturbation("actions", "in another order", _permuted),
    "twice": Perturbation("actions", "every action twice", _actions_twice),
    "floats": Perturbation("types", "whole numbers as floats", _as_floats),
    "onehot": Perturbation("types", "whole numbers as one-hot vectors", _onehot),
    "float64": Perturbation("types", "real numbers as float64", partial(_of_type, kind=np.float64)),
    "float32": Perturbation("types", "real numbers as float32", partial(_of_type, kind=np.float32)),
    "integers": Perturbation("types", "whole numbers in another type", _integers),
    "terminated": Perturbation("ends", "the last step is a termination", partial(_ended, terminated=True)),
    "truncated": Perturbation("ends", "the last step is a truncation", partial(_ended, terminated=False)),
}
