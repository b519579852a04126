"""What the best known policies of the general suite earn: the anchors between which its scores lie.

    python benchmarks/general_anchors.py [FAMILY...]    writes general-1.json, of these families or of all

Exact by planning where the model is finite, else by play: of a plan on a grid of states, of a beam search, or of
policies made by hand, all of which may look at the hidden state.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from emulator import best_episode

from linmdp.envs.general import NAMES, instance
from linmdp.envs.general.arcade import Ball
from linmdp.envs.general.base import Instance, TableInstance
from linmdp.envs.general.carts import GRAVITY
from linmdp.envs.general.gambles import Bandit
from linmdp.envs.general.physics import Floats, Numbers
from linmdp.envs.general.swings import LEFT, MAIN, RIGHT
from linmdp.envs.planning import uniform_policy
from linmdp.errors import InvalidData, unknown
from linmdp.experiments import study
from linmdp.experiments.suite import GENERAL, SCALES, Anchor, anchors_file, known_anchors
from linmdp.io.files import write_atomic
from linmdp.types import Array, BoolArray, IntArray

PLAYED = 200
"""Episodes that a value is averaged over where it is not computed exactly."""


Policy = Callable[[Any], int]
"""From an instance, hidden state and all, to an action."""


def mean_return(env: Instance, policy: Policy, episodes: int = PLAYED, seed: int = 0) -> float:
    """What a policy that may look at the hidden state earns per episode, by play."""
    env.reset(seed=seed)
    total = 0.0
    for _ in range(episodes):
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(policy(env))
            total, over = total + reward, terminated or truncated
        env.reset()
    return total / episodes


def planned(env: Any) -> Policy:
    """The best policy of a `TableInstance`."""
    Q = env.model.optimum.Q
    return lambda env: int(Q[env.h, env.state].argmax())


def exact_best(env: Any) -> float:
    """The best return of a `TableInstance`."""
    return float(env.model.start @ env.model.optimum.V[0])


def random_return(env: Any) -> float:
    """What random play earns per episode: exactly where the means are known, else by play."""
    if isinstance(env, Bandit):
        return bandits_worth(env, np.mean)
    if isinstance(env, TableInstance):
        return env.model.worth(uniform_policy(env.model))
    rng = np.random.default_rng(0)
    return mean_return(env, lambda env: int(rng.integers(env.A)))


def best_return(name: str, env: Any) -> float:
    """The best known return of an instance of that family."""
    return exact_best(env) if name not in BEST else BEST[name](env)


Nodes = tuple[Array, Array]
"""Points (m, z) and weights (m,) of the quadrature that stands for the noise of a step."""

Step = Callable[[int, Array, int, Array], tuple[Array, Array]]
"""From the step, states (n, k), an action and noise (z,) or (z, n) to the next states (n, k) and rewards (n,)."""


def normal_nodes(dims: int, points: int = 5) -> Nodes:
    """Gauss-Hermite quadrature for independent standard normal noise."""
    x, w = np.polynomial.hermite_e.hermegauss(points)
    grid = np.array(list(product(x, repeat=dims)))
    weights = np.array([np.prod(ws) for ws in product(w / w.sum(), repeat=dims)])
    return grid, weights


class Grid:
    """Values on a grid, with multilinear interpolation between its points and clipping beyond them.

    Parameters
    ----------
    axes : k increasing, evenly spaced arrays
    """

    def __init__(self, axes: Sequence[Array]) -> None:
        self.low = np.array([axis[0] for axis in axes])
        self.unit = np.array([axis[1] - axis[0] for axis in axes])
        self.sizes = tuple(len(axis) for axis in axes)
        self.points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)

    def at(self, values: Array, states: Array) -> Array:
        """Values (points,) interpolated at states (n, k), (n,)."""
        place = np.clip((states - self.low) / self.unit, 0, np.array(self.sizes) - 1)
        corner = np.minimum(place.astype(np.int64), np.array(self.sizes) - 2)
        part = place - corner
        total = np.zeros(len(states))
        for side in product((0, 1), repeat=len(self.sizes)):
            weight = np.prod(np.where(side, part, 1 - part), axis=1)
            total += weight * values[np.ravel_multi_index(tuple((corner + side).T), self.sizes)]
        return total


class GridPlan:
    """The best policy of a task whose hidden state is k numbers; `step` knows how they move, at every step."""

    def __init__(self, axes: Sequence[Array], A: int, H: int, step: Step, nodes: Nodes) -> None:
        self.grid, self.A, self.step, self.nodes = Grid(axes), A, step, nodes
        self.V = np.zeros((H + 1, len(self.grid.points)))
        for h in reversed(range(H)):
            self.V[h] = self.q(h, self.grid.points).max(axis=0)

    def q(self, h: int, states: Array) -> Array:
        """Values of all actions in states (n, k), (A, n)."""
        Q = np.zeros((self.A, len(states)))
        for a in range(self.A):
            for z, weight in zip(*self.nodes, strict=True):
                after, reward = self.step(h, states, a, z)
                Q[a] += weight * (reward + self.grid.at(self.V[h + 1], after))
        return Q

    @property
    def policy(self) -> Policy:
        """Of an instance whose hidden state is its `x`, (k,)."""
        return lambda env: int(self.q(env.h, env.x[None])[:, 0].argmax())


def grid_best(env: Any, plan: GridPlan, episodes: int = 2000) -> float:
    """What a plan earns in an instance whose hidden state is `x`: the mean of many episodes at once."""
    env.reset(seed=0)
    x = np.array([(env.begin(), env.x)[1] for _ in range(episodes)])
    rng, total = np.random.default_rng(0), 0.0
    for h in range(env.H):
        chosen = plan.q(h, x).argmax(axis=0)
        noise = rng.standard_normal((plan.nodes[0].shape[1], episodes))
        for a in range(env.A):
            mine = chosen == a
            x[mine], reward = plan.step(h, x[mine], a, noise[:, mine])
            total += reward.sum()
    return float(total / episodes)


def best_played(env: Any, *policies: Policy, episodes: int = 40) -> float:
    """The best mean return among policies."""
    return max(mean_return(env, policy, episodes) for policy in policies)


def grid_policy(env: Any, low: Any, high: Any, points: tuple[int, ...]) -> Policy:
    """The best policy as planning finds it on a grid of states, with values interpolated between its nodes."""
    grid = Grid([np.linspace(lo, hi, n) for lo, hi, n in zip(low, high, points, strict=True)])
    followed = [env.law(grid.points.T, a, np) for a in range(env.A)]
    V = np.zeros((env.H + 1, len(grid.points)))
    for h in reversed(range(env.H)):
        V[h] = np.max([pay + (1 - over) * grid.at(V[h + 1], np.array(x).T) for x, pay, over in followed], axis=0)

    def policy(env: Any) -> int:
        after = [env.law(env.state, a, Floats) for a in range(env.A)]
        later = grid.at(V[env.h + 1], np.array([x for x, _, _ in after]))
        return int(np.argmax([pay + (1 - over) * v for (_, pay, over), v in zip(after, later, strict=True)]))

    return policy


def beam(env: Any, x: Numbers, guide: Callable[[Numbers], Array], cell: Any, width: int = 1000) -> float:
    """The best return from a state that a beam search finds, in an instance without noise.

    Of the states that are reached at a step, those with the largest return so far plus `guide` are kept, `width` of
    them, and one for each cell of that size (k,). What a plan earns there a policy can earn, too.
    """
    states, earned, best = np.array(x)[:, None], np.zeros(1), -np.inf
    places = np.array([1, 1 << 16, 1 << 32, 1 << 48])[: len(x)]
    for _ in range(env.H):
        tried = [env.law(states, a, np) for a in range(env.A)]
        after = np.concatenate([np.array(step[0]) for step in tried], axis=1)
        returns = np.concatenate([earned + step[1] for step in tried])
        over = np.concatenate([np.broadcast_to(step[2], len(earned)) for step in tried])
        best = max(best, returns[over].max(initial=-np.inf))
        after, returns = after[:, ~over], returns[~over]
        order = np.argsort(-(returns + guide(after)), kind="stable")
        _, first = np.unique(places @ np.floor(after[:, order].T / cell).astype(np.int64).T, return_index=True)
        kept = order[np.sort(first)[:width]]
        states, earned = after[:, kept], returns[kept]
        if not len(earned):
            return float(best)
    return float(max(best, earned.max()))


def beamed(env: Any, guide: Callable[[Numbers], Array], cell: Any, starts: int = 5) -> float:
    """The mean of `beam` over some starts."""
    found = []
    for seed in range(starts):
        env.reset(seed=seed)
        found.append(beam(env, env.state, guide, cell))
    return float(np.mean(found))


def thermostat_plan(env: Any) -> GridPlan:
    """The best policy of a house."""
    axes = [env.wanted + np.linspace(-22, 22, 177), np.linspace(-3, 3, 7) * (env.days + 1e-6)]
    return GridPlan(axes, env.A, env.H, env.after, normal_nodes(1))


def dosing_plan(env: Any) -> GridPlan:
    """The best policy of who sees the depot too."""
    axes = [np.linspace(0, 1.05 * env.doses[-1] / env.leaves, 31), np.linspace(0, 12, 181)]
    return GridPlan(axes, env.A, env.H, env.after, normal_nodes(1, 3))


def controller(env: Any, cost: tuple[float, ...]) -> Policy:
    """The linear-quadratic regulator of the law at the top, rounded to the nearest force; `cost` of the state's parts.

    The Riccati equation is iterated until it settles.
    """
    step, last = 1e-5, env.A - 1
    # column i of F: how the next state follows the i-th number of this one; the two pushes cancel each other
    F = (np.array(env.law(step * np.eye(4), last, np)[0]) + np.array(env.law(step * np.eye(4), 0, np)[0])) / (2 * step)
    g = (np.array(env.law([0.0] * 4, last, Floats)[0]) - env.law([0.0] * 4, 0, Floats)[0]) / (2 * env.forces[-1])
    P = np.diag(cost)
    gain = np.zeros(4)
    for _ in range(2000):
        gain = (g @ P @ F) / (1e-3 + g @ P @ g)
        P = np.diag(cost) + F.T @ P @ (F - np.outer(g, gain))
    forces, (a, b, c, d) = env.forces.tolist(), gain.tolist()

    def policy(env: Any) -> int:
        x, v, angle, turn = env.state
        wanted = -(a * x + b * v + c * angle + d * turn)
        return min(range(len(forces)), key=lambda i: abs(forces[i] - wanted))

    return policy


def poles_best(env: Any) -> float:
    """The best of some controllers, which care more or less for the place and for the angle."""
    costs = ((0.1, 0.1, 1.0, 0.1), (1.0, 0.1, 1.0, 0.1), (1.0, 1.0, 1.0, 1.0), (0.01, 0.01, 1.0, 0.01))
    return best_played(env, *(controller(env, cost) for cost in costs))


def swingups_guide(env: Any, x: Numbers) -> Array:
    """How promising states are: an energy near that of resting upright, and a cart near the middle."""
    energy = env.half * (2 / 3 * x[3] ** 2) / GRAVITY + np.cos(x[2])
    found: Array = -env.unit * (4 * abs(energy - 1) + 2 * (x[0] / env.track) ** 2)
    return found


def arms_guide(env: Any, x: Numbers) -> Array:
    """How promising states are: the height, and the speed that may become height."""
    speed = env.lengths[0] ** 2 * x[2] ** 2 + env.lengths[1] ** 2 * (x[2] + x[3]) ** 2
    found: Array = env.unit * (env.height(x, np) + speed / (2 * env.g))
    return found


def hills_best(env: Any) -> float:
    """Planning, or pushing the way that the car rolls."""
    rolls = [int(np.argmin(env.side * env.pushes)), int(np.argmax(env.side * env.pushes))]
    low, high = env.box
    return best_played(env, grid_policy(env, low, high, (71, 61)), lambda env: rolls[int(env.state[1] >= 0)])


def controlled(gains: Array, env: Any) -> int:
    """Lean against place and speed, brake as the ground comes near."""
    lean, brake, slow, fall, damp, dead = gains
    at, height, vx, vy, angle, spin = env.state
    wanted = min(max(lean * at + brake * vx, -0.5), 0.5)
    turn = wanted - angle - damp * spin
    if vy < -(slow + fall * height) and abs(angle) < 0.7:
        return MAIN
    return 0 if abs(turn) < dead else LEFT if turn > 0 else RIGHT


def landers_best(env: Any) -> float:
    """The best of some drawn gains on few episodes, played on others."""
    rng = np.random.default_rng(0)
    low, high = np.array([0.2, 0.5, 0.05, 0.05, 0.3, 0.03]), np.array([1.0, 3.0, 0.2, 0.4, 1.5, 0.15])
    drawn = rng.uniform(low, high, size=(60, 6))
    tried = [mean_return(env, partial(controlled, gains), 6, seed=1) for gains in drawn]
    first = np.argsort(tried)[-5:]
    chosen = max(first, key=lambda i: mean_return(env, partial(controlled, drawn[i]), 30, seed=2))
    return mean_return(env, partial(controlled, drawn[chosen]), 100, seed=3)


@cache
def _reached(rows: int, columns: int, moves: tuple[tuple[int, int], ...]) -> IntArray:
    """The cell that each move leads to from each cell, (moves, cells); the edge holds whoever would leave the board."""
    row, column = np.indices((rows, columns))
    to = [(np.clip(row + down, 0, rows - 1), np.clip(column + right, 0, columns - 1)) for down, right in moves]
    return np.array([np.ravel_multi_index(cell, (rows, columns)).ravel() for cell in to])


def first_move(pay: Array, at: tuple[int, int], moves: tuple[tuple[int, int], ...], last: Array | float = 0.0) -> int:
    """The best first move on a board where being in a cell at a time pays; a fine of more than 1 ends the walk.

    Parameters
    ----------
    pay : (T, rows, columns), what it pays to be in a cell after step t, as far as that is known
    at : the cell at the start
    last : (rows, columns), what it is worth to be in a cell after all steps
    """
    T, rows, columns = pay.shape
    near, pay = _reached(rows, columns, moves), pay.reshape(T, -1)
    worth = pay[-1] + np.broadcast_to(last, (rows, columns)).ravel()
    for t in reversed(range(T - 1)):
        worth = pay[t] + 0.97 * (pay[t] > -1) * worth[near].max(axis=0)
    return int(worth[near[:, at[0] * columns + at[1]]].argmax())


def asterix_policy(env: Any) -> int:
    """Plan as if nobody else came in."""
    T = env.period * env.columns
    pay = np.full((T, env.rows, env.columns), 0.0)
    pay[:, 1:-1, [0, -1]] -= 0.02  # somebody may come in here
    for t in env.crossing:
        worth, at = (1.0 if t.treasure else -10.0 if env.deadly else -1.0 - env.fine), t.column
        for step in range(T):
            if at == env.columns or at < 0:
                break
            pay[step, t.row, at] += worth
            if (env.time + step + 1) % env.period == 0:
                at += t.way
                if 0 <= at < env.columns:
                    pay[step, t.row, at] += worth
    centre = -0.01 * np.abs(np.arange(env.columns) - (env.columns - 1) / 2)
    return first_move(pay, env.player, env.moves, centre)


LANDINGS = 3
"""How often the ball comes down within the sight of the policy made by hand."""


def promise(env: Any, ball: Ball, bricks: BoolArray, paddle: int, landings: int) -> tuple[float, int]:
    """The bricks that can be hit until the ball has come down so often, and where to be the first time."""
    hits, steps, bricks = 0.0, 1, bricks.copy()
    while (landing := env.landing(ball)) is None:
        ball, hit = env.fly(ball, bricks)
        hits, steps = hits + hit * 0.98**steps, steps + 1
    chances = []
    for at in landing:
        if abs(at - paddle) > steps:
            chances.append((-10.0, at))
        elif landings == 1:
            chances.append((hits, at))
        else:
            later, _ = promise(env, env.caught(ball, at), bricks, at, landings - 1)
            chances.append((hits + 0.98**steps * later, at))
    return max(chances)


def breakout_policy(env: Any) -> int:
    """Be where the ball comes down, on the side that promises more."""
    _, goal = promise(env, env.ball, env.bricks, env.paddle, LANDINGS)
    return int(np.flatnonzero(env.order == np.sign(goal - env.paddle))[0])


def invaders_policy(env: Any) -> int:
    """Keep away from shots, stay under the aliens, and shoot where one will be."""
    bottom, T = env.rows - 1, env.rows
    under = np.any(env.aliens, axis=0)
    pay = np.zeros((T, 1, env.columns))
    if under.any():
        ahead = np.flatnonzero(under) + env.way * env.steps * 2
        pay[:, 0] = -0.02 * np.abs(np.arange(env.columns)[:, None] - ahead[None]).min(axis=1)
    for row, column in env.shots:
        if row < bottom:
            pay[bottom - row - 1, 0, column] -= 10
    best = first_move(pay, (0, env.player), ((0, -1), (0, 0), (0, 1)))
    depth = bottom - 1 - max(np.flatnonzero(env.aliens.any(axis=1)), default=0)
    goes = env.player - round(env.way * env.steps * depth)  # the alien that will be here is there now
    worth = under[env.player] or (0 <= goes < env.columns and under[goes])
    safe = not any(row == bottom - 1 and column == env.player for row, column in env.shots)
    what = 3 if env.shot[0] < 0 and worth and safe else best
    return int(np.flatnonzero(env.order == what)[0])


CONTEXTS = 10_000
"""Contexts that the best return is averaged over where they are infinitely many."""


def bandits_worth(env: Any, of: Callable[[Array], float]) -> float:
    """The best, or the mean, of all actions over many contexts, H times."""
    rng = np.random.default_rng(0)
    return float(env.H * np.mean([of(env.paid(env.draw(rng))) for _ in range(CONTEXTS)]))


def guided(brake: float) -> Policy:
    """The heuristic, which touches down with the engine off; `brake` scales how much of a fall it answers."""
    heuristic: Any = importlib.import_module("gymnasium.envs.box2d.lunar_lander").heuristic

    def policy(env: Any) -> int:
        state = np.array(env.show(), dtype=np.float64)
        state[3] *= brake
        return int(heuristic(env.inner, state))

    return policy


def box2d_best(env: Any) -> float:
    """The heuristic, braking more or less."""
    return max(mean_return(env, guided(brake), 20) for brake in (0.8, 1.0, 1.3))


ROOMS = 8
"""Episodes whose shortest ways are averaged where rooms are drawn anew."""


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


def minigrids_best(env: Any) -> float:
    """The mean over rooms of what the shortest way pays."""
    paid = []
    for seed in range(ROOMS if env.layout is None else 1):
        env.reset(seed=seed)
        steps = shortest(env.inner.unwrapped)
        paid.append(0.0 if steps is None or steps > env.H else 1 - 0.9 * steps / env.H)
    return float(np.mean(paid))


SEARCHED, SEARCHES = 20_000, 2
"""Steps of the emulator in one search, and searches."""


def ram_best(env: Any) -> float:
    """What searches find."""
    found = [best_episode(env.id, env.H, SEARCHED, seed, **env.kwargs) for seed in range(SEARCHES)]
    return float(env.unit * np.mean(found))


def played_by(policy: Policy) -> Callable[[Any], float]:
    """What a policy made by hand earns."""
    return lambda env: mean_return(env, policy, 100)


PLANS: dict[str, Callable[[Any], GridPlan]] = {"thermostat": thermostat_plan, "dosing": dosing_plan}
ARCADE: dict[str, Policy] = {"asterix": asterix_policy, "breakout": breakout_policy, "invaders": invaders_policy}
BEST: dict[str, Callable[[Any], float]] = {
    "poles": poles_best,
    "blind_poles": poles_best,
    "hills": hills_best,
    "landers": landers_best,
    "pendulums": lambda env: best_played(env, grid_policy(env, (-np.pi, -8), (np.pi, 8), (81, 65)), episodes=60),
    "arms": lambda env: beamed(env, partial(arms_guide, env), np.array([0.1, 0.1, 0.3, 0.3])),
    "swingups": lambda env: beamed(env, partial(swingups_guide, env), np.array([0.1, 0.3, 0.1, 0.4])),
    "bandits": lambda env: bandits_worth(env, np.max),
    "box2d_landers": box2d_best,
    "minigrids": minigrids_best,
    "ram_games": ram_best,
    "thermostat": lambda env: grid_best(env, thermostat_plan(env)),
    "dosing": lambda env: grid_best(env, dosing_plan(env)),
    **{name: played_by(policy) for name, policy in ARCADE.items()},
}


TRIED = 200
"""Episodes of each constant policy and of random play in which the shortest is looked for."""


def anchors_of(name: str, number: int) -> Anchor:
    """The anchors of an instance."""
    env = instance(name, number)
    constants = _constants(env)
    random, action = random_return(env), int(np.argmax(constants))
    best = max(best_return(name, instance(name, number)), float(constants[action]))
    if not best > random:
        raise InvalidData(f"Instance {number} of '{name}' must have a policy better than random play. Got {best:g}.")
    return Anchor(random, best, float(constants[action]), action, _shortest(env))


def _constants(env: Instance) -> Array:
    """What an episode is worth to each constant action, (A,)."""
    if isinstance(env, TableInstance):
        return env.model.values()[2]
    return np.array([mean_return(env, _always(a)) for a in range(env.A)])


def _always(action: int) -> Policy:
    return lambda env: action


def _shortest(env: Instance) -> int:
    """Steps of the shortest episode of random and constant play."""
    rng, shortest = np.random.default_rng(1), env.H
    policies = [_always(a) for a in range(env.A)] + [lambda env: int(rng.integers(env.A))]
    env.reset(seed=1)
    for policy in policies:
        for _ in range(TRIED // len(policies) + 1):
            over = False
            while not over:
                _, _, terminated, truncated, _ = env.step(policy(env))
                over = terminated or truncated
            shortest = min(shortest, env.h)
            env.reset()
    return shortest


def write_anchors(names: list[str]) -> None:
    """Compute the anchors of these families, or of all, and write them beside those that are known."""
    for name in names:
        if name not in NAMES:
            unknown("family of the general suite", name, NAMES)
    known, instances = known_anchors(GENERAL), max(study(GENERAL)["instances"][scale] for scale in SCALES)
    for name in names or NAMES:
        known[name] = [anchors_of(name, i)._asdict() for i in range(instances)]
        print(name, *known[name], sep="\n  ", flush=True)
        kept = {each: known[each] for each in NAMES if each in known}
        write_atomic(anchors_file(GENERAL), (json.dumps(kept, indent=1) + "\n").encode())


if __name__ == "__main__":
    write_anchors(sys.argv[1:])
