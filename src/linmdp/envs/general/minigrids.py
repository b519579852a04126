"""Tasks of MiniGrid (needs the extra `minigrid`): a goal to walk to, behind lava, crossings or a locked door.

The observation is MiniGrid's partial picture of 7 x 7 cells, three codes each; the goal pays 1 - 0.9 h/H and ends the
episode. Actions that a task does not need are left out in some instances.

Drawn: the task, whether its rooms are the same in all episodes, the number of actions, H. The best return is exact: the
shortest way, by breadth-first search of each room.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np

from linmdp.envs.games import make_gym
from linmdp.envs.general.base import Family, runs
from linmdp.envs.general.foreign import Foreign

WALKS = ("Empty-5x5", "Empty-Random-6x6", "LavaGapS5", "LavaGapS6", "SimpleCrossingS9N1", "DistShift1")
DOORS = ("DoorKey-5x5", "DoorKey-6x6")
ROOMS = 8
"""Episodes whose shortest ways are averaged where rooms are drawn anew."""


class Fewer(gymnasium.ActionWrapper[Any, int, Any]):
    """The first n actions: left, right, forward, pick up, drop, toggle, done."""

    def __init__(self, env: gymnasium.Env[Any, Any], n: int) -> None:
        super().__init__(env)
        self.action_space: Any = gymnasium.spaces.Discrete(n)

    def action(self, action: int) -> int:
        """The same action."""
        return action


def make(rng: np.random.Generator) -> Foreign:
    """One task."""
    door = bool(rng.random() < 0.3)
    name = str(rng.choice(DOORS if door else WALKS))
    H = int(rng.integers(60, 121))
    A = 7 if rng.random() < 0.3 else 6 if door else 3
    layout = None if rng.random() < 0.4 else int(rng.integers(1000))
    inner = make_gym(f"MiniGrid-{name}-v0", {"max_steps": H})
    picture: Any = inner.observation_space["image"]  # type: ignore[index]
    return Foreign(Fewer(inner, A), H=H, space=picture, seen=lambda seen: seen["image"], layout=layout)


def shortest(grid: Any) -> int | None:
    """Steps to the goal from where a MiniGrid environment is; None where it cannot be reached."""
    seen, edge, steps = {_key(grid)}, [grid], 0
    while edge:
        steps, reached = steps + 1, list[Any]()
        for state in edge:
            for action in (0, 1, 2, 3, 5):
                after = copy.deepcopy(state)
                _, reward, terminated, _, _ = after.step(action)
                if terminated and reward > 0:
                    return steps
                if not terminated and _key(after) not in seen:
                    seen.add(_key(after))
                    reached.append(after)
        edge = reached
    return None


def _key(grid: Any) -> Any:
    return tuple(grid.agent_pos), int(grid.agent_dir), grid.carrying is not None, grid.grid.encode().tobytes()


def best(env: Foreign) -> float:
    """The mean over rooms of what the shortest way pays."""
    paid = []
    for seed in range(ROOMS if env.layout is None else 1):
        env.reset(seed=seed)
        steps = shortest(env.inner.unwrapped)
        paid.append(0.0 if steps is None or steps > env.H else 1 - 0.9 * steps / env.H)
    return float(np.mean(paid))


FAMILY = Family(name="minigrids", half="kept", make=make, H=120, episodes=runs(80), best=best, extra="minigrid")
