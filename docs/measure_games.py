"""The tables of agents in the linearized games, into docs/generated, from the runs that are in a store so far:

.venv/bin/python docs/measure_games.py quick FOLDER    the folder of `linmdp reproduce table-... --out FOLDER`
.venv/bin/python docs/measure_games.py paper FOLDER    the same of `--scale paper` (d = 512)
.venv/bin/python docs/measure_games.py distilled       what benchmarks/distilled.py left in benchmarks/records
.venv/bin/python docs/measure_games.py default FOLDER [SEEDS [JOBS]]    no parameter, in the models alien512.safetensors
    and phoenix512.safetensors of that folder; minutes a run, and what is in the store of the folder is not run again
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.experiments.ceiling import ceiling
from linmdp.experiments.game_tables import GAME_SCALES, GAMES, MODES, GameScale, H, env_spec
from linmdp.experiments.games import policies_of, table_page
from linmdp.experiments.paper import TABLES
from linmdp.experiments.stored_runs import Runs, grouped
from linmdp.features.learned import read_model
from linmdp.linearize.measure import linearity
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import Store, existing_store
from linmdp.runner.batch import Job
from linmdp.runner.registry import make_env
from linmdp.runner.sweep import run_key, run_sweep
from linmdp.types import Array

FOLDER = Path(__file__).parent / "generated"
RECORDS = Path(__file__).parent.parent / "benchmarks" / "records"
EPISODES, FIRST_SEED, EVAL_EVERY = 500, 8000, 20
"""Of the runs with no parameter."""
Policies = dict[tuple[str, str], dict[str, tuple[str, str]]]


def tables(scale_name: str, folder: Path) -> None:
    """Each item as a fragment; headings go one level down, since a page includes them."""
    scale = GAME_SCALES[scale_name]
    paths = {game: str(folder / f"{game.lower()}{scale.d}.safetensors") for game in GAMES}
    models = paths if scale_name == "paper" else {game: game.lower() for game in GAMES}
    store = existing_store(folder)
    found = grouped([r for r in store.results() if r.episodes == scale.K])
    ceilings = {game: ceiling(id, H, store, print) for game, id in GAMES.items()}
    store.close()
    policies = {}
    for game in GAMES:
        for mode in MODES:
            env = env_spec(models[game], mode, scale)
            constant = next((agent for e, agent in found if e == env and agent.startswith("constant")), None)
            policies[game, mode] = policies_of(game, mode, constant)
    if any("mode=model" in env for env, _ in found):
        write(f"linearize_distilled_{scale_name}", distilled(found, models, scale, policies))
    for item in TABLES:
        text = table_page(item, models, scale, found, policies, ceilings).partition("\n")[2].strip()
        write(f"linearize_{item}_{scale_name}", text.replace("\n### ", "\n#### "))


def distilled(found: Runs, models: dict[str, str], scale: GameScale, policies: Policies) -> str:
    """`mode=model`: exact regret per episode, over all and at the end, and the latter over the random policy's."""
    rows = []
    for game, model in models.items():
        env = env_spec(model, "model", scale)
        named = {spec: name for spec, (name, _) in policies[game, "model"].items() if (env, spec) in found}
        curves = {spec: np.array([r.regret for r in found[env, spec]]) for spec in named}
        ends = {spec: (c[:, -1] - c[:, -1 - scale.last]) / scale.last for spec, c in curves.items()}
        for spec, name in named.items():
            share = f"{ends[spec].mean() / ends['random'].mean():.2f}" if "random" in ends else "-"
            all_of_it = _interval(curves[spec][:, -1] / scale.K)
            rows.append((game, name, str(len(curves[spec])), all_of_it, _interval(ends[spec]), share))
    last = f"in the last {scale.last}"
    return markdown(("game", "policy", "seeds", f"regret per episode, all {scale.K}", last, "of random"), rows)


