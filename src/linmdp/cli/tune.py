"""`linmdp tune`: a search for better parameters, and how much better they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linmdp.cli import options as opt
from linmdp.cli.start import confirm, say, stop
from linmdp.io.units import human_bytes
from linmdp.plugins import imports

if TYPE_CHECKING:
    from linmdp.runner.tune import Search, Setting, Tuned


def tune(
    env: opt.EnvSpec,
    agent: opt.AgentSpec,
    episodes: opt.Episodes = 1000,
    seeds: Annotated[int, typer.Option(help="new seeds that judge the best setting")] = 5,
    budget: Annotated[
        int | None, typer.Option(metavar="N", help="episodes of the search in all; default: 15 K")
    ] = None,
    out: opt.StoreFolder = Path("tuned"),
    jobs: opt.Jobs = None,
    yes: opt.Yes = False,
    max_memory: opt.MaxMemory = None,
    modules: opt.Import = None,
) -> None:
    """Search for better parameters than the defaults. Run it again to resume."""
    from linmdp.results.store import opened_store
    from linmdp.runner.start import prepared
    from linmdp.runner.tune import Search

    search = Search(env, agent, episodes=episodes, seeds=seeds, budget=budget, processes=jobs)
    if search.left_out:
        room = human_bytes(int(search.room))
        say(f"{search.left_out} settings are left out: a run would take more than {room} (--max-memory, fewer --jobs)")
    command = f"linmdp tune {env} {agent} --episodes {episodes} --out {out}"
    with opened_store(out) as store:
        if command not in store.notes("command"):
            runs = -(-search.total_episodes // episodes)
            start = prepared(env, [agent], episodes=episodes, seeds=runs)
            size = start.agents[agent].bytes_after(episodes)
            confirm(start.seconds(start.jobs, jobs), size, yes, "fewer --episodes or a smaller --budget")
        store.note("command", command)
        say(f"{len(search.settings)} settings, about {search.total_episodes:,} episodes; the store is {store.path}")
        try:
            found = search.run(store, processes=jobs, progress=True)
        except KeyboardInterrupt:
            stop(f"stopped: {len(store.keys())} runs are stored in {store.path}. The same command goes on.", 1)
    _show(search, found)


def _show(search: Search, found: Tuned) -> None:
    from linmdp.report.tables import markdown

    same, random = found.best == found.default, found.runs[found.default][0].random_return
    rows = [] if same else [_row("best", found.best, found)]
    rows.append(_row("default", found.default, found))
    rows.append(("random", "", "", "-" if random is None else f"{random:.4g}", "-"))
    print(markdown(("", "env", "agent", "return at the end [95% interval]", "regret per episode"), rows))
    seeds = f"{search.seeds} seeds that the search has not seen"
    if same:
        print("The default is the best that was found.")
    elif found.gain.low > 0:
        print(f"The best is better than the default by {found.gain} an episode ({seeds}).")
    else:
        print(f"The best is NOT clearly better than the default: by {found.gain} an episode ({seeds}).")
    print(f"try: linmdp run {' '.join(found.best)} --episodes {search.episodes}{imports()}")


def _row(name: str, setting: Setting, found: Tuned) -> tuple[str, ...]:
    from linmdp.results.stats import Interval
    from linmdp.results.summary import summarize

    s = summarize(found.runs[setting])
    regret = "-" if s.regret is None else str(Interval(*(value / s.episodes for value in s.regret)))
    return (name, *setting, str(s.end), regret)
