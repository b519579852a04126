"""DQN and PPO of Stable-Baselines3 on the games of the page on cells, with as many steps, tuned.

.venv/bin/python docs/measure_networks.py FOLDER tune            each setting with the tuning seed; prints the returns
.venv/bin/python docs/measure_networks.py FOLDER                 the runs that are judged, about half an hour
.venv/bin/python docs/measure_networks.py FOLDER --seeds 5       with so many seeds
.venv/bin/python docs/measure_networks.py FOLDER CELLS           the table; CELLS is the folder of measure_cells.py

What was measured is kept in FOLDER: a command that is stopped goes on where it was.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
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
    """An agent in a game, and what the store knows of it."""

    game: str
    spec: str
    store: Store

    def learned(self, seed: int) -> Learned:
        """A run with that seed, made now if the store does not know it."""
        key = f"{self.game}, {self.spec}, {STUDY.episodes} episodes, seed {seed}"
        if not self.store.notes(key):
            self.store.note(key, json.dumps(self._run(seed)))
        return Learned(*json.loads(self.store.notes(key)[-1]))

    def _run(self, seed: int) -> Learned:
        """The RAM is scaled to [0, 1], and so are rewards: the scale of the shipped model makes points of them."""
        episodes, model = STUDY.episodes, self.game.lower()
        env = make_env(f"linearized:model={model},mode=game")
        assert env.task.H == H
        run = linmdp.run(env, make_agent(self.spec, env, episodes), episodes=episodes, seed=seed, eval_every=episodes)
        late = float(returns(run)[-episodes // 5 :].mean()) * float(read_model(model).meta["reward_scale"])
        return Learned(late, run.peak_bytes, 1000 * run.cpu_seconds / run.costs[-1][3])


def tuned(agent: str, game: str, store: Store) -> str:
    """The setting that earns most in the tuning run of that game."""
    return max(GRID[agent], key=lambda spec: Network(game, spec, store).learned(TUNING_SEED).late)


def tune(store: Store) -> None:
    """Print what each setting earns."""
    for game in STUDY.games:
        for spec in (spec for settings in GRID.values() for spec in settings):
            print(game, TUNING_SEED, spec, Network(game, spec, store).learned(TUNING_SEED), flush=True)


def judge(store: Store, seeds: int) -> None:
    """The runs of the table, seed by seed."""
    for seed in range(STUDY.first_seed, STUDY.first_seed + seeds):
        for game in STUDY.games:
            for agent in GRID:
                spec = tuned(agent, game, store)
                print(game, seed, spec, Network(game, spec, store).learned(seed), flush=True)


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
            spec = tuned(agent, game, store)
            found = [Network(game, spec, store).learned(STUDY.first_seed + i) for i in range(seeds)]
            rows.append((game, f"{agent}: {spec.partition(':')[2]}", str(seeds), str(_late(found)), *_costs(found)))
    head = ("game", "who", "seeds", "last fifth", "memory", "CPU ms a step, game included")
    words = f"{STUDY.episodes} episodes of {H} steps, seeds from {STUDY.first_seed} on, 95% intervals."
    return f"{words}\n\n{markdown(head, rows)}\n"


def _late(runs: Iterable[Learned]) -> Interval:
    return mean_interval(np.array([run.late for run in runs]))


def _costs(runs: list[Learned]) -> tuple[str, str]:
    return human_bytes(max(run.bytes for run in runs)), f"{min(run.milliseconds for run in runs):.2f}"


def main() -> None:
    """Tune, run, or write the table."""
    folder, *given = sys.argv[1:]
    seeds = int(given.pop(given.index("--seeds") + 1)) if "--seeds" in given else STUDY.seeds
    given = [word for word in given if word != "--seeds"]
    with opened_store(Path(folder)) as store:
        if given == ["tune"]:
            tune(store)
            return
        judge(store, seeds)
        if given:
            cells = Path(given[0]).resolve()
            with opened_store(cells) as cell_store:
                (GENERATED / "cells_networks.md").write_text(table(store, cells, cell_store, seeds))


if __name__ == "__main__":
    main()
