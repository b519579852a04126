"""SysAdmin of the planning competitions, played in pyRDDLGym's simulator, with V* from its exact model.

The 1,024 states and 11 actions of ten machines can be planned in, but they have no small linear form. So the features
here are an approximation: a constant and one number per machine, for each action. Regret is still exact.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np

from linmdp.envs.adapter import GymTask
from linmdp.envs.planning import Optimum, optimum
from linmdp.errors import InvalidParameter, check_int, needed, unknown
from linmdp.features.tabular import TableFeatures
from linmdp.types import Array, BoolArray, IntArray

PROBLEMS = {"SysAdmin": "SysAdmin_MDP_ippc2011"}
MOST_MACHINES = 10
"""2^10 states: the matrix of their transitions has 8 MiB, and one of 12 machines would have 128."""


class SysAdmin:
    """Machines on a network, each running or down; a step may reboot one of them. Agents do not know this model.

    A machine that is rebooted runs in the next step. One that runs goes on with probability
    0.45 + 0.5 (1 + r) / (1 + m), where r of the m machines that it depends on run. One that is down comes back with
    probability `revival`. A step pays 1 for each machine that runs, less `penalty` if one is rebooted.

    Parameters
    ----------
    connected : (n, n) whether machine x (column) depends on machine y (row)
    """

    start = "fixed"

    def __init__(self, *, connected: BoolArray, revival: float, penalty: float, H: int) -> None:
        self.connected, self.revival, self.penalty, self.H = connected, revival, penalty, H
        n = len(connected)
        self.name, self.n, self.S, self.A = "rddl:SysAdmin", n, 2**n, n + 1
        self.reward_range = (-float(penalty), float(n))
        self.running = np.stack(np.unravel_index(np.arange(self.S), (2,) * n), axis=1)  # (S, n)

    @cached_property
    def stays_up(self) -> Array:
        """Chance that each machine runs in the next step if nothing is rebooted, (S, n)."""
        up = self.running @ self.connected
        kept = 0.45 + 0.5 * (1 + up) / (1 + self.connected.sum(axis=0))
        chance: Array = np.where(self.running == 1, kept, self.revival)
        return chance

    @cached_property
    def P(self) -> Array:
        """P(s' | s) if nothing is rebooted, (S, S): the machines fail and revive independently."""
        P = np.ones((self.S, self.S))
        for chance, next_up in zip(self.stays_up.T, self.running.T, strict=True):
            P *= np.where(next_up == 1, chance[:, None], 1 - chance[:, None])
        return P

    @cached_property
    def rewards(self) -> Array:
        """(A, S)"""
        rewards: Array = self.running.sum(axis=1) - self.penalty * (np.arange(self.A) > 0)[:, None]
        return rewards

    @cached_property
    def _raised(self) -> IntArray:
        """Where each next state goes if action a has rebooted a machine meanwhile, (S, A): its bit is set."""
        bits = np.concatenate(([0], 1 << np.arange(self.n)[::-1]))
        raised: IntArray = np.bitwise_or(np.arange(self.S)[:, None], bits)
        return raised

    def q(self, h: int, V: Array) -> Array:
        """r + P V for all pairs, (A, S). A reboot sets one bit of s' and leaves the others alone, so one P will do."""
        q: Array = self.rewards + (self.P @ V[self._raised]).T
        return q


def machine_features(model: SysAdmin) -> TableFeatures:
    """psi(s) = (1, which machines run) / sqrt(n + 1) for each action: additive in the machines, and no more."""
    psi = np.column_stack((np.ones(model.S), model.running)) / math.sqrt(model.n + 1)
    table = np.einsum("sp,ab->sabp", psi, np.eye(model.A))
    return TableFeatures(table.reshape(model.S, model.A, -1))


class Simulator(gymnasium.Env[Any, Any]):
    """pyRDDLGym's simulator with numbered states and actions: 0 does nothing, i reboots machine i."""

    def __init__(self, inner: Any, objects: list[str]) -> None:
        self._inner = inner
        self._names = [f"running___{name}" for name in objects]
        self._reboots = [f"reboot___{name}" for name in objects]
        self.observation_space = gymnasium.spaces.Discrete(2 ** len(objects))
        self.action_space = gymnasium.spaces.Discrete(len(objects) + 1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode: all machines as the instance has them."""
        super().reset(seed=seed)
        observation, info = self._inner.reset(seed=seed, options=options)
        return self._state(observation), info

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One step of the simulator."""
        chosen = {self._reboots[action - 1]: 1} if action else {}
        observation, reward, terminated, truncated, info = self._inner.step(chosen)
        return self._state(observation), float(reward), bool(terminated), bool(truncated), info

    def _state(self, observation: dict[str, Any]) -> int:
        state = 0
        for name in self._names:
            state = 2 * state + int(observation[name])
        return state


class RDDLTask(GymTask):
    """SysAdmin from pyRDDLGym (needs the extra `rddl`): reboot machines on a network; exact regret.

    Parameters
    ----------
    domain : SysAdmin
    instance : of the competition of 2011: 1 and 2 have ten machines
    H : steps per episode; the default, and maximum, is the instance's own horizon (40)
    """

    def __init__(self, *, domain: str = "SysAdmin", instance: int = 1, H: int | None = None) -> None:
        if domain not in PROBLEMS:
            unknown("RDDL domain", str(domain), PROBLEMS)
        instance = check_int("rddl", "instance", instance, low=1, high=10)
        with _quietly(domain) as make:
            inner = make(PROBLEMS[domain], str(instance))
        H = check_int("rddl", "H", inner.horizon if H is None else H, low=1, high=int(inner.horizon))
        objects = inner.model.type_to_objects["computer"]
        n = len(objects)
        if n > MOST_MACHINES:
            raise InvalidParameter(
                f"The 'instance' parameter of rddl must have at most {MOST_MACHINES} machines. "
                f"Got {instance!r}, which has {n}."
            )
        fixed = inner.model.non_fluents
        self.model: Any = SysAdmin(
            connected=np.array(fixed["CONNECTED"], dtype=np.bool_).reshape(n, n),
            revival=float(fixed["REBOOT-PROB"]),
            penalty=float(fixed["REBOOT-PENALTY"]),
            H=H,
        )
        low, high = self.model.reward_range
        super().__init__(
            Simulator(inner, objects), H=H, reward_low=low, reward_high=high, features=machine_features(self.model)
        )
        self.id = f"rddl:{domain},instance={instance}"

    @cached_property
    def optimum(self) -> Optimum:
        """Q* and V* of the model, computed once."""
        return optimum(self.model)


@contextlib.contextmanager
def _quietly(domain: str) -> Iterator[Any]:
    """pyRDDLGym's `make`; its parser's output is discarded, since standard output is for results."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        words = f"rddl:{domain} needs {{name}}, which is not installed: pip install 'linmdp[rddl]'."
        make = needed("pyRDDLGym", words).make
        needed("rddlrepository", words)  # make reads the instances from it
        yield make
