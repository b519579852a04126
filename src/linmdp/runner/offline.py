"""What a policy would earn, from logged transitions alone: fitted Q evaluation with an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from linmdp.errors import InvalidData, invalid
from linmdp.runner.logged import Logged
from linmdp.types import Array, State, Task

LAM = 1e-3
"""The ridge parameter: small, so that the bias of what was tried is, too."""

LEVEL = 0.95

Asked = Callable[[int, State, Any], int]
"""A policy: the number of its action for a step, a state, and the observation that the state was read from."""


@dataclass(frozen=True)
class OfflineValue:
    """An estimate of what a policy earns in an episode.

    Attributes
    ----------
    mean : the estimate
    interval : where the value lies with 95% confidence, if it is linear in the features
    unseen : the part of the half width that stands for actions of the policy that the data do not show
    episodes : how many were logged
    """

    mean: float
    interval: tuple[float, float]
    unseen: float
    episodes: int

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.4g} [{low:.4g}, {high:.4g}] an episode, from {self.episodes} logged episodes"


def fitted_value(
    task: Task, episodes: Sequence[Sequence[Logged]], policy: Asked, *, by_step: bool = False
) -> OfflineValue:
    """The value of a policy over H steps, with its interval (Duan and Wang, 2020).

    w_h = Lambda^-1 sum_i phi_i (r_i + V_{h+1}(s'_i)) from the last step to the first, V_h(s) = w_h phi(s, pi(s)); with
    nu_h, the mean features that the policy would see at step h by the same regression, the error is to first order
    sum_i sum_h nu_h Lambda^-1 phi_i e_ih, where e_ih are the residuals. Its variance is taken over episodes, since the
    steps of one are not independent; each residual is that of a fit without its transition. Where the task depends on
    the step, each step has a regression of its own. `by_step` says that the policy depends on it.
    """
    if len(episodes) < 2:
        raise InvalidData(f"An offline value needs at least 2 logged episodes. Got {len(episodes)}.")
    H, K, rows = task.H, len(episodes), [row for episode in episodes for row in episode]
    of = np.repeat(np.arange(K), [len(episode) for episode in episodes])
    phi = np.array([_phi(task, row.step.state, row.step.action) for row in rows])
    following = _following(task, rows, policy, by_step)
    starts = [episode[0] for episode in episodes if episode[0].step.h == 0]
    first = np.array([_phi(task, s.step.state, policy(0, s.step.state, s.observation)) for s in starts])
    rewards, at = np.array([row.paid for row in rows]), np.array([row.step.h for row in rows])
    groups = [np.arange(len(rows))] * H if task.stationary else [np.flatnonzero(at == h) for h in range(H)]
    inverses = [_inverse(phi[groups[h]]) for h in range(1 if task.stationary else H)]
    w = np.zeros((H + 1, task.d))
    for h in reversed(range(H)):
        some = groups[h]
        targets = rewards[some] + (following(h)[some] @ w[h + 1] if h + 1 < H else 0.0)
        w[h] = inverses[0 if task.stationary else h] @ (phi[some].T @ targets)
    left_out = np.ones(len(rows))  # 1 / (1 - leverage): the residual that a fit without the transition would have
    for h, inverse in enumerate(inverses):
        some = groups[h]
        left_out[some] = 1 / (1 - np.einsum("nd,nd->n", phi[some] @ inverse, phi[some]))
    nu, influence, unseen, most = (
        first.mean(axis=0),
        np.zeros(len(rows)),
        0.0,
        max(float(np.abs(rewards).max()), *map(abs, task.reward_range)),
    )
    for h in range(H):
        some, weights = groups[h], inverses[0 if task.stationary else h] @ nu
        along, then = phi[some] @ weights, following(h)[some]
        residuals = rewards[some] + (then @ w[h + 1] if h + 1 < H else 0.0) - phi[some] @ w[h]
        influence[some] += along * left_out[some] * residuals
        unseen += LAM * float(np.linalg.norm(weights)) * (H - h) * most
        nu = along @ then
    values = first @ w[0]
    mean = float(values.mean())
    each = np.bincount(of, influence, K) + (values - mean) / K
    wide = NormalDist().inv_cdf((1 + LEVEL) / 2) * float(np.sqrt((each**2).sum() * K / (K - 1)))
    return OfflineValue(mean, (mean - wide - unseen, mean + wide + unseen), unseen, K)


def _following(task: Task, rows: Sequence[Logged], policy: Asked, by_step: bool) -> Callable[[int], Array]:
    """What gives phi(s', pi(s')) of all transitions after step h, (n, d); 0 where nothing follows."""
    n, ends = len(rows), np.array([row.step.terminated for row in rows])
    phi = np.array([task.features.phi(row.step.next_state) for row in rows]) * ~ends[:, None, None]
    known = dict[tuple[int, State], int]()

    def chosen(h: int, row: Logged) -> int:
        state = row.step.next_state
        if task.S is None:
            return policy(h, state, row.following)
        if (h, state) not in known:
            known[h, state] = policy(h, state, row.following)
        return known[h, state]

    if by_step and task.stationary:
        each = [np.array([chosen(h + 1, row) for row in rows]) for h in range(task.H - 1)]
        return lambda h: phi[np.arange(n), each[min(h, task.H - 2)]]
    last = [task.stationary or row.step.h < task.H - 1 for row in rows]
    asked = [chosen(row.step.h + 1 if by_step else 0, row) if on else 0 for row, on in zip(rows, last, strict=True)]
    found: Array = phi[np.arange(n), asked]
    return lambda h: found


def _phi(task: Task, state: State, action: int) -> Array:
    row: Array = task.features.phi(state)[action]
    return row


def _inverse(phi: Array) -> Array:
    """(sum of phi phi' + lam I)^-1."""
    inverse: Array = np.linalg.inv(phi.T @ phi + LAM * np.eye(phi.shape[1]))
    return inverse


def asked_outside(policy: Any, adapter: Any | None) -> Asked:
    """A policy that answers observations with actions of the environment, as a function of step and state, too."""
    ask = policy.predict if hasattr(policy, "predict") else policy
    if not callable(ask):
        invalid("evaluate_offline", "policy", "something with predict(), or a function of observations", policy)

    def number(h: int, state: State, observation: Any) -> int:
        found = ask(observation)
        action = found[0] if hasattr(policy, "predict") else found
        return int(action) if adapter is None else int(adapter.action_map.nearest(action))

    return number
