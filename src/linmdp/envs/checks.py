"""Is it a linear MDP? Each condition of the definition, measured, with a verdict."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from linmdp.envs.base import LinearModel
from linmdp.types import Array

TOLERANCE = 1e-8


class Finding(NamedTuple):
    """One condition: whether it holds, and what was measured."""

    ok: bool
    text: str


def check_linear(model: LinearModel) -> list[Finding]:
    """Every condition of a linear MDP, in the order of the definition."""
    low, high = model.reward_range
    table = model.features.table()
    sums = np.einsum("sad,hd->hsa", table, model.mu.sum(axis=-1))
    off = float(np.abs(sums - 1).max())
    least = _least_probability(model)
    rewards = np.einsum("sad,hd->hsa", table, model.theta)
    norm_phi = float(np.linalg.norm(table, axis=-1).max())
    norm_theta = float(np.linalg.norm(model.theta, axis=-1).max())
    norm_mu = float(np.linalg.norm(np.abs(model.mu).sum(axis=-1), axis=-1).max())
    root_d = math.sqrt(model.d)
    slack = 1 + TOLERANCE
    most = root_d * slack
    r_ok = bool(rewards.min() >= low - TOLERANCE and rewards.max() <= high + TOLERANCE)
    return [
        Finding(
            off <= TOLERANCE, f"probabilities sum to 1 for all states, actions and steps (off by at most {off:.1e})"
        ),
        Finding(least >= -TOLERANCE, f"no probability is negative (the least is at least {least:.1e})"),
        Finding(r_ok, f"mean rewards lie in [{low:g}, {high:g}] (range: {rewards.min():.4g} to {rewards.max():.4g})"),
        Finding(norm_phi <= slack, f"features have norm at most 1 (largest: {norm_phi:.4g})"),
        Finding(norm_theta <= most, f"theta_h has norm at most sqrt(d) = {root_d:.4g} (largest: {norm_theta:.4g})"),
        Finding(norm_mu <= most, f"|mu_h|(S) has norm at most sqrt(d) = {root_d:.4g} (largest: {norm_mu:.4g})"),
    ]


def _least_probability(model: LinearModel) -> float:
    """The least P_h(s' | s, a); where phi and mu have no negative entry, a lower bound without the product."""
    if model.features.columns.min() >= 0 and model.mu.min() >= 0:
        return 0.0
    rows: Array = model.features.columns.T
    return min(
        float((chunk @ model.mu[h]).min())
        for h in range(model.H)
        for chunk in np.array_split(rows, max(1, len(rows) // 4096))
    )
