"""`linmdp reproduce table-...`: the linearized games in every mode, with the published figures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from linmdp.experiments import game_tables as tables
from linmdp.experiments import study
from linmdp.experiments.game_tables import GAMES, MODES, NAMES, GameScale, Row, env_spec
from linmdp.experiments.stored_runs import Runs, Say, grouped, run_planned
from linmdp.features.learned import read_model
from linmdp.io.files import write_atomic
from linmdp.results.store import Store
from linmdp.runner.batch import Job
from linmdp.types import RunResult

EVAL_EVERY = 5
TRIAL_SEED = 1000
"""Constant actions are tried with a seed of their own, so that the runs of the best one are an unbiased estimate."""

STEPS = TRANSITIONS = 50_000
"""Of the training, at the scale of the paper."""


def write_game_tables(
    items: Sequence[str], scale: GameScale, out: Path, store: Store, jobs: int | None, say: Say
) -> str:
    """Run what the tables need, write each as ITEM.md, and return them all."""
    models = trained_models(scale, out, say)
    modes = tuple(MODES) if "table-reward" in items else ("game",)
    best = _best_constants(models, modes, scale, store, jobs, say) if "table-reward" in items else {}
    policies = {(g, mode): policies_of(g, mode, best.get((g, mode))) for mode in modes for g in models}
    planned = [
        Job(env_spec(models[g], mode, scale), agent, scale.K, seed, EVAL_EVERY)
        for (g, mode), agents in policies.items()
        for agent in agents
        for seed in range(scale.seeds)
    ]
    found = grouped(run_planned(planned, store, jobs, say, f"for {', '.join(items)}"))
    pages = [table_page(item, models, scale, found, policies) for item in items]
    for item, page in zip(items, pages, strict=True):
        write_atomic(out / f"{item}.md", page.encode() + b"\n")
    return "\n\n".join(pages)


def trained_models(scale: GameScale, out: Path, say: Say) -> dict[str, str]:
    """The model of each game: a shipped one, or one in the output folder, which is trained first if it is missing."""
    if scale.d == 64:
        return {game: game.lower() for game in GAMES}
    paths = {game: out / f"{game.lower()}{scale.d}.safetensors" for game in GAMES}
    for game, path in paths.items():
        if not path.exists():
            say(f"training d={scale.d} on {game}, {STEPS:,} iterations: minutes on a GPU, half an hour on a CPU")
            _train(GAMES[game], path, out / f"{game.lower()}.data.safetensors", scale.d)
    return {game: str(path) for game, path in paths.items()}


def _train(env_id: str, path: Path, data: Path, d: int) -> None:
    from linmdp.experiments.linearization import dataset_of, train_model, training_settings

    settings = training_settings(d=d, steps=STEPS, device="auto")
    train_model(dataset_of(env_id, data, settings.seed, transitions=TRANSITIONS), settings, path)


def _best_constants(
    models: Mapping[str, str], modes: Sequence[str], scale: GameScale, store: Store, jobs: int | None, say: Say
) -> dict[tuple[str, str], str]:
    """The best constant action for each game and mode: by exact regret where it is known, else by reward."""
    tried = [
        Job(env_spec(model, mode, scale), f"constant:action={action}", scale.trial, TRIAL_SEED, scale.trial)
        for model in models.values()
        for mode in modes
        for action in range(read_model(model).A)
    ]
    results = run_planned(tried, store, jobs, say, "to try every constant action")

    def value(r: RunResult) -> float:
        return r.reward if r.regret is None else -float(r.regret[-1])

    envs = {(game, mode): env_spec(model, mode, scale) for game, model in models.items() for mode in modes}
    return {key: max((r for r in results if r.env == env), key=value).agent for key, env in envs.items()}


def policies_of(game: str, mode: str, constant: str | None) -> dict[str, tuple[str, str]]:
    """Everything in the tables of a game and mode: spec -> (name, algorithm); `constant` is the best of its kind."""
    found = tables.learner_specs(mode)
    if mode == "game" and find_spec("stable_baselines3") is not None:
        found |= {spec: (name, spec) for spec, name in tables.OTHERS[game].items()}
    if constant is not None:
        found |= {constant: (f"{constant}, the best", "constant"), "random": ("random", "random")}
        if mode == "model":
            found["optimal"] = ("optimal", "optimal")
    return found


def table_page(
    item: str,
    models: Mapping[str, str],
    scale: GameScale,
    found: Runs,
    policies: Mapping[tuple[str, str], Mapping[str, tuple[str, str]]],
) -> str:
    """One item: a table for each game (and mode), of the policies that have run."""
    parts = [f"## {item}: the linearized games, d = {scale.d}", NOTES[item]]
    for game, model in models.items():
        points = float(read_model(model).meta["reward_scale"])
        for mode in MODES if item == "table-reward" else ("game",):
            rows = list[Row]()
            for spec, (name, algorithm) in policies.get((game, mode), {}).items():
                if runs := found.get((env_spec(model, mode, scale), spec)):
                    rows.append(Row(name, algorithm, runs))
            if rows:
                parts += [f"### {game}, {MODES[mode]}", *_tables(item, game, mode, rows, scale, points)]
    return "\n\n".join(parts)


def _tables(item: str, game: str, mode: str, rows: list[Row], scale: GameScale, points: float) -> list[str]:
    """The table of one game and mode, and what it says of the learners."""
    if item == "table-reward":
        table = tables.reward_table(game, mode, rows, scale, points)
        learns = any(row.algorithm in NAMES for row in rows)
        return [table, tables.comparison(rows, scale, points)] if mode == "game" and learns else [table]
    costly = [row for row in rows if row.algorithm not in ("constant", "random")]
    return [(tables.space_table if item == "table-space" else tables.time_table)(game, costly, scale)]


SEEDS = "Means over the seeds, with 95% intervals where they differ."
NOTES = {item: f"{SEEDS} {' '.join(note.split())}" for item, note in study("games")["notes"].items()}
