"""The tables of agents in the linearized games, from stored runs into docs/generated:

.venv/bin/python docs/measure_games.py tables FOLDER   as `linmdp reproduce table-... --out FOLDER` has written them
.venv/bin/python docs/measure_games.py large FOLDER    of `--scale paper` (d = 512), from whatever runs are there so far
"""

from __future__ import annotations

import sys
from pathlib import Path

from linmdp.features.learned import read_model
from linmdp.linearize.measure import linearity
from linmdp.report.games import (
    GAME_SCALES,
    GAMES,
    NAMES,
    Row,
    env_spec,
    learner_specs,
    reward_table,
    space_table,
    time_table,
)
from linmdp.report.paper import TABLES
from linmdp.report.tables import markdown
from linmdp.results.store import existing_store
from linmdp.types import RunResult

FOLDER = Path(__file__).parent / "generated"


def tables(folder: Path) -> None:
    """Copy the tables; headings go one level down, since a page includes them."""
    for item in TABLES:
        text = (folder / f"{item}.md").read_text(encoding="utf-8").partition("\n")[2].strip()
        (FOLDER / f"linearize_{item}.md").write_text(text.replace("\n### ", "\n#### ") + "\n", encoding="utf-8")


def large(folder: Path) -> None:
    """Space, time, reward and regret with d = 512, and how linear those models are."""
    scale, parts, linear = GAME_SCALES["paper"], [], []
    store = existing_store(folder)
    results = [r for r in store.results() if r.episodes == scale.K]
    store.close()
    for game in GAMES:
        path = str(folder / f"{game.lower()}512.safetensors")
        learned = read_model(path)
        found = linearity(learned)
        figures = (found.rank_first, found.times_chance, found.loss, found.reward_r2, found.bellman_error, found.used)
        forms = ("{:.1%}", "{:.0f}", "{:.2f}", "{:.3f}", "{:.3f}", "{:.0f}")
        stopped = f"{learned.meta['settings']['stopped']:,}"
        linear.append((game, stopped, *(form.format(x) for form, x in zip(forms, figures, strict=True))))
        points = float(learned.meta["reward_scale"])
        for mode in ("game", "model"):
            rows = _rows(results, env_spec(path, mode, scale), mode)
            if not rows:
                continue
            parts.append(f"{game}, `mode={mode}`, {max(len(row.runs) for row in rows)} seed(s):")
            parts.append(reward_table(game, mode, rows, scale, points))
            if mode == "game":
                learners = [row for row in rows if row.algorithm in NAMES]
                parts += [space_table(game, learners, scale), time_table(game, learners, scale)]
    head = ("game", "iterations", "ranks first", "times chance", "loss", "reward R^2", "Bellman error", "d in use")
    (FOLDER / "linearize_large_models.md").write_text(markdown(head, linear) + "\n", encoding="utf-8")
    (FOLDER / "linearize_large.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _rows(results: list[RunResult], env: str, mode: str) -> list[Row]:
    names = learner_specs(mode) | {name: (name, name) for name in ("sb3-dqn", "sb3-ppo", "random", "optimal")}
    runs = {spec: [r for r in results if (r.env, r.agent) == (env, spec)] for spec in names}
    return [Row(*names[spec], found) for spec, found in runs.items() if found]


if __name__ == "__main__":
    {"tables": tables, "large": large}[sys.argv[1]](Path(sys.argv[2]))
