"""A game that can be put back where it was, and a search in it for the best episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmdp.envs.games import make_gym

HELD = 0.8
"""With this probability a playout takes the action of the step before again."""


class Emulator:
    """A game that can be put back where it was, chance included; a lost life ends an episode.

    Parameters
    ----------
    id, kwargs : passed to `gymnasium.make`
    """

    def __init__(self, id: str, seed: int, **kwargs: Any) -> None:
        env = make_gym(id, kwargs)
        env.reset(seed=seed)
        game: Any = env.unwrapped
        self.game, self.ale, self.A = game, game.ale, int(game.action_space.n)
        self.rng = np.random.default_rng(seed)
        self.lives, self.steps = self.ale.lives(), 0

    def state(self) -> Any:
        """All that `restore` needs, the random numbers of the emulator among it."""
        return self.ale.cloneState(include_rng=True)

    def restore(self, state: Any) -> None:
        self.ale.restoreState(state)

    def step(self, action: int) -> tuple[float, bool]:
        """What the action earns, and whether the episode is over."""
        self.steps += 1
        _, reward, over, _, _ = self.game.step(action)
        return float(reward), bool(over) or self.ale.lives() < self.lives

    def playout(self, first: int, H: int) -> tuple[float, list[int]]:
        """At most H steps of random play that begin with an action: what they earn, and the actions."""
        actions, earned, over = [first], *self.step(first)
        while not over and len(actions) < H:
            held = self.rng.random() < HELD
            actions.append(actions[-1] if held else int(self.rng.integers(self.A)))
            reward, over = self.step(actions[-1])
            earned += reward
        return earned, actions


def best_episode(id: str, H: int, steps: int, seed: int, **kwargs: Any) -> float:
    """The largest return in H steps of a game that nested Monte-Carlo search finds in so many steps of the emulator.

    In every state each action is tried with one playout, and the next action of the best episode so far is taken
    (Cazenave 2009, level 1), again and again. The emulator's random numbers are part of its state, so the search
    knows in hindsight which actions stick. No policy knows that: with a search that is good enough, the mean over
    seeds is above what any policy earns.
    """
    emulator = Emulator(id, seed, **kwargs)
    start, best = emulator.state(), -np.inf
    while emulator.steps < steps:
        emulator.restore(start)
        best = max(best, _search(emulator, H))
    return float(best)


def _search(emulator: Emulator, H: int) -> float:
    """One search from where the emulator is: the return of the best episode that it came across."""
    past, best, plan = 0.0, -np.inf, list[int]()
    for h in range(H):
        state = emulator.state()
        for action in range(emulator.A):
            emulator.restore(state)
            earned, actions = emulator.playout(action, H - h)
            if past + earned > best:
                best, plan = past + earned, [*plan[:h], *actions]
        if h >= len(plan):  # the best episode ended here
            break
        emulator.restore(state)
        reward, over = emulator.step(plan[h])
        past += reward
        if over:
            break
    return float(best)
