"""The tables of agents in the linearized games (docs, linearize), from what is in a store so far: give it with --store.

`quick` and `paper` read the folder of `linmdp reproduce table-... --out DIR` at that scale; `linearize_models_paper`
judges the models alien512.safetensors and phoenix512.safetensors of the folder.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from linmdp.experiments.ceiling import ceiling
from linmdp.experiments.game_tables import GAME_SCALES, GAMES, MODES, GameScale, H, env_spec
from linmdp.experiments.games import policies_of, table_page
from linmdp.experiments.paper import TABLES
from linmdp.experiments.stored_runs import Runs, grouped
from linmdp.features.learned import read_model
from linmdp.report.tables import markdown
from linmdp.results.store import existing_store
from research.linearize.read import JUDGED, judged
from research.study import Study, within, write

Policies = dict[tuple[str, str], dict[str, tuple[str, str]]]
precise = partial(within, form=".3f")


def tables(scale_name: str, study: Study) -> None:
    """Each item as a fragment; headings go one level down, since a page includes them."""
    scale = GAME_SCALES[scale_name]
    paths = {game: str(study.store / f"{game.lower()}{scale.d}.safetensors") for game in GAMES}
    models = paths if scale_name == "paper" else {game: game.lower() for game in GAMES}
    store = existing_store(study.store)
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
            all_of_it = precise(curves[spec][:, -1] / scale.K)
            rows.append((game, name, str(len(curves[spec])), all_of_it, precise(ends[spec]), share))
    last = f"in the last {scale.last}"
    return markdown(("game", "policy", "seeds", f"regret per episode, all {scale.K}", last, "of random"), rows)


def models(study: Study) -> str:
    """How linear the games are in the features of the large models."""
    learned = {game: read_model(study.store / f"{game.lower()}512.safetensors") for game in GAMES}
    rows = [(game, f"{one.meta['settings']['stopped']:,}", *judged(one)) for game, one in learned.items()]
    return markdown(("game", "iterations", *JUDGED), rows)


PARTS = {
    "quick": partial(tables, "quick"),
    "paper": partial(tables, "paper"),
    "linearize_models_paper": models,
}
