"""The tables of the page on cells. What was measured is kept in FOLDER: a command that is stopped goes on where it was.

.venv/bin/python docs/measure_cells.py FOLDER                          all of them, about an hour
.venv/bin/python docs/measure_cells.py FOLDER cells_games --seeds 5    some of them, with so many seeds
.venv/bin/python docs/measure_cells.py FOLDER cells_sweep --games 8    the first so many games
.venv/bin/python docs/measure_cells.py FOLDER telling                  prints the games that can be in the sweep
.venv/bin/python docs/measure_cells.py FOLDER cells_seeds              how the seeds of Phoenix differ

Cells are chosen once for a game, in 10,000 steps of random play with seed 0. Runs have seeds of their own, those below.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import linmdp
from linmdp.agents.incumbent import BEST, CONSTANT, NEWEST
from linmdp.experiments.cell_picture import write_picture
from linmdp.experiments.linearization import write_cells
from linmdp.features.cells import read_cells
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.curves import returns
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.store import Store, opened_store
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import Array

GENERATED = Path(__file__).parent / "generated"
H, WARMUP, AGENT = 50, 10_000, "lsvi-ucb-fold"
TRIAL_SEED, TRIAL, EPISODES = 1000, 4, 40
"""Episodes in which a constant action is tried, and those in which it and random play are judged, with each seed."""
DRAWN = "Alien"
GAMES = (
    "AirRaid", "Asteroids", "Atlantis", "Atlantis2", "BankHeist", "Berzerk", "Boxing", "Carnival",
    "ChopperCommand", "Darkchambers", "Defender", "DoubleDunk", "Frostbite", "Galaxian", "JourneyEscape", "Kaboom",
    "Pacman", "Qbert", "Riverraid", "SirLancelot", "Surround", "Tennis", "UpNDown", "VideoPinball", "YarsRevenge",
)  # fmt: skip
"""All that `telling` names but those which rules were made with: see the page."""


def telling() -> list[str]:
    """Games in which 20 episodes of random play do not all earn the same, and at least 3 of them something.

    In most games nothing is paid within so few steps: there is nothing to learn from.
    """
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    ids = [id for id in gymnasium.registry if id.startswith("ALE/") and id.endswith("-v5")]
    names, found = sorted(id.removeprefix("ALE/").removesuffix("-v5") for id in ids), []
    for name in names:
        env, rng, earned = gymnasium.make(f"ALE/{name}-v5", obs_type="ram"), np.random.default_rng(0), list[float]()
        for k in range(20):
            env.reset(seed=None if k else 0)
            steps = (env.step(int(rng.integers(env.action_space.n))) for _ in range(H))
            earned.append(0.0)
            for _, reward, terminated, truncated, _ in steps:
                earned[-1] += float(reward)
                if terminated or truncated:
                    break
        if len(set(earned)) > 1 and np.count_nonzero(earned) >= 3:
            found.append(name)
    return found


class Study(NamedTuple):
    """Which games, how many episodes, and which seeds."""

    games: tuple[str, ...]
    episodes: int
    seeds: int
    first_seed: int


STUDIES = {
    "cells_games": Study(("Alien", "Phoenix"), 500, 10, 9200),
    "cells_sweep": Study(GAMES, 100, 3, 6000),
}


LOOKED_AT = Study(("Phoenix",), 500, 10, 7015)
"""Seeds that rules may be made with, so that one may look at what they do."""


class Learned(NamedTuple):
    """A run: the mean return of its last fifth, the most bytes, and the CPU time of a step."""

    late: float
    bytes: int
    milliseconds: float


class Game:
    """A game with its cells, which are chosen and written first; what was measured of it is in a store."""

    def __init__(self, name: str, folder: Path, study: Study, store: Store) -> None:
        self.name, self.study, self.store, path = name, study, store, folder / f"{name}.safetensors"
        if not path.exists():
            write_cells(f"ALE/{name}-v5", None, path, transitions=WARMUP, H=H, seed=0, say=lambda _: None)
        self.cells = read_cells(path)
        self.spec = f"gym:ALE/{name}-v5,H={H},features=cells,model={path}"

    @cached_property
    def env(self) -> Any:
        """The game."""
        return make_env(self.spec)

    def remembered(self, key: str, found: Callable[[], Any]) -> Any:
        """What the store knows under that key; if nothing, what is found, which it then knows."""
        key = f"{self.name}, {key}"
        if not self.store.notes(key):
            self.store.note(key, json.dumps(found()))
        return json.loads(self.store.notes(key)[-1])

    def learned(self) -> list[Learned]:
        """What is kept of the runs of the learner, by seed."""
        study = self.study
        seeds = range(study.first_seed, study.first_seed + study.seeds)
        name = f"{AGENT}, {study.episodes} episodes"
        return [Learned(*self.remembered(f"{name}, seed {seed}", partial(self._run, seed))) for seed in seeds]

    def _run(self, seed: int) -> Learned:
        episodes = self.study.episodes
        agent: Any = make_agent(AGENT, self.env, episodes)
        run = linmdp.run(self.env, agent, episodes=episodes, seed=seed, eval_every=episodes)
        late = float(returns(run)[-episodes // 5 :].mean())
        return Learned(late, run.peak_bytes, 1000 * run.cpu_seconds / run.costs[-1][3])

    def course(self, seed: int) -> tuple[Any, ...]:
        """How a run went: what each fifth of it earned, cells seen, who acts at the end, and what is known of them."""
        study = self.study
        agent: Any = make_agent(AGENT, self.env, study.episodes)
        run = linmdp.run(self.env, agent, episodes=study.episodes, seed=seed, eval_every=study.episodes)
        storage, found = agent._planner.storage, returns(run)
        incumbent = storage.incumbent
        who = {BEST: "the best plan", NEWEST: "the newest plan"}.get(incumbent.acting, f"action {incumbent.action}")
        number, best = incumbent.episodes[BEST, :2].tolist()
        constant = float(incumbent.episodes[CONSTANT:, 1].max())
        fifths = [round(float(part.mean()), 1) for part in np.array_split(found, 5)]
        late = found[-study.episodes // 5 :]
        return *fifths, round(float(late.std()), 1), storage.seen, who, int(number), round(best, 1), constant

    def earned(self, action: int | None, seed: int, episodes: int) -> float:
        """The mean return of a constant action, or of random play."""
        key = f"action {action}, {episodes} episodes, seed {seed}"
        return float(self.remembered(key, lambda: played(self.env, action, seed, episodes)))

    def each_seed(self, action: int | None) -> Array:
        """The same with each of the seeds that count, (seeds,)."""
        study = self.study
        seeds = range(study.first_seed, study.first_seed + study.seeds)
        return np.array([self.earned(action, seed, EPISODES) for seed in seeds])

    def alone(self) -> float:
        """CPU milliseconds of a step of the game without a learner: the least of three times 10 episodes."""
        return float(self.remembered("game alone", lambda: min(milliseconds(self.env, 10) for _ in range(3))))

    @cached_property
    def best_constant(self) -> int:
        """The constant action that is best with a seed of its own."""
        return max(range(self.cells.A), key=lambda a: self.earned(a, TRIAL_SEED, TRIAL))


def played(env: Any, action: int | None, seed: int, episodes: int) -> float:
    """The mean return of a constant action, or of random play: points of the game, not what a learner is paid."""
    rng, total = np.random.default_rng(seed), 0.0
    for k in range(episodes):
        env.reset(seed=None if k else seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(env.task.A)) if action is None else action)
            over = terminated or truncated
        total += env.earned
    return total / episodes


def milliseconds(env: Any, episodes: int) -> float:
    """CPU time of a step of random play, resets included."""
    rng, steps = np.random.default_rng(0), 0
    env.reset(seed=0)  # which loads the game, and takes long
    began = process_time()
    for _ in range(episodes):
        env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(env.task.A)))
            steps, over = steps + 1, terminated or truncated
    return 1000 * (process_time() - began) / steps


class Scores(NamedTuple):
    """What each of them earns in a game: mean over seeds, with its interval."""

    learned: Interval
    random: Interval
    constant: Interval

    @property
    def normalised(self) -> float:
        """0 is random play; 1 is as far from it as the best constant action is."""
        apart = abs(self.constant.mean - self.random.mean)
        return (self.learned.mean - self.random.mean) / apart if apart else np.nan


def row_of(game: Game) -> tuple[Scores, tuple[str, ...]]:
    """One game: what was found, what random play and the best constant action earn, and what was learned."""
    runs, cells = game.learned(), game.cells
    simple = [mean_interval(game.each_seed(action)) for action in (None, game.best_constant)]
    scores = Scores(mean_interval(np.array([run.late for run in runs])), *simple)
    return scores, (
        game.name,
        f"{' '.join(map(str, cells.columns))}; {cells.C} of {cells.A}",
        str(scores.random),
        f"{scores.constant} ({game.best_constant})",
        str(scores.learned),
        f"{scores.normalised:.2f}",
        human_bytes(max(run.bytes for run in runs)),
        f"{min(run.milliseconds for run in runs):.2f} ({game.alone():.2f})",
    )


def table(study: Study, name: str, folder: Path, store: Store) -> None:
    """A row for each game, written after each: what is there is whole if the rest does not run."""
    rows, scores = [], []
    head = ("game", "bytes, classes of actions", "random", "best constant", "cells, last fifth")
    head = (*head, "normalised", "memory", "CPU ms a step, game included (game alone)")
    for game in study.games:
        played = Game(game, folder, study, store)
        if game == DRAWN:
            names = played.env.env.unwrapped.get_action_meanings()
            write_picture(played.env, names, GENERATED.parent / "images" / f"cells_{game.lower()}.png")
        found, row = row_of(played)
        rows.append(row)
        scores.append(found)
        print(*row, sep=" | ", flush=True)
        words = (
            f"{study.episodes} episodes of {H} steps, {study.seeds} seeds from {study.first_seed} on, 95% intervals."
        )
        (GENERATED / f"{name}.md").write_text(f"{words}\n\n{markdown(head, rows)}\n\n{verdict(scores)}\n")


def verdict(scores: Sequence[Scores]) -> str:
    """In how many games is it above the others?"""
    n = len(scores)
    beside = {
        "random play": [(s.learned, s.random) for s in scores],
        "the best constant action": [(s.learned, s.constant) for s in scores],
    }
    said = []
    for other, pairs in beside.items():
        higher, apart = sum(a.mean > b.mean for a, b in pairs), sum(a.low > b.high for a, b in pairs)
        below = sum(a.high < b.low for a, b in pairs)
        said.append(f"above {other} in {higher}, with intervals apart in {apart}, and clearly below it in {below}")
    median = np.median([s.normalised for s in scores if s.normalised == s.normalised] or [0.0])
    return f"Of {n} games: {'; '.join(said)}. Median normalised score: {median:.2f}."


def seeds_table(folder: Path, store: Store) -> None:
    """A row for each of the seeds that are looked at, written after each."""
    head = ("seed", *(f"fifth {i}" for i in range(1, 6)), "sd of the last", "cells seen", "who acts at the end")
    head = (*head, "episodes of the best plan", "its mean", "best constant action, once")
    rows, (name,) = list[tuple[str, ...]](), LOOKED_AT.games
    game = Game(name, folder, LOOKED_AT, store)
    for seed in range(LOOKED_AT.first_seed, LOOKED_AT.first_seed + LOOKED_AT.seeds):
        found = game.remembered(f"course of seed {seed}", partial(game.course, seed))
        rows.append((str(seed), *map(str, found)))
        print(*rows[-1], sep=" | ", flush=True)
        words = f"{name}, {LOOKED_AT.episodes} episodes of {H} steps; bytes {' '.join(map(str, game.cells.columns))}."
        (GENERATED / "cells_seeds.md").write_text(f"{words}\n\n{markdown(head, rows)}\n")


def main() -> None:
    """Write the tables that are named, or all."""
    folder, *given = sys.argv[1:]
    options = {given[i].removeprefix("--"): int(given[i + 1]) for i in range(len(given)) if given[i].startswith("--")}
    if "telling" in given:
        print(*telling())
        return
    with opened_store(Path(folder)) as store:
        if "cells_seeds" in given:
            seeds_table(Path(folder).resolve(), store)
            return
        for name in [name for name in given if name in STUDIES] or list(STUDIES):
            study = STUDIES[name]
            games = study.games[: options.get("games")]
            study = study._replace(games=games, seeds=options.get("seeds", study.seeds))
            table(study, name, Path(folder).resolve(), store)


if __name__ == "__main__":
    main()
