"""The tables of agents in the linearized games, into docs/generated, from the runs that are in a store so far:

.venv/bin/python docs/measure_games.py quick FOLDER    the folder of `linmdp reproduce table-... --out FOLDER`
.venv/bin/python docs/measure_games.py paper FOLDER    the same of `--scale paper` (d = 512)
.venv/bin/python docs/measure_games.py distilled       what benchmarks/distilled.py left in benchmarks/records
.venv/bin/python docs/measure_games.py default FOLDER [SEEDS]    no parameter, in the models alien512.safetensors and
    phoenix512.safetensors of that folder; minutes a run, and a command that is stopped goes on where it was
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import linmdp
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.experiments.game_tables import GAME_SCALES, GAMES, MODES, GameScale, env_spec
from linmdp.experiments.games import policies_of, table_page
from linmdp.experiments.paper import TABLES
from linmdp.experiments.stored_runs import Runs, grouped
from linmdp.features.learned import read_model
from linmdp.linearize.measure import linearity
from linmdp.report.tables import markdown
from linmdp.results.stats import mean_interval
from linmdp.results.store import existing_store
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import Array

FOLDER = Path(__file__).parent / "generated"
RECORDS = Path(__file__).parent.parent / "benchmarks" / "records"
EPISODES, FIRST_SEED = 500, 8000
"""Of the runs with no parameter."""
Policies = dict[tuple[str, str], dict[str, tuple[str, str]]]


def tables(scale_name: str, folder: Path) -> None:
    """Each item as a fragment; headings go one level down, since a page includes them."""
    scale = GAME_SCALES[scale_name]
    paths = {game: str(folder / f"{game.lower()}{scale.d}.safetensors") for game in GAMES}
    models = paths if scale_name == "paper" else {game: game.lower() for game in GAMES}
    store = existing_store(folder)
    found = grouped([r for r in store.results() if r.episodes == scale.K])
    store.close()
    policies = {}
    for game in GAMES:
        for mode in MODES:
            env = env_spec(models[game], mode, scale)
            constant = next((agent for e, agent in found if e == env and agent.startswith("constant")), None)
            policies[game, mode] = policies_of(mode, constant)
    if any("mode=model" in env for env, _ in found):
        write(f"linearize_distilled_{scale_name}", distilled(found, models, scale, policies))
    for item in TABLES:
        text = table_page(item, models, scale, found, policies).partition("\n")[2].strip()
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


def without_parameters(folder: Path, seeds: int) -> None:
    """LSVI-UCB with no parameter in the learned models with d = 512: a row is written for each game that is done."""
    rows = []
    for game in GAMES:
        env: Any = make_env(f"linearized:model={folder / game.lower()}512.safetensors,mode=model")
        V, random = env.optimum.V[0, 0], policy_value(env.model, uniform_policy(env.model))[0, 0]
        regrets = []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            agent: Any = make_agent("lsvi-ucb", env, EPISODES)
            kept = folder / f"{game.lower()}-default-{seed}"
            run = linmdp.run(env, agent, episodes=EPISODES, seed=seed, eval_every=20, checkpoint=kept, every=10)
            assert run.regret is not None
            regrets.append(run.regret)
        curves, last = np.array(regrets), EPISODES // 5
        late = (curves[:, -1] - curves[:, -1 - last]) / last
        share = f"{late.mean() / (V - random):.2f}"
        rows.append(
            (game, str(seeds), _interval(curves[:, -1] / EPISODES), _interval(late), f"{V - random:.3f}", share)
        )
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
        without_parameters(Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
        raise SystemExit
    tables(sys.argv[1], Path(sys.argv[2]))
    if sys.argv[1] == "paper":
        models(Path(sys.argv[2]))
