"""Learned features: phi, mu and theta of a linearized environment, in plain NumPy.

P(s' | s, a) = <phi(s, a), mu(s')> p(s') with phi on the simplex and mu >= 0, E_p[mu_j] = 1 (form "linear"), or
proportional to exp(<phi, mu>) p(s') (form "energy", the published one, which is not a linear MDP).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, LinMDPError, check_choice, check_int, check_number, one_line, unknown
from linmdp.io.tensorfile import TensorFile, array_of, read_tensors
from linmdp.types import Array, BoolArray, IntArray, State

FORMS = ("linear", "energy")
LARGEST_INPUT = 5.0
"""Standardised inputs are clipped here: a state far from all data must not drive the networks to extremes."""

FLOOR = 0.01
"""Each measure is mixed with this much of p itself: no next state is impossible, and log <phi, mu> is bounded below."""

TINY = 1e-6
"""Added to each measure before it is normalised: one that is nowhere in use becomes p itself, and not 0 / 0."""

SHIPPED = Path(__file__).parent.parent / "linearize" / "models"

Layout = tuple[tuple[str, int], ...]
"""Parts of a flat observation: ("box", n) for n numbers, ("onehot", n) for one whole number below n."""


def width_of(layout: Layout) -> int:
    """Length of a flat observation."""
    return sum(n if kind == "box" else 1 for kind, n in layout)


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoder:
    """From flat observations (n, width) to what the networks read (n, inputs).

    Numbers are standardised with the data's mean and deviation, and left out (0) where they never vary; whole numbers
    become one-hot vectors.
    """

    layout: Layout
    mean: Array
    scale: Array

    @classmethod
    def fit(cls, layout: Layout, states: np.ndarray) -> Encoder:
        """The encoder of a dataset's observations."""
        spread = states.std(axis=0, dtype=np.float64)
        varies = spread > 1e-12
        scale = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
        return cls(layout=layout, mean=states.mean(axis=0, dtype=np.float64), scale=scale)

    @property
    def inputs(self) -> int:
        """Length of what the networks read."""
        return sum(n for _, n in self.layout)

    def __call__(self, states: np.ndarray) -> Array:
        """(n, width) -> (n, inputs), float32."""
        pieces, at = [], 0
        for kind, n in self.layout:
            if kind == "box":
                part = (states[:, at : at + n] - self.mean[at : at + n]) * self.scale[at : at + n]
                pieces.append(np.clip(part, -LARGEST_INPUT, LARGEST_INPUT).astype(np.float32))
                at += n
            else:
                codes = states[:, at].astype(np.int64)
                if codes.size and not (codes.min() >= 0 and codes.max() < n):
                    raise InvalidData(f"Entry {at} of an observation must be a whole number in [0, {n - 1}].")
                pieces.append((codes[:, None] == np.arange(n)).astype(np.float32))
                at += 1
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


class HeldOut:
    """Transitions that training did not see: `state, action, reward (scaled), next, terminated`, n rows each."""

    def __init__(self, state: np.ndarray, action: IntArray, reward: Array, next: np.ndarray, end: BoolArray) -> None:
        self.state, self.action, self.reward, self.next, self.terminated = state, action, reward, next, end

    def __len__(self) -> int:
        return len(self.action)


