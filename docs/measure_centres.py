"""The tables and the figure of the page on bounded memory, from the stores of its sweeps. What they lack is run.

.venv/bin/python docs/measure_centres.py STORE    about 10 minutes on two cores from an empty store
.venv/bin/python docs/measure_centres.py STORE links            the table of examples/links.toml alone: 4 minutes
.venv/bin/python docs/measure_centres.py STORE bounded-12000    that of examples/bounded-12000.toml alone: 50 minutes

With `--stored` at the end nothing is run, and the table has the runs that are there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

import linmdp
from linmdp.agents.storage import centres, cover
from linmdp.agents.widths import theorem_width
from linmdp.io.files import output_folder
from linmdp.io.units import human_bytes
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep

DOCS = Path(__file__).parent
SIZES = ((10, 5, 1000), (10, 20, 10**6), (30, 50, 12_000), (30, 50, 10**9))
P, LAM = 0.1, 1.0
VARIANTS = ((1, 1.5), (6, 1.2), (6, 1.5), (6, 2.0))
TRIED = (
    ("synthetic:S=2000,A=5,d=8,H=20", "lsvi-ucb:beta=0.05,lam=0.01,replan=0.02,storage=centres,M=16", 300),
    ("gym:MountainCar-v0", "lsvi-ucb:storage=centres,M=256", 60),
)
COLOURS = {"counts": "black", "centres": "C0", "merged": "C4", "fold": "C1", "fixed": "C3", "adaptive": "C2"}


def bound_table() -> str:
    """What the theorem says before the certificate is added."""
    rows = []
    for d, H, K in SIZES:
        beta, T = theorem_width(d=d, H=H, K=K, lam=LAM, p=P), K * H
        bound = 2 * H * math.sqrt(2 * T * math.log(1 / P))
        bound += 2 * beta * H * math.sqrt(2 * d * K * math.log(1 + K / (LAM * d)))
        constant = beta / (d * H * math.sqrt(math.log(2 * d * T / P)))
        rows.append((f"d={d}, H={H}, K={K:,}", f"{beta:,.0f}", f"{constant:.2f}", f"{bound:,.0f}", f"{T:,}"))
    return markdown(("sizes", "beta_0", "C", "first two terms", "H K"), rows)


def kind(agent: str) -> str:
    """The storage, or the schedule, that bounds the memory of an agent."""
    return next((name for name in COLOURS if name in agent), agent.partition(":")[0])


def result_table(summaries: Sequence[Summary]) -> str:
    """What every agent lost or earned, its certificate, and its bytes."""
    rows = []
    for s in summaries:
        outcome = s.regret or s.reward
        digits = 1 if s.regret else 0
        shown = f"{outcome.mean:.{digits}f} [{outcome.low:.{digits}f}, {outcome.high:.{digits}f}]"
        certificate = "-" if s.certificate is None else f"{s.certificate:.3g}"
        held = human_bytes(s.agent_bytes) if s.agent_bytes else "-"
        rows.append((s.env, s.agent, shown, certificate, held, f"{s.cpu_seconds:.0f}"))
    return markdown(("environment", "agent", "regret or mean return", "certificate", "bytes held", "CPU s"), rows)


def figure(groups: Sequence[Sequence[Summary]]) -> None:
    """One panel for each environment: what is lost against the bytes held, and the certificate of centres below."""
    panels, axes = plt.subplots(2, len(groups), figsize=(5.5 * len(groups), 6), sharex="col", height_ratios=(2, 1))
    for column, (top, bottom) in enumerate(axes.T):
        for name in dict.fromkeys(kind(s.agent) for s in groups[column]):
            mine = [s for s in groups[column] if kind(s.agent) == name]
            outcomes = [s.regret or s.reward for s in mine]
            if name == "random":
                top.axhline(outcomes[0].mean, color="grey", linestyle=":", label="random play")
                continue
            sizes = [s.agent_bytes / 1024 for s in mine]
            spread = [[o.mean - o.low for o in outcomes], [o.high - o.mean for o in outcomes]]
            style = {"color": COLOURS[name], "marker": "o", "capsize": 2, "label": name}
            top.errorbar(sizes, [o.mean for o in outcomes], yerr=spread, **style)
            if name == "centres":
                bottom.plot(sizes, [s.certificate or 0.0 for s in mine], color=COLOURS[name], marker="o")
        first, plain = groups[column][0], FuncFormatter(lambda value, _: f"{value:g}")
        sizes = [s.agent_bytes / 1024 for s in groups[column] if s.agent_bytes]
        limits = 0.8 * min(sizes), 1.25 * max(sizes)
        bottom.set_xlim(*limits)
        top.set_title(f"{first.env}, {first.episodes:,} episodes", fontsize=9)
        top.set_ylabel("regret" if first.regret else "mean return of an episode")
        bottom.set_ylabel("certificate of centres")
        bottom.set_xlabel("KiB held")
        bottom.set_xscale("log")
        if first.regret:
            top.set_yscale("log")
            low, high = top.get_ylim()
            top.set_yticks([y for y in (25.0, 50.0, 100.0, 200.0, 400.0) if low <= y <= high])
        for axis in (top.yaxis, bottom.xaxis):
            axis.set_major_formatter(plain)
            axis.set_minor_formatter(NullFormatter())
        bottom.set_xticks([2.0**i for i in range(6, 14) if limits[0] <= 2.0**i <= limits[1]])
        bottom.set_ylim(bottom=0)
        top.legend(fontsize=8)
        for axis in (top, bottom):
            axis.grid(alpha=0.3)
    panels.tight_layout()
    panels.savefig(DOCS / "images/bounded-memory.png", dpi=110)


def choice_table() -> str:
    """How many centres stand for a next state, and how fast the radius grows; seeds that judge nothing else."""
    rows, usual = [], (cover.NEIGHBOURS, centres.WIDER)
    for variant in VARIANTS:
        cover.NEIGHBOURS, centres.WIDER = variant
        cells = []
        for spec, agent, episodes in TRIED:
            env = linmdp.make_env(spec)
            runs = [
                linmdp.run(env, linmdp.make_agent(agent, env), episodes=episodes, seed=seed, eval_every=20)
                for seed in (100, 101)
            ]
            results = [r.reward / episodes if r.final_regret is None else r.final_regret for r in runs]
            cells.append(", ".join(f"{result:.1f}" for result in results))
        rows.append((str(variant[0]), str(variant[1]), *cells))
    cover.NEIGHBOURS, centres.WIDER = usual
    what = [f"{spec}, {agent.partition('storage=centres,')[2]}, K={episodes}" for spec, agent, episodes in TRIED]
    return markdown(("centres for a state", "growth of the radius", *what), rows)


def stored(folder: str, name: str, *, run: bool) -> list[Summary]:
    """The runs of a sweep in examples/, in its order; of each environment with the seeds that all its agents have."""
    store, jobs = Store(output_folder(Path(folder))), plan(read_sweep(DOCS.parent / f"examples/{name}.toml"))
    if run:
        run_sweep(jobs, store, progress=True)
    place = {(job.env, job.agent): i for i, job in enumerate(jobs)}
    results = list(store.results({run_key(job) for job in jobs}))
    played = {(r.env, r.agent, r.seed) for r in results}
    agents = {env: [agent for of, agent in place if of == env] for env, _ in place}
    whole = [r for r in results if all((r.env, agent, r.seed) in played for agent in agents[r.env])]
    return sorted(by_agent(whole), key=lambda s: place[s.env, s.agent])


def apart_table(summaries: Sequence[Summary]) -> str:
    """What every agent lost or earned, how much that is of what the first one did, and its bytes."""
    rows, firsts = [], {s.env: s for s in reversed(summaries)}
    for s in summaries:
        mean, first = ((x.regret or x.reward).mean for x in (s, firsts[s.env]))
        end = "-" if s.end is None else f"{s.end.mean:.3g}"
        certificate = "-" if s.certificate is None else f"{s.certificate:.3g}"
        numbers = (str(s.seeds), f"{mean:.3g}", f"{mean / first:.2f}", end, certificate, human_bytes(s.agent_bytes))
        rows.append((s.env, s.agent, *numbers))
    header = ("environment", "agent", "seeds", "regret or mean return", "of the first", "return at the end")
    return markdown((*header, "certificate", "bytes held"), rows)


def main() -> None:
    """Write all of it, or the table of one sweep."""
    folder, *names = (word for word in sys.argv[1:] if word != "--stored")
    for name in names:
        table = apart_table(stored(folder, name, run="--stored" not in sys.argv))
        (DOCS / f"generated/{name.replace('-', '_')}.md").write_text(table + "\n")
    if names:
        return
    (DOCS / "generated/centres_bound.md").write_text(bound_table() + "\n")
    (DOCS / "generated/centres_choice.md").write_text(choice_table() + "\n")
    summaries = stored(folder, "bounded", run=True)
    (DOCS / "generated/centres.md").write_text(result_table(summaries) + "\n")
    envs = dict.fromkeys(s.env for s in summaries)
    figure([[s for s in summaries if s.env == env] for env in envs])


if __name__ == "__main__":
    main()
