"""`linmdp reproduce`: the paper's figures, bounds and tables, in the published setting and where the agents learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from linmdp.errors import LinMDPWarning, check_choice, check_int, unknown
from linmdp.experiments import paper
from linmdp.experiments.game_tables import GAME_SCALES
from linmdp.experiments.paper import FIGURES, ITEMS, SCALES, SETTINGS, Scale
from linmdp.experiments.paper_findings import Found, bounds_table, choose_beta, paper_figure, verdict
from linmdp.experiments.stored_runs import Say, run_planned
from linmdp.io.files import output_folder, write_atomic
from linmdp.report.style import pyplot, setting_name
from linmdp.report.tables import comparison_table
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


def reproduce(items: Sequence[str], scale_name: str, out: Path, jobs: int | None, say: Say) -> str:
    """Run what is missing in the store, draw, and return what was found, as Markdown."""
    chosen = chosen_items(items)
    pyplot()  # before hours are spent on what cannot be drawn
    scale = SCALES[check_choice("reproduce", "scale", scale_name, tuple(SCALES))]
    if jobs is not None:
        check_int("run", "jobs", jobs, low=1)
    store = Store(output_folder(out))
    store.note("command", f"linmdp reproduce {' '.join(items)} --scale {scale_name} --out {out}".replace("  ", " "))
    pages = [f"# The paper's experiments, scale {scale_name}"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinMDPWarning)  # they are kept with each run
            drawn = [item for item in chosen if item in FIGURES or item == "bounds"]
            tables = [item for item in chosen if item in paper.TABLES]
            if drawn:
                pages += _synthetic(drawn, scale, out, store, jobs, say)
            if tables:
                from linmdp.experiments.games import write_game_tables

                pages.append(write_game_tables(tables, GAME_SCALES[scale_name], out, store, jobs, say))
            if "tasks" in chosen:
                from linmdp.experiments.tasks import compare_tasks

                pages.append(compare_tasks(scale_name, out, store, jobs, say))
    finally:
        store.close()
    text = "\n\n".join(pages) + "\n"
    write_atomic(out / "reproduce.md", text.encode())
    return text


def _synthetic(chosen: Sequence[str], scale: Scale, out: Path, store: Store, jobs: int | None, say: Say) -> list[str]:
    """The figures and the bounds, which are all about one synthetic environment."""

    def found(planned: Iterable[Job], purpose: str) -> Found:
        results = run_planned(list(dict.fromkeys(planned)), store, jobs, say, purpose)
        return {(s.agent, s.episodes): s for s in by_agent(results)}

    tuned = found(paper.tuning_jobs(scale), "to choose beta")
    beta, table = choose_beta(tuned, paper.agents("algorithms", scale), scale.tuning_K)
    needed = [job for item in chosen for s in SETTINGS for job in paper.jobs_of(item, scale, s, beta)]
    results = found(needed, f"for {', '.join(chosen)}")
    pages = [
        f"Environment: `{paper.ENV}`.",
        f"## One beta for all\n\nRegret after {scale.tuning_K:,} episodes, {scale.tuning_seeds} seeds, lambda 0.1; "
        f"the least mean is at beta = {beta:g}.\n\n{table}",
    ]
    for item in chosen:
        pages.append(_draw(item, scale, beta, results, out) if item in FIGURES else bounds_table(results, beta))
    return pages


def _draw(item: str, scale: Scale, beta: float, found: Found, out: Path) -> str:
    figure = FIGURES[item]
    panels = {}
    for setting in SETTINGS:
        shown = dict.fromkeys((job.agent, job.episodes) for job in paper.jobs_of(item, scale, setting, beta))
        panels[setting] = [found[key] for key in shown]
    paper_figure(item, panels, beta, out)
    lines = [f"## {item}: {figure.title}", f"The paper: {figure.claim}.", f"![{figure.title}]({item}.png)"]
    if item == "fig-regret":
        for setting in SETTINGS:
            lines += _comparison(scale, setting, beta, found)
    return "\n\n".join(lines)


def _comparison(scale: Scale, setting: str, beta: float, found: Found) -> list[str]:
    """The three algorithms at the largest K, what `counts` makes of the first, and the baselines beside them."""
    K, three = scale.K[-1], paper.agents("algorithms", scale)
    names = [paper.with_setting(a, setting, beta, scale.storage) for a in three]
    names += [paper.with_setting(three[0], setting, beta, "counts"), *paper.BASELINES]
    rows = [found[name, K] for name in dict.fromkeys(names) if (name, K) in found]
    width = "beta as published" if setting == "published" else f"beta = {beta:g}"
    head = f"{setting.capitalize()} setting ({width}, lambda = {paper.LAMBDA:g}), {K:,} episodes:"
    return [head, comparison_table(rows, setting_name), *verdict(found, three, K, setting, beta, scale.storage)]
