"""DQN and PPO of Stable-Baselines3 on the games of the page on cells, with as many steps, tuned.

.venv/bin/python docs/measure_networks.py FOLDER tune            each setting with the tuning seed; prints the returns
.venv/bin/python docs/measure_networks.py FOLDER                 the runs that are judged, about half an hour
.venv/bin/python docs/measure_networks.py FOLDER --seeds 5       with so many seeds
.venv/bin/python docs/measure_networks.py FOLDER --jobs 8        in so many processes; default: 1
.venv/bin/python docs/measure_networks.py FOLDER CELLS           the table; CELLS is the folder of measure_cells.py

What was measured is kept in FOLDER: a command that is stopped goes on where it was.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from measure_cells import GENERATED, STUDIES, Game, H, Learned

import linmdp
from linmdp.features.learned import read_model
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.curves import returns
from linmdp.results.stats import Interval, mean_interval
from linmdp.results.store import Store, opened_store
from linmdp.runner.registry import make_agent, make_env

STUDY = STUDIES["cells_games"]
TUNING_SEED = 7000
"""With which the setting of an agent is chosen, in each game by itself."""

DQN = "sb3-dqn:learning_starts=500,target_update_interval=500,exploration_fraction=0.3,"
PPO = "sb3-ppo:ent_coef=0.01,"
GRID = {
    "DQN": (
        DQN + "learning_rate=0.001",
        DQN + "learning_rate=0.001,gamma=0.9",
        DQN + "learning_rate=0.001,gamma=0.95,train_freq=1",
    ),
    "PPO": (
        PPO + "learning_rate=0.001,n_steps=512",
        PPO + "learning_rate=0.001,n_steps=256,gamma=0.9",
        PPO + "learning_rate=0.001,n_steps=128,gamma=0.95",
    ),
}
"""Settings for few steps; the library's own are for a million."""


class Network(NamedTuple):
    """A run of an agent in a game."""

    game: str
    spec: str
    seed: int

    @property
    def key(self) -> str:
        """Under which a store knows it."""
        return f"{self.game}, {self.spec}, {STUDY.episodes} episodes, seed {self.seed}"

    def run(self) -> Learned:
        """The RAM is scaled to [0, 1], and so are rewards: the scale of the shipped model makes points of them."""
        episodes, model = STUDY.episodes, self.game.lower()
        env = make_env(f"linearized:model={model},mode=game")
        assert env.task.H == H
        run = linmdp.run(
            env, make_agent(self.spec, env, episodes), episodes=episodes, seed=self.seed, eval_every=episodes
        )
        late = float(returns(run)[-episodes // 5 :].mean()) * float(read_model(model).meta["reward_scale"])
        return Learned(late, run.peak_bytes, 1000 * run.cpu_seconds / run.costs[-1][3])


def learned(store: Store, runs: Sequence[Network], jobs: int = 1) -> list[Learned]:
    """What came of the runs; those that the store does not know are made now, and printed."""
    missing = [run for run in runs if not store.notes(run.key)]
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(Network.run)(run) for run in missing)
    for run, result in zip(missing, found, strict=True):
        store.note(run.key, json.dumps(result))
        print(*run, result, flush=True)
    return [Learned(*json.loads(store.notes(run.key)[-1])) for run in runs]


def tuned(agent: str, game: str, store: Store) -> str:
    """The setting that earns most in the tuning run of that game."""
    runs = learned(store, [Network(game, spec, TUNING_SEED) for spec in GRID[agent]])
    return max(zip(GRID[agent], runs, strict=True), key=lambda pair: pair[1].late)[0]


def tune(store: Store, jobs: int) -> None:
    """Every setting with the tuning seed; prints what is new."""
    settings = [spec for grid in GRID.values() for spec in grid]
    learned(store, [Network(game, spec, TUNING_SEED) for game in STUDY.games for spec in settings], jobs)


def judged(store: Store, agent: str, game: str, seeds: int) -> list[Network]:
    """The runs of a row of the table."""
    spec = tuned(agent, game, store)
    return [Network(game, spec, STUDY.first_seed + i) for i in range(seeds)]


def judge(store: Store, seeds: int, jobs: int) -> None:
    """The runs of the table, seed by seed."""
    tune(store, jobs)
    rows = [judged(store, agent, game, seeds) for game in STUDY.games for agent in GRID]
    learned(store, [run for of_a_seed in zip(*rows, strict=True) for run in of_a_seed], jobs)


def table(store: Store, cells: Path, cell_store: Store, seeds: int) -> str:
    """Everyone in both games."""
    rows = list[tuple[str, ...]]()
    for game in STUDY.games:
        ours = Game(game, cells, STUDY, cell_store)
        runs = ours.learned()
        rows.append((game, "cells", str(len(runs)), str(_late(runs)), *_costs(runs)))
        for name, action in (("random play", None), (f"action {ours.best_constant} alone", ours.best_constant)):
            rows.append((game, name, str(STUDY.seeds), str(mean_interval(ours.each_seed(action))), "", ""))
        for agent in GRID:
            mine = judged(store, agent, game, seeds)
            found, setting = learned(store, mine), mine[0].spec.partition(":")[2]
            rows.append((game, f"{agent}: {setting}", str(seeds), str(_late(found)), *_costs(found)))
    head = ("game", "who", "seeds", "last fifth", "memory", "CPU ms a step, game included")
    words = f"{STUDY.episodes} episodes of {H} steps, seeds from {STUDY.first_seed} on, 95% intervals."
    return f"{words}\n\n{markdown(head, rows)}\n"


def _late(runs: Iterable[Learned]) -> Interval:
    return mean_interval(np.array([run.late for run in runs]))


def _costs(runs: list[Learned]) -> tuple[str, str]:
    return human_bytes(max(run.bytes for run in runs)), f"{min(run.milliseconds for run in runs):.2f}"


def main() -> None:
    """Tune, run, or write the table."""
    parser = ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("given", nargs="?", metavar="tune or CELLS")
    parser.add_argument("--seeds", type=int, default=STUDY.seeds)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds, given = options.seeds, options.given
    with opened_store(options.folder) as store:
        if given == "tune":
            tune(store, options.jobs)
            return
        judge(store, seeds, options.jobs)
        if given:
            cells = Path(given).resolve()
            with opened_store(cells) as cell_store:
                (GENERATED / "cells_networks.md").write_text(table(store, cells, cell_store, seeds))


if __name__ == "__main__":
    main()
