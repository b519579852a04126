"""The tables of agents in the linearized games (docs, games), from what is in a store so far: give it with --store.

`quick` and `paper` read the folder of `linmdp reproduce table-... --out DIR` at that scale; `linearize_models_paper`
judges the models alien512.safetensors and phoenix512.safetensors of the folder.
"""

from __future__ import annotations

import re
from functools import partial

from linmdp.experiments.games import GAME_SCALES, GAMES, MODES, env_spec, policies_of, table_page
from linmdp.experiments.paper import TABLES
from linmdp.experiments.stored_runs import by_policy
from linmdp.features.learned import read_model
from linmdp.report.tables import markdown
from linmdp.results.store import existing_store
from research.linearize.read import JUDGED, judged
from research.study import Study, columns, write


def tables(scale_name: str, study: Study) -> None:
    """Each item as a fragment."""
    scale = GAME_SCALES[scale_name]
    paths = {game: str(study.store / f"{game.lower()}{scale.d}.safetensors") for game in GAMES}
    models = paths if scale_name == "paper" else {game: game.lower() for game in GAMES}
    store = existing_store(study.store)
    found = by_policy([r for r in store.results() if r.episodes == scale.K])
    store.close()
    policies = {}
    for game in GAMES:
        for mode in MODES:
            env = env_spec(models[game], mode, scale)
            constant = next((agent for e, agent in found if e == env and agent.startswith("constant")), None)
            policies[game, mode] = policies_of(game, mode, constant)
    for item in TABLES:
        text = table_page(item, models, scale, found, policies)
        write(f"linearize_{item}_{scale_name}", at_the_end(text[text.index("### ") :], scale.K, scale.last))


def at_the_end(text: str, K: int, last: int) -> str:
    """Tables with the last snapshot alone, headings one level down, and without the learned models."""
    better = (f"points per episode, last {last}", f"regret, last {last}")
    costs = (f"CPU s, {K} episodes", f"published, {K}", "of published")
    kept = {"policy", "agent", f"total reward, {K}", f"{K} episodes", *better, *costs}

    def short(found: re.Match[str]) -> str:
        names = {name for name in kept if f"| {name} " in found[0]}
        lines = found[0].splitlines(keepends=True)
        if set(better) & names:
            names -= {f"total reward, {K}"}
        if "of published" in names:  # both settings cost the same; what has no published figure goes
            dropped = re.compile(r"[^|]*\|[^|]*, published |.*\| -\s+\|$")
            lines = [line for line in lines if not dropped.match(line)]
        return columns("".join(lines), names) + "\n"

    text = re.sub(r"^### [^\n]*, the learned model.*?(?=^### |\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?:^\|.*\n?)+", short, text, flags=re.MULTILINE)
    return re.sub(r"^In the last .*\n\n?", "", text, flags=re.MULTILINE)


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
