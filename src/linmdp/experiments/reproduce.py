"""`linmdp reproduce`: the paper's figures, bounds and tables, in the published setting and where the agents learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from linmdp.errors import LinMDPWarning, check_choice, check_int, unknown
from linmdp.experiments.game_tables import GAME_SCALES
from linmdp.experiments.paper import (
    BASELINES,
    ENV,
    FIGURES,
    ITEMS,
    LAMBDA,
    SCALES,
    SETTINGS,
    TABLES,
    Runs,
    Scale,
    agents,
    bounds_runs,
    figure_runs,
    tuning_runs,
    with_setting,
)
from linmdp.experiments.paper_findings import Found, bounds_table, choose_beta, verdict
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
    pyplot()  # before hours are spent on what can not be drawn
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
            tables = [item for item in chosen if item in TABLES]
            if drawn:
                pages += _synthetic(drawn, scale, out, store, jobs, say)
            if tables:
                from linmdp.experiments.games import game_tables

                pages.append(game_tables(tables, GAME_SCALES[scale_name], out, store, jobs, say))
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
    found = _run(_jobs(tuning_runs(scale)), store, jobs, say, "to choose beta")
    beta, table = choose_beta(found, agents("algorithms", scale), scale.tuning_K)
    needed = [r for item in chosen for s in SETTINGS for r in _runs_of(item, scale, s, beta)]
    found = _run(_jobs(needed), store, jobs, say, f"for {', '.join(chosen)}")
    pages = [f"Environment: `{ENV}`.", _tuned(table, beta, scale)]
    for item in chosen:
        pages.append(_draw(item, scale, beta, found, out) if item in FIGURES else _bounds(found, beta))
    return pages


def _runs_of(item: str, scale: Scale, setting: str, beta: float) -> list[Runs]:
    return bounds_runs(scale, setting, beta) if item == "bounds" else figure_runs(item, scale, setting, beta)


def _jobs(runs: Iterable[Runs]) -> list[Job]:
    return [Job(ENV, r.agent, r.episodes, seed, r.eval_every) for r in dict.fromkeys(runs) for seed in range(r.seeds)]


def _run(planned: list[Job], store: Store, jobs: int | None, say: Say, what: str) -> Found:
    """Everything that is planned, from the store or from now."""
    return {(s.agent, s.episodes): s for s in by_agent(run_planned(planned, store, jobs, say, what))}


def _tuned(table: str, beta: float, scale: Scale) -> str:
    return (
        f"## One beta for all\n\nRegret after {scale.tuning_K:,} episodes, {scale.tuning_seeds} seeds, lambda 0.1; "
        f"the least mean is at beta = {beta:g}.\n\n{table}"
    )


def _draw(item: str, scale: Scale, beta: float, found: Found, out: Path) -> str:
    from linmdp.experiments.paper_figures import paper_figure

    figure = FIGURES[item]
    panels = {
        setting: [found[r.agent, r.episodes] for r in figure_runs(item, scale, setting, beta)] for setting in SETTINGS
    }
    paper_figure(item, panels, beta, out)
    lines = [f"## {item}: {figure.title}", f"The paper: {figure.claim}.", f"![{figure.title}]({item}.png)"]
    if item == "fig-regret":
        for setting in SETTINGS:
            lines += _comparison(scale, setting, beta, found)
    return "\n\n".join(lines)


def _comparison(scale: Scale, setting: str, beta: float, found: Found) -> list[str]:
    """The three algorithms at the largest K, what `counts` makes of the first, and the marks beside them."""
    K, three = scale.K[-1], agents("algorithms", scale)
    names = [with_setting(a, setting, beta, scale.storage) for a in three]
    names += [with_setting(three[0], setting, beta, "counts"), *BASELINES]
    rows = [found[name, K] for name in dict.fromkeys(names) if (name, K) in found]
    width = "beta as published" if setting == "published" else f"beta = {beta:g}"
    head = f"{setting.capitalize()} setting ({width}, lambda = {LAMBDA:g}), {K:,} episodes:"
    return [head, comparison_table(rows, setting_name), *verdict(found, three, K, setting, beta, scale.storage)]


def _bounds(found: Found, beta: float) -> str:
    return (
        "## bounds: exponents of K\n\nWhat the paper proves (Remark 1 for LSVI-UCB, Propositions 1 to 3 for the "
        "others; upper bounds), and the slope of log value over log K that was measured, with its 95% interval. Time "
        f"and space as the paper stores its samples.\n\n{bounds_table(found, beta)}"
    )