class LearnedModel:
    """A linearized environment: a `FeatureMap`, the measures, the reward, and transitions to judge it by.

    Parameters
    ----------
    meta : `env`, `form`, `A`, `d`, `layout`, `reward_scale`, `reward_range`, and whatever training adds
    arrays : the networks, the encoder, `theta` (d,), `bellman.w`, and the held-out transitions, by name
    """

    bound = 1.0

    def __init__(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.meta, self.arrays = dict(meta), dict(arrays)
        self.form, self.A, self.d = str(meta["form"]), int(meta["A"]), int(meta["d"])
        layout = tuple((str(kind), int(n)) for kind, n in meta["layout"])
        self.encoder = Encoder(layout=layout, mean=arrays["encoder.mean"], scale=arrays["encoder.scale"])
        self.theta: Array = arrays["theta"].astype(np.float64)
        self._kept: list[tuple[bytes, Array]] = []

    @property
    def env_id(self) -> str:
        """The Gymnasium id of what was linearized."""
        return str(self.meta["env"])

    @cached_property
    def held_out(self) -> HeldOut:
        """The transitions in the file."""
        a = self.arrays
        return HeldOut(a["held.state"], a["held.action"], a["held.reward"], a["held.next"], a["held.terminated"])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that phi needs, and of the two states that are remembered."""
        used = (array.nbytes for name, array in self.arrays.items() if name.startswith(("phi.", "encoder.")))
        return sum(used) + 2 * self.A * self.d * 8

    def phi(self, state: State) -> Array:
        """phi(state, .), (A, d). Cached: an agent asks for the same state when it acts, observes and stores."""
        state = np.asarray(state)
        key = state.tobytes()
        for known, value in self._kept:
            if known == key:
                return value
        phi: Array = self.batch(state.reshape(1, -1))[0]
        phi.flags.writeable = False
        self._kept = [*self._kept[-1:], (key, phi)]
        return phi

    def batch(self, states: np.ndarray) -> Array:
        """phi of n states and all actions, (n, A, d)."""
        return self._phi_head(self._trunk("phi", states)[:, None, :] + self.arrays["phi.action"])

    def pairs(self, states: np.ndarray, actions: IntArray) -> Array:
        """phi of n pairs, (n, d)."""
        return self._phi_head(self._trunk("phi", states) + self.arrays["phi.action"][actions])

    def mu(self, states: np.ndarray) -> Array:
        """mu(s'), (n, d)."""
        out: Array = self._layer("mu.2", np.maximum(self._trunk("mu", states), 0)).astype(np.float64)
        if self.form == "linear":
            out = FLOOR + (1 - FLOOR) * (np.logaddexp(0.0, out) + TINY) * self.arrays["mu.scale"]
        return out

    def logits(self, phi: Array, mu: Array) -> Array:
        """log of the density ratio P(s' | s, a) / p(s'), up to a constant in s'; (n, d), (m, d) -> (n, m)."""
        f: Array = phi @ mu.T
        return f if self.form == "energy" else np.log(f)

    def reward(self, phi: Array) -> Array:
        """<phi, theta>, clipped to the range of one reward."""
        low, high = self.meta["reward_range"]
        paid: Array = np.clip(phi @ self.theta, low, high)
        return paid

    def scaled(self, reward: float) -> float:
        """A score as learners see it: divided by the scale and clipped to the range of one reward."""
        low, high = self.meta["reward_range"]
        return float(min(max(reward / self.meta["reward_scale"], low), high))

    def _trunk(self, net: str, states: np.ndarray) -> Array:
        """The part of a network that sees states only, before its last ReLU, (n, hidden)."""
        return self._layer(f"{net}.1", np.maximum(self._layer(f"{net}.0", self.encoder(states)), 0))

    def _phi_head(self, z: Array) -> Array:
        out: Array = self._layer("phi.2", np.maximum(z, 0)).astype(np.float64)
        if self.form == "energy":  # slightly inside the ball, whatever rounding does
            norm = np.sqrt(np.einsum("...d,...d->...", out, out))[..., None]
            out /= np.maximum(norm * (1 + 1e-12), 1e-30)
            return out
        out -= out.max(axis=-1, keepdims=True)
        np.exp(out, out=out)
        out /= out.sum(axis=-1, keepdims=True)
        return out

    def _layer(self, name: str, x: Array) -> Array:
        y: Array = x @ self.arrays[f"{name}.weight"].T + self.arrays[f"{name}.bias"]
        return y


def read_model(name: str | Path) -> LearnedModel:
    """The model in a file, or the shipped one of that name."""
    path = Path(name)
    if path.suffix == "" and not path.exists():
        shipped = {p.stem: p for p in SHIPPED.glob("*.safetensors")}
        if str(name) not in shipped:
            unknown("model file, and no shipped model,", str(name), shipped)
        path = shipped[str(name)]
    file = read_tensors(path, "model")
    try:
        _check_model(file, path)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LinMDPError):
            raise
        raise InvalidData(f"The model file '{path}' lacks a part: {one_line(str(error), 200)}.") from error
    return LearnedModel(file.meta, file.arrays)


def _check_model(file: TensorFile, path: Path) -> None:
    """Every array that a model needs, in its shape."""
    meta, where = file.meta, f"the model '{path}'"
    check_choice(where, "form", meta["form"], FORMS)
    A, d, hidden = (check_int(where, name, meta[name], low=1) for name in ("A", "d", "hidden"))
    layout = checked_layout(where, meta["layout"])
    check_origin(where, meta)
    width, inputs = width_of(layout), sum(n for _, n in layout)
    shapes: dict[str, tuple[int | None, ...]] = {
        "encoder.mean": (width,),
        "encoder.scale": (width,),
        "theta": (d,),
        "phi.action": (A, hidden),
        "bellman.w": (None, d),
        "start": (width,),
    }
    for net in ("phi", "mu"):
        for i, (m, n) in enumerate(((hidden, inputs), (hidden, hidden), (d, hidden))):
            shapes |= {f"{net}.{i}.weight": (m, n), f"{net}.{i}.bias": (m,)}
    if meta["form"] == "linear":
        shapes["mu.scale"] = (d,)
    rows = len(file.arrays["held.action"])
    shapes |= {f"held.{name}": (rows, width) for name in ("state", "next")}
    shapes |= {f"held.{name}": (rows,) for name in ("action", "reward", "terminated")}
    for name, shape in shapes.items():
        array_of(file, name, shape, where=where)
    check_number(where, "reward_scale", meta["reward_scale"], low=0.0, open_low=True)
    low, high = meta["reward_range"]
    check_number(where, "reward_range", high, low=check_number(where, "reward_range", low))
    for name, array in file.arrays.items():
        if array.dtype.kind not in ("bui" if name in ("held.action", "held.terminated") else "fbui"):
            raise InvalidData(f"{name!r:.40} of {where} must be made of whole numbers. Got {array.dtype}.")
    actions = file.arrays["held.action"]
    if rows and not (actions.min() >= 0 and actions.max() < A):
        raise InvalidData(f"'held.action' of {where} must be in [0, {A - 1}].")


def checked_layout(where: str, layout: Any) -> Layout:
    """The parts of an observation as a file names them."""
    return tuple(
        (check_choice(where, "layout", kind, ("box", "onehot")), check_int(where, "layout", n, low=1))
        for kind, n in layout
    )


PLAIN_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def check_origin(where: str, meta: Mapping[str, Any]) -> None:
    """Gymnasium makes the environment that a file names: it must not be a way to import a module or to read a path."""
    env, kwargs = meta["env"], meta.get("kwargs") or {}
    if not isinstance(env, str) or not PLAIN_ID.fullmatch(env):
        raise InvalidData(f"The 'env' of {where} must be a plain Gymnasium id. Got {env!r:.80}.")
    for name, value in dict(kwargs).items():
        plain = isinstance(value, bool | int | float) or value is None
        if not plain and not (isinstance(value, str) and re.fullmatch(r"[\w .-]*", value) and ".." not in value):
            raise InvalidData(f"The argument {name!r:.40} in {where} must be a number or a word. Got {value!r:.80}.")
