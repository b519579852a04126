"""From trained networks to a model file: measures normalised, reward refitted, held-out transitions put in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.features.learned import FLOOR, Encoder, HeldOut, LearnedModel
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import packed
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import fit_bellman, linearity, ridge
from linmdp.types import IntArray

KEPT = 2048
"""Held-out transitions in a model file: to judge it by, and anchors for `mode=model`."""

FITTED = 4096
"""Training transitions that the Bellman error's value iteration is fitted on."""

CHUNK = 4096


def model_of_networks(
    nets: dict[str, np.ndarray],
    encoder: Encoder,
    data: Dataset,
    settings: dict[str, Any],
    rows: IntArray,
    held: IntArray,
) -> LearnedModel:
    """The model: `nets` are the parameters of `Networks`, `rows` were trained on, `held` were not."""
    rng = np.random.default_rng([settings["seed"], 4])
    kept, fitted = (rng.permutation(some)[:most] for some, most in ((held, KEPT), (rows, FITTED)))
    # the running mean of the measures is of use in training alone
    arrays = {"phi.action" if name == "action" else name: nets[name] for name in nets if name != "mass"}
    arrays |= {"encoder.mean": encoder.mean, "encoder.scale": encoder.scale, "start": data.states[0]}
    sample = _sample(data, kept)
    arrays |= {"held.state": sample.state, "held.next": sample.next, "held.action": sample.action}
    arrays |= {"held.reward": sample.reward, "held.terminated": sample.terminated}
    meta = {
        "env": data.env_id,
        "kwargs": data.meta.get("kwargs", {}),
        "A": data.A,
        "d": settings["d"],
        "hidden": settings["hidden"],
        "form": settings["form"],
        "layout": [list(part) for part in data.layout],
        "reward_scale": data.reward_scale,
        "reward_range": list(data.reward_range),
        "settings": settings,
        "data": {"transitions": len(data), "H": data.meta["H"], "fingerprint": data.fingerprint},
        "versions": {"linmdp": linmdp.__version__, "numpy": np.__version__, **data.meta.get("versions", {})},
    }
    if settings["form"] == "linear":
        _normalise(meta, arrays, data, rows)
    model = LearnedModel(meta, arrays)
    phi = np.concatenate([model.pairs(data.states[part], data.actions[part]) for part in _chunks(rows)])
    arrays["theta"] = ridge(phi, data.scaled_rewards[rows])
    model = LearnedModel(meta, arrays)
    arrays["bellman.w"] = fit_bellman(model, _sample(data, fitted))
    meta["metrics"] = linearity(LearnedModel(meta, arrays))._asdict()
    return LearnedModel(meta, arrays)


def write_model(path: Path, model: LearnedModel) -> None:
    """Write it as safetensors, whole or not at all."""
    write_atomic(path, packed("model", model.meta, model.arrays))


def _sample(data: Dataset, rows: IntArray) -> HeldOut:
    rewards = data.scaled_rewards[rows].astype(np.float32)
    return HeldOut(data.states[rows], data.actions[rows], rewards, data.next_states[rows], data.terminated[rows])


def _normalise(meta: dict[str, Any], arrays: dict[str, np.ndarray], data: Dataset, rows: IntArray) -> None:
    """Divide each mu_j by its mean over the training data, in place of the running mean that training used.

    Then E_p[mu_j] = 1, and <phi, mu(s')> p(s') sums to 1 over s' since phi is on the simplex.
    """
    plain = LearnedModel(meta, {**arrays, "mu.scale": np.ones(meta["d"])})
    mass = np.zeros(meta["d"])
    for part in _chunks(rows):
        mass += plain.mu(data.next_states[part]).sum(axis=0)
    mass = (mass / len(rows) - FLOOR) / (1 - FLOOR)
    arrays["mu.scale"] = 1 / mass


def _chunks(rows: IntArray) -> list[IntArray]:
    return np.array_split(rows, max(1, len(rows) // CHUNK))
