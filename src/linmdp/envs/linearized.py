"""Three environments from one learned model: the game, the game as published, and a finite linear MDP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linmdp.envs.base import LinearModel, stationary_model
from linmdp.errors import InvalidData, InvalidParameter, check_choice, check_int
from linmdp.features.learned import LearnedModel, read_model
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array

if TYPE_CHECKING:
    from linmdp.envs.adapter import GymTask
    from linmdp.envs.linear import LinearMDPEnv

MODES = ("game", "published", "model")


def linearized(
    *,
    model: str = "alien",
    mode: str = "game",
    H: int = 50,
    anchors: int = 500,
    start: str = "fixed",
) -> GymTask | LinearMDPEnv:
    """A linearized environment: `mode` game (real scores), published (learned reward) or model (exactly linear).

    Parameters
    ----------
    model : a model file written by `linmdp linearize`, or the name of a shipped one (alien, phoenix)
    mode : "game" plays the real game, seen through phi, with real scores (scaled) and real ends of life; "published"
        plays it with the learned reward <phi, theta> and no end, as the paper; "model" is a finite linear MDP
        distilled from phi, mu and theta, with V* and exact regret
    H : steps per episode
    anchors, start : for "model": its number of states, and where an episode starts
    """
    check_choice("linearized", "mode", mode, MODES)
    if mode == "model":
        from linmdp.envs.linear import LinearMDPEnv

        return LinearMDPEnv(linearized_model(model=model, mode=mode, H=H, anchors=anchors, start=start))
    from linmdp.envs.play import linearized_game

    return linearized_game(_read(model), mode, check_int("linearized", "H", H, low=1))


def linearized_model(
    *, model: str = "alien", mode: str = "model", H: int = 50, anchors: int = 500, start: str = "fixed"
) -> LinearModel:
    """The finite linear MDP of `mode=model`; needs no Gymnasium."""
    if mode != "model":
        raise InvalidParameter(f"The 'mode' parameter of linearized must be 'model' for a known model. Got {mode!r}.")
    H = check_int("linearized", "H", H, low=1)
    n = check_int("linearized", "anchors", anchors, low=2)
    return distilled(_read(model), H=H, anchors=n, start=start)


def distilled(learned: LearnedModel, *, H: int, anchors: int, start: str = "fixed") -> LinearModel:
    """The linear MDP on anchor states: the start of an episode, then held-out next states, which are draws from p.

    With weights 1/n in place of p, each measure mu_j has a mass m_j near 1 over the anchors. It is divided by it, and
    phi_j multiplied by it and put back on the simplex: again a linear MDP, exactly, and the same one up to the
    error of replacing p by n draws. theta is clipped to the range of one reward, so that <phi, theta> lies there.
    If an anchor ended its episode, one more dimension and state stand for the end: it pays nothing and is absorbing.
    """
    if learned.form != "linear":
        raise InvalidParameter(
            f"mode=model needs a model of form 'linear'. The model of '{learned.env_id}' has {learned.form!r}."
        )
    held = learned.held_out
    if len(held) + 1 < anchors:
        raise InvalidParameter(f"The 'anchors' parameter of linearized must be at most {len(held) + 1}. Got {anchors}.")
    states = np.concatenate((learned.arrays["start"][None], held.next[: anchors - 1]))
    ends = np.concatenate(([False], held.terminated[: anchors - 1])).astype(bool)
    measures = learned.mu(states).T / anchors
    mass = measures.sum(axis=1)
    if not (mass > 0).all():
        raise InvalidData(
            f"Measure {int(mass.argmin())} of '{learned.env_id}' has no mass on {anchors} anchors: use more."
        )
    phi = learned.batch(states) * mass
    phi /= phi.sum(axis=-1, keepdims=True)
    low, high = learned.meta["reward_range"]
    theta, mu = np.clip(learned.theta, low, high), measures / mass[:, None]
    if ends.any():
        phi, theta, mu = _with_end(phi, theta, mu, ends)
    return stationary_model(
        H,
        theta,
        mu,
        name=f"linearized:{learned.env_id}",
        features=TableFeatures(phi),
        reward_range=(float(low), float(high)),
        start=start,
    )


def _with_end(phi: Array, theta: Array, mu: Array, ends: np.ndarray) -> tuple[Array, Array, Array]:
    """One more dimension and state, the end: anchors that ended an episode become it."""
    phi, theta, mu = np.pad(phi, ((0, 1), (0, 0), (0, 1))), np.pad(theta, (0, 1)), np.pad(mu, ((0, 1), (0, 1)))
    phi[-1, :, -1] = mu[-1, -1] = 1.0
    mu[:, -1] += mu[:, :-1][:, ends].sum(axis=1)
    mu[:, :-1][:, ends] = 0.0
    return phi, theta, mu


def _read(model: Any) -> LearnedModel:
    if not isinstance(model, str):
        raise InvalidParameter(f"The 'model' parameter of linearized must be a file or a name. Got {model!r}.")
    return read_model(model)