def distilled_large() -> None:
    """LSVI-UCB in the learned models with d = 512: as published, and the best settings of a grid."""
    records = [json.loads((RECORDS / f"{name}.json").read_text()) for name in ("distilled512", "distilled512-2000")]
    rows = []
    for game in records[0]:
        rows.append((game["model"], "random", "-", f"{game['random']:.3f}", f"{game['random']:.3f}", "1.00"))
        for record in records:
            mine = next(g for g in record if g["model"] == game["model"])
            published, *grid = mine["rows"]
            for row in (published, min(grid, key=lambda r: float(r["of_random"]))):
                name = "as published" if row is published else row["setting"].removesuffix(",cap=remaining")
                spans = (_interval(np.array(row[key])) for key in ("each", "late"))
                rows.append((mine["model"], name, f"{mine['episodes']:,}", *spans, f"{row['of_random']:.2f}"))
    head = ("model", "setting", "episodes", "regret per episode, all", "in the last fifth", "of random")
    write("linearize_distilled_large", markdown(head, rows))


def without_parameters(folder: Path, seeds: int, jobs: int | None) -> None:
    """LSVI-UCB with no parameter in the learned models with d = 512: exact regret, beside random play's."""
    envs = {game: f"linearized:model={folder / game.lower()}512.safetensors,mode=model" for game in GAMES}
    planned = [
        Job(env, "lsvi-ucb", EPISODES, FIRST_SEED + seed, EVAL_EVERY) for env in envs.values() for seed in range(seeds)
    ]
    store = Store(folder)
    run_sweep(planned, store, processes=jobs, progress=True)
    found = grouped(list(store.results({run_key(job) for job in planned})))
    store.close()
    rows, last = [], EPISODES // 5
    for game, spec in envs.items():
        env: Any = make_env(spec)
        random = env.optimum.V[0, 0] - policy_value(env.model, uniform_policy(env.model))[0, 0]
        curves = np.array([run.regret for run in found[spec, "lsvi-ucb"]])
        late = (curves[:, -1] - curves[:, -1 - last]) / last
        figures = (_interval(curves[:, -1] / EPISODES), _interval(late), f"{random:.3f}", f"{late.mean() / random:.2f}")
        rows.append((game, str(len(curves)), *figures))
    head = ("game", "seeds", f"regret per episode, all {EPISODES}", f"in the last {last}", "random", "of random")
    write("linearize_distilled_default", markdown(head, rows))


def _interval(values: Array) -> str:
    found = mean_interval(values)
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]" if found.low < found.high else f"{found.mean:.3f}"


def models(folder: Path) -> None:
    """How linear the games are in the features of the large models."""
    rows = []
    for game in GAMES:
        learned = read_model(folder / f"{game.lower()}512.safetensors")
        found = linearity(learned)
        figures = (found.rank_first, found.times_chance, found.loss, found.reward_r2, found.bellman_error, found.used)
        forms = ("{:.1%}", "{:.0f}", "{:.2f}", "{:.3f}", "{:.3f}", "{:.0f}")
        stopped = f"{learned.meta['settings']['stopped']:,}"
        rows.append((game, stopped, *(form.format(x) for form, x in zip(forms, figures, strict=True))))
    head = ("game", "iterations", "ranks first", "times chance", "loss", "reward R^2", "Bellman error", "d in use")
    write("linearize_models_paper", markdown(head, rows))


def write(name: str, text: str) -> None:
    (FOLDER / f"{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "distilled":
        distilled_large()
        raise SystemExit
    if sys.argv[1] == "default":
        seeds, jobs = (int(word) if word else None for word in (*sys.argv[3:], "", "")[:2])
        without_parameters(Path(sys.argv[2]).resolve(), seeds or 1, jobs)
        raise SystemExit
    tables(sys.argv[1], Path(sys.argv[2]))
    if sys.argv[1] == "paper":
        models(Path(sys.argv[2]))
