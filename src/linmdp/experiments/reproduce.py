"""`linmdp reproduce`: the paper's figures, bounds and tables, in the published setting and where the agents learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from linmdp.errors import check_choice, check_int, unknown, without_warnings
from linmdp.experiments import paper
from linmdp.experiments.games import GAME_SCALES, write_game_tables
from linmdp.experiments.paper import FIGURES, ITEMS, SCALES, SETTINGS, Scale
from linmdp.experiments.paper_claims import claims_table
from linmdp.experiments.paper_findings import (
    Found,
    Runs,
    bounds_table,
    choose_beta,
    cost_table,
    paper_figure,
    regret_table,
)
from linmdp.experiments.stored_runs import Say, run_planned
from linmdp.io.files import output_folder, write_atomic
from linmdp.report.plots import pyplot
from linmdp.results.store import Store
from linmdp.results.summary import by_agent
from linmdp.runner.batch import Job


def chosen_items(items: Sequence[str]) -> list[str]:
    """The items asked for: all figures if none is named, everything there is for "all"."""
    if not items:
        return list(FIGURES)
    for item in items:
        if item not in (*ITEMS, "all"):
            unknown("item", item, (*ITEMS, "all"))
    return list(ITEMS if "all" in items else dict.fromkeys(items))


def reproduce(
    items: Sequence[str],
    scale_name: str,
    out: Path,
    jobs: int | None,
    say: Say,
    device: str = "cpu",
    seeds: int | None = None,
) -> str:
    """Run what is missing in the store, draw, and return what was found, as Markdown.

    With device "cuda" the runs whose regret is shown go to a GPU; space and time are measured on processors. `seeds`:
    of tables and the runs whose regret is shown, if not those of the scale. More of them go on from what is
    stored.
    """
    chosen = chosen_items(items)
    pyplot()  # before hours are spent on what cannot be drawn
    scale = SCALES[check_choice("reproduce", "scale", scale_name, tuple(SCALES))]
    check_choice("reproduce", "device", device, ("cpu", "cuda"))
    if seeds is not None:
        scale = scale._replace(seeds=check_int("reproduce", "seeds", seeds, low=1, high=1000))
    store = Store(output_folder(out))
    options = [*["--device cuda"] * (device == "cuda"), *([] if seeds is None else [f"--seeds {seeds}"])]
    command = ["linmdp reproduce", *items, "--scale", scale_name, *options, "--out"]
    store.note("command", f"{' '.join(command)} {out}")
    pages = [f"# The paper's experiments, scale {scale_name}"]
    try:
        with without_warnings():  # they are kept with each run
            drawn = [item for item in chosen if item in FIGURES or item == "bounds"]
            tables = [item for item in chosen if item in paper.TABLES]
            if drawn:
                pages += _synthetic(drawn, scale, out, store, jobs, say, device)
            if tables:
                games = GAME_SCALES[scale_name]
                games = games._replace(seeds=seeds or games.seeds)
                pages.append(write_game_tables(tables, games, out, store, jobs, say))
    finally:
        store.close()
    text = "\n\n".join(pages) + "\n"
    write_atomic(out / "reproduce.md", text.encode())
    return text


def _synthetic(
    chosen: Sequence[str], scale: Scale, out: Path, store: Store, jobs: int | None, say: Say, device: str
) -> list[str]:
    """The figures and the bounds, which are all about one synthetic environment."""

    def found(planned: Iterable[Job], purpose: str) -> Found:
        results = run_planned(list(dict.fromkeys(planned)), store, jobs, say, purpose)
        return {(s.agent, s.episodes): s for s in by_agent(results)}

    tuned = found(paper.in_batches(paper.tuning_jobs(scale, device)), "to choose beta")
    beta, table = choose_beta(tuned, paper.agents("algorithms", scale), scale.tuning_K)
    regret = (job for item in chosen for s in SETTINGS for job in paper.regret_jobs(item, scale, s, beta, device))
    cost = (job for item in chosen for job in paper.cost_jobs(item, scale, beta))
    regrets = found(paper.in_batches(regret), "for regret")
    runs = Runs(regrets, found(paper.longest_first(cost), "for space and time"), scale, beta)
    pages = [
        f"Environment: `{paper.ENV}`.",
        f"## One beta for all\n\nRegret after {scale.tuning_K:,} episodes, {scale.tuning_seeds} seeds, lambda 0.1; "
        f"the least mean is at beta = {beta:g}.\n\n{table}",
    ]
    pages += [_draw(item, runs, out) for item in chosen if item in FIGURES]
    if set(FIGURES) <= set(chosen):  # whose runs serve the rest
        pages.append(claims_table(runs))
    if set(FIGURES) <= set(chosen) or "bounds" in chosen:
        pages.append(bounds_table(runs))
    return pages


def _draw(item: str, runs: Runs, out: Path) -> str:
    """The figure, and what one reads of it."""
    figure, scale, beta = FIGURES[item], runs.scale, runs.beta
    lines = [f"## {item}: {figure.title}", f"The paper: {figure.claim}.", f"![{figure.title}]({item}.png)"]
    if figure.metric == "regret":
        found, needed = runs.regrets, {s: paper.regret_jobs(item, scale, s, beta) for s in SETTINGS}
        lines += [regret_table(runs, paper.agents(figure.family, scale), s) for s in SETTINGS]
    else:
        found, needed = runs.costs, {"learning": paper.cost_jobs(item, scale, beta)}
        shown = dict.fromkeys(job.agent for job in needed["learning"])
        lines.append(cost_table(figure.metric, found, list(shown), scale.K))
    panels = {
        setting: [found[key] for key in dict.fromkeys((job.agent, job.episodes) for job in jobs)]
        for setting, jobs in needed.items()
    }
    paper_figure(item, panels, beta, out)
    return "\n\n".join(lines)
