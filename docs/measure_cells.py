"""The tables of the page on cells. Run it, and the files in docs/generated are written anew, in one process:

.venv/bin/python docs/measure_cells.py                      all of them, about half an hour
.venv/bin/python docs/measure_cells.py cells_games --seeds 5   some of them, with so many seeds
.venv/bin/python docs/measure_cells.py cells_sweep --games 8   the first so many games

Cells are chosen once for a game, in 10,000 steps of random play with seed 0. Runs have the seeds from 5000 on.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from linmdp.experiments.linearization import write_cells
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.curves import returns
from linmdp.results.stats import mean_interval
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import Array, RunResult

FOLDER = Path(__file__).parent / "generated"
FIRST_SEED, TRIAL_SEED, H, WARMUP = 5000, 1000, 50, 10_000
AGENT = "lsvi-ucb-fold"
GAMES = (
    "Alien", "Phoenix", "Amidar", "Assault", "Asterix", "BankHeist", "BeamRider", "Boxing", "Carnival", "Centipede",
    "CrazyClimber", "DemonAttack", "Enduro", "Gopher", "Jamesbond", "Krull", "MsPacman", "NameThisGame", "Qbert",
    "Riverraid", "RoadRunner", "SpaceInvaders", "Tutankham", "VideoPinball",
)  # fmt: skip


def spec_of(game: str, folder: Path) -> str:
    """The game with cells, which are chosen and written first."""
    path = folder / f"{game}.safetensors"
    write_cells(f"ALE/{game}-v5", None, path, transitions=WARMUP, H=H, seed=0, say=lambda _: None)
    return f"gym:ALE/{game}-v5,H={H},features=cells,model={path}"


def played(spec: str, agent: str, episodes: int, seeds: int, seed: int = FIRST_SEED) -> list[RunResult]:
    """The runs of one agent."""
    jobs = jobs_for(spec, [agent], episodes=episodes, seeds=seeds, seed=seed, eval_every=episodes)
    return list(run_jobs(jobs, processes=1))


def best_constant(spec: str, A: int, episodes: int, seeds: int) -> tuple[int, Array]:
    """The constant action that is best with a seed of its own, and its mean returns with those of the runs."""
    tried = [returns(played(spec, f"constant:action={a}", 5, 1, TRIAL_SEED)[0]).mean() for a in range(A)]
    best = int(np.argmax(tried))
    return best, np.array([returns(r).mean() for r in played(spec, f"constant:action={best}", episodes, seeds)])


def row_of(game: str, spec: str, episodes: int, seeds: int) -> tuple[str, ...]:
    """One game: what was found, what random play and the best constant action earn, and what was learned."""
    from linmdp.runner.registry import make_env

    env = make_env(spec)
    runs, A = played(spec, AGENT, episodes, seeds), env.task.A
    late = np.array([returns(run)[-episodes // 5 :].mean() for run in runs])
    random = np.array([np.mean(run.random_returns) for run in runs])
    action, constant = best_constant(spec, A, 20, seeds)
    classes = env.chosen["cells"].removeprefix("of numbers ")
    return (
        game,
        classes,
        f"{random.mean():.1f}",
        f"{constant.mean():.1f} ({action})",
        str(mean_interval(late)),
        ", ".join(f"{x:.0f}" for x in late),
        human_bytes(max(run.peak_bytes for run in runs)),
        f"{1000 * sum(run.cpu_seconds for run in runs) / (H * episodes * seeds):.2f}",
    )


HEAD = (
    "game",
    "cells",
    "random",
    "best constant",
    "last fifth [95%]",
    "each seed",
    "memory",
    "CPU ms a step, game included",
)


def table(games: tuple[str, ...], episodes: int, seeds: int, name: str) -> None:
    """A row for each game, written after each: what is there is whole if the rest does not run."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for game in games:
            rows.append(row_of(game, spec_of(game, Path(folder)), episodes, seeds))
            words = f"{episodes} episodes of {H} steps, {seeds} seeds from {FIRST_SEED} on."
            (FOLDER / f"{name}.md").write_text(f"{words}\n\n{markdown(HEAD, rows)}\n")
            print(*rows[-1], sep=" | ", flush=True)


def main() -> None:
    """Write the tables that are named, or all."""
    given = sys.argv[1:]
    options = {given[i].removeprefix("--"): int(given[i + 1]) for i in range(len(given)) if given[i].startswith("--")}
    names = [name for name in given if name.startswith("cells_")] or ["cells_games", "cells_sweep"]
    if "cells_games" in names:
        table(GAMES[:2], 500, options.get("seeds", 10), "cells_games")
    if "cells_sweep" in names:
        table(GAMES[2 : 2 + options.get("games", len(GAMES))], 100, options.get("seeds", 2), "cells_sweep")


if __name__ == "__main__":
    main()
