"""LSVI-UCB on the finite linear MDP distilled from a learned game (`mode=model`), over a grid of beta and lambda.

python benchmarks/distilled.py alien512.safetensors phoenix512.safetensors --device cuda --out DIR

python benchmarks/distilled.py table      from benchmarks/records, into research/games/tables.md

Needs torch and NumPy only. All runs of a game advance together. Writes DIR/distilled.json and prints a line a setting:
exact regret of an episode, over all episodes and in the last fifth, and the latter over that of a random policy.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from linmdp.agents.backend import backend_for
from linmdp.envs.base import LinearModel
from linmdp.envs.planning import optimum, policy_value, uniform_policy
from linmdp.experiments.games import SETTINGS
from linmdp.report.tables import into_pages, markdown
from linmdp.results.stats import mean_interval
from linmdp.runner.lockstep import Run, run_lockstep
from linmdp.runner.registry import make_learner, make_model
from linmdp.types import RunResult

GRID = tuple(f"beta={beta},lam={lam}" for beta, lam in itertools.product((0.01, 0.03, 0.1), (1e-3, 1e-4, 1e-5, 1e-6)))


def play(model: LinearModel, settings: list[str], args: argparse.Namespace) -> list[RunResult]:
    """Every setting with every seed; what they share but for beta, lambda and seed is that of the first."""
    specs = [f"lsvi-ucb:{setting}" for setting in settings for _ in range(args.seeds)]
    runs = [
        Run(make_learner(spec, model.task, args.episodes).lockstep(), spec, i % args.seeds)
        for i, spec in enumerate(specs)
    ]
    return run_lockstep(
        model,
        runs,
        env=model.name,
        episodes=args.episodes,
        backend=backend_for(args.device),
    )


def row(setting: str, results: list[RunResult], random: float, last: int) -> dict[str, Any]:
    """What is kept of the seeds of one setting."""
    curves = np.array([r.regret for r in results])
    late = (curves[:, -1] - curves[:, -1 - last]) / last
    return {
        "setting": setting,
        "each": (curves[:, -1] / curves.shape[1]).tolist(),
        "late": late.tolist(),
        "of_random": float(late.mean() / random),
    }


def distilled(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """One game."""
    start = time.perf_counter()
    model = make_model(f"linearized:model={path},mode=model,anchors={args.anchors}")
    assert model.start == "fixed"  # in state 0
    optimal = float(optimum(model).V[0, 0])
    random = optimal - float(policy_value(model, uniform_policy(model))[0, 0])
    rows = []
    for group in ([SETTINGS["published"]], [f"{s},cap=remaining" for s in GRID]):
        results = play(model, group, args)
        cut = [results[i * args.seeds : (i + 1) * args.seeds] for i in range(len(group))]
        rows += [row(s, runs, random, args.episodes // 5) for s, runs in zip(group, cut, strict=True)]
    for r in rows:
        print(f"{path.stem} {r['setting']:40} {np.mean(r['each']):.4f} {np.mean(r['late']):.4f} {r['of_random']:.2f}")
    sizes = {"S": model.S, "A": model.A, "d": model.d, "H": model.H}
    found = {"model": path.stem, **sizes, "episodes": args.episodes, "random": random, "optimal": optimal, "rows": rows}
    return found | {"seconds": time.perf_counter() - start}


def table() -> None:
    """LSVI-UCB in the learned models with d = 512: as published, and the best settings of a grid."""
    folder = ROOT / "benchmarks" / "records"
    records = [json.loads((folder / f"{name}.json").read_text()) for name in ("distilled512", "distilled512-2000")]
    rows = []
    for game in records[0]:
        rows.append((game["model"], "random", "-", f"{game['random']:.3f}", f"{game['random']:.3f}", "1.00"))
        for record in records:
            mine = next(g for g in record if g["model"] == game["model"])
            published, *grid = mine["rows"]
            for row in (published, min(grid, key=lambda r: float(r["of_random"]))):
                name = "as published" if row is published else row["setting"].removesuffix(",cap=remaining")
                spans = (mean_interval(np.array(row[key])) for key in ("each", "late"))
                cells = (f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in spans)
                rows.append((mine["model"], name, f"{mine['episodes']:,}", *cells, f"{row['of_random']:.2f}"))
    head = ("model", "setting", "episodes", "regret per episode, all", "in the last fifth", "of random")
    into_pages([ROOT / "research/games/tables.md"], "linearize_distilled_large", markdown(head, rows))


def main() -> None:
    if sys.argv[1:] == ["table"]:
        table()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--anchors", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    record = [distilled(path, args) for path in args.models]
    (args.out / "distilled.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
