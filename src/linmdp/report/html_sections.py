"""The parts of a report's page that show results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from linmdp.io.units import human_bytes
from linmdp.report.figures import ENDS, YS, Drawn
from linmdp.report.html_elements import Cell, agent, bullets, data_uri, details, spec, swatch, table, text
from linmdp.report.narrative import comparisons, flagged, headlines, number, of_random, with_interval
from linmdp.report.provenance import equivalent
from linmdp.report.section_data import MEASURES, Growth, Section
from linmdp.report.style import LineStyle, short_name
from linmdp.report.tables import HEADER, comparison_rows
from linmdp.results.stats import Interval
from linmdp.results.verdict import verdict, without_advice
from linmdp.types import RunResult

Styles = Mapping[str, LineStyle]
SENTENCES = 4
"""More of them are folded away."""
MOST_ROWS = 1000


def header(name: str, results: Sequence[RunResult]) -> str:
    """Title, one sentence of what there is, and the switch of light and dark."""
    choices = "".join(
        f'<label><input type="radio" name="theme" value="{value}"{" checked" * (value == "auto")}>{value}</label>'
        for value in ("auto", "light", "dark")
    )
    return (
        f'<header class="top"><div><p class="kicker">linmdp report</p><h1>{text(name)}</h1>'
        f"<p>{text(_extent(results))}</p></div>"
        f'<fieldset class="switch controls"><legend>Colours</legend>{choices}</fieldset></header>'
    )


def navigation(sections: Sequence[Section], grown: Sequence[str], *, pictures: bool) -> str:
    """The table of contents."""
    items = ['<li><a href="#summary">Summary</a></li>']
    for env in dict.fromkeys(s.env for s in sections):
        links = [f'<a href="#section-{s.number}">K = {s.episodes:,}</a>' for s in sections if s.env == env]
        if env in grown:
            links.append(f'<a href="#growth-{1 + list(grown).index(env)}">growth in K</a>')
        items.append(f'<li><span class="env-name">{spec(env)}</span> {" ".join(links)}</li>')
    last = [("gallery", "Figures in the folder")] * pictures + [
        ("settings", "Settings"),
        ("made", "How it was made"),
        ("cite", "How to cite it"),
    ]
    items += [f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in last]
    return f'<nav class="contents" aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def overview(sections: Sequence[Section], left_out: int) -> str:
    """The whole in a few sentences, or in a row for each environment and K."""
    parts = ['<section id="summary"><h2>Summary</h2>']
    if len(sections) == 1:
        parts.append(bullets(_verdicts(sections[0]), "lead") + _findings(sections[0]))
    else:
        rows = [_overview_row(s) for s in sections]
        result = "its regret" if all(s.measure == "regret" for s in sections) else "its result"
        head = ("environment", "K", "best agent", "verdict", result, "of random", "its memory", "agents", "seeds")
        left = ("best agent", "verdict")
        parts.append(table("The best agent of each environment and K", head, rows, text_columns=left))
    warned = flagged([r for s in sections for r in s.runs])
    if warned:
        runs = len({id(r) for found in warned.values() for r in found})
        total = sum(len(s.runs) for s in sections)
        parts.append(f'<p class="alarm">{runs} of {total} runs carry a warning; the sections below say which.</p>')
    if left_out:
        more = "pairs of environment and K are" if left_out > 1 else "pair of environment and K is"
        parts.append(f'<p class="alarm">{left_out} more {more} stored and not shown here.</p>')
    return "".join([*parts, "</section>"])


def section_block(s: Section, styles: Styles, figures: Mapping[str, Drawn], *, folded: bool, alone: bool) -> str:
    """One environment and K; all but the largest K of an environment are folded. `alone`: the summary says it all."""
    findings = "" if alone else bullets(_verdicts(s), "lead") + _findings(s)
    curves = _figure(s, figures, f"{s.measure}-{s.number}", "curves")
    front = _figure(s, figures, f"tradeoff-{s.number}", "tradeoff")
    plots = curves + _figure(s, figures, f"returns-{s.number}", "returns")
    missing = f"{YS[s.measure].capitalize()} over episodes is not in results.jsonl; a sweep stores it."
    body = "".join(
        [
            findings,
            _controls(f"section-{s.number}", [x.agent for x in s.summaries], styles, bands=s.seeds > 1, main=s.main),
            f'<div class="front">{front}</div>',
            "" if s.curves else f"<p>{missing}</p>",
            f'<div class="plots">{plots}</div>',
            _results(s, styles),
            details("The command that makes these figures", _again(s)),
            _warnings(s),
            details(f"Diagnostics of each run <small>{len(s.runs)} runs</small>", _diagnostics(s, styles)),
        ]
    )
    title = f"{s.episodes:,} episodes"
    best = headlines(s)[0]
    if folded:
        head = f'<summary><h3>{title}</h3> <span class="hint">{text(best)}</span></summary>'
        return f'<details class="panel fold" id="section-{s.number}">{head}{body}</details>'
    return f'<section class="panel" id="section-{s.number}"><h3>{title}</h3>{body}</section>'


def _again(s: Section) -> str:
    commands = "".join(f"<pre>{text(command)}</pre>" for command in equivalent(s.runs))
    return f"{commands}<p>With <code>--out DIR</code> and <code>linmdp report DIR</code> they come out as here.</p>"


def _results(s: Section, styles: Styles) -> str:
    """The table of the main comparison, and folded that of all settings."""
    main = s.focused()
    if len(main.summaries) == len(s.summaries):
        return _results_table(s, styles)
    return _results_table(main, styles) + details(f"All {len(s.summaries)} settings", _results_table(s, styles))


def growth_block(index: int, grown: Sequence[Growth], styles: Styles, figures: Mapping[str, Drawn]) -> str:
    """Regret, memory and time against K, with fitted exponents."""
    plots = "".join(
        f'<div class="plot" data-plot="{i}" tabindex="0" role="group" aria-label="{text(m)} over K"></div>'
        for i, m in enumerate(MEASURES)
    )
    rows = [
        [
            Cell(agent(styles[g.agent])),
            Cell(str(g.seeds)),
            Cell(", ".join(f"{K:,}" for K in g.sizes)),
            *(_exponent(g.exponents.get(m), g.seeds) for m in MEASURES),
        ]
        for g in grown
    ]
    caption = "Exponents p fitted to K^p, with 95% intervals over seeds"
    head = ("agent", "seeds", "K", *MEASURES)
    return (
        f'<section class="panel" id="growth-{index}"><h3>Growth in K</h3>'
        f"<p>On two logarithmic axes a power of K is a straight line, and its slope is the exponent.</p>"
        f"{_controls(f'growth-{index}', [g.agent for g in grown], styles, bands=False)}"
        f'<figure><div class="three">{plots}</div>{_paper(figures, f"growth-{index}", "Growth in K")}'
        f"<figcaption>Regret at the end, peak memory and CPU seconds of a run against K; mean and 95% interval. "
        f"{_beside(f'growth-{index}')}</figcaption></figure>{table(caption, head, rows)}</section>"
    )


def _extent(results: Sequence[RunResult]) -> str:
    agents, envs = len({r.agent for r in results}), len({r.env for r in results})
    seeds, sizes = len({r.seed for r in results}), sorted({r.episodes for r in results})
    K = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return (
        f"{_count(len(results), 'run')} of {_count(agents, 'agent')} in {_count(envs, 'environment')}, "
        f"{K} episode{'s' * (sizes[-1] > 1)}, {_count(seeds, 'seed')}."
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _overview_row(s: Section) -> list[Cell]:
    best = min(s.learners or s.summaries, key=s.loss)
    ratio = of_random(s, best)
    level = s.level(best)
    return [
        Cell(f'<a href="#section-{s.number}">{spec(s.env)}</a>'),
        Cell(f"{s.episodes:,}", s.episodes),
        Cell(text(short_name(best.agent))),
        Cell(text(_short_verdict([r for r in s.runs if r.agent == best.agent]) or "–")),
        Cell(f"{with_interval(level, best.seeds)} {'per episode' * (s.measure == 'reward')}", level.mean),
        Cell("–" if ratio is None else f"{ratio:.2f}"),
        Cell(human_bytes(best.agent_bytes), best.agent_bytes),
        Cell(str(len(s.summaries) + s.left_out)),
        Cell(str(s.seeds)),
    ]


def _verdicts(s: Section) -> list[str]:
    """For each agent of the main comparison: has it learned anything?"""
    runs = {a: [r for r in s.runs if r.agent == a] for a in s.main}
    return [f"{short_name(a)}: {words}" for a, mine in runs.items() if (words := _short_verdict(mine))]


def _short_verdict(runs: Sequence[RunResult]) -> str:
    return without_advice(verdict(runs))


def _findings(s: Section) -> str:
    first, rest = headlines(s), comparisons(s)
    if s.left_out:
        shown = len(s.summaries)
        first.append(f"{shown + s.left_out} agents have run here; the {shown} with the best {s.measure} are shown.")
    if any(r.eval_every > 1 for r in s.runs) and s.measure == "regret":
        every = max(r.eval_every for r in s.runs)
        first.append(f"Regret was evaluated in one of every {every} episodes and held in between.")
    if len(rest) > SENTENCES:
        return bullets(first) + details(
            f"{len(rest)} comparisons with {text(short_name(s.learners[0].agent))}", bullets(rest)
        )
    return bullets([*first, *rest])


def _controls(
    panel: str, agents: Sequence[str], styles: Styles, *, bands: bool, main: Sequence[str] | None = None
) -> str:
    """Switches of the plots; agents that are not in the main comparison are off, and folded by algorithm."""
    order, first = list(styles), set(agents if main is None else main)

    def chip(a: str) -> str:
        return (
            f'<label class="chip"><input type="checkbox" data-agent="{order.index(a)}"{" checked" * (a in first)}>'
            f"{swatch(styles[a])}<span>{text(styles[a].name)}</span></label>"
        )

    chips, others = "".join(chip(a) for a in agents if a in first), dict[str, list[str]]()
    for a in agents:
        if a not in first:
            others.setdefault(short_name(a.partition(":")[0]), []).append(a)
    for algorithm, more in others.items():
        title = f"{len(more)} more of {text(algorithm)} <small>the best one is shown</small>"
        chips += details(title, "".join(map(chip, more)))
    scales = (("linear", "linear"), ("log", "log y"), ("loglog", "log both"))
    radios = "".join(
        f'<label><input type="radio" name="scale-{panel}" data-scale="{value}"{" checked" * (value == "linear")}>'
        f"{label}</label>"
        for value, label in scales
    )
    band = '<label class="chip"><input type="checkbox" data-bands checked><span>95% intervals</span></label>'
    return (
        f'<div class="controls" role="group" aria-label="What the plots show">'
        f'<fieldset class="agents"><legend>Agents</legend><button type="button" data-all="1">all</button>'
        f'<button type="button" data-all="0">none</button><div class="chips">{chips}</div></fieldset>'
        f'<div class="row"><fieldset class="switch"><legend>Axes</legend>{radios}</fieldset>{band * bands}'
        f'<button type="button" data-reset>reset zoom</button></div></div>'
    )


def _figure(s: Section, figures: Mapping[str, Drawn], name: str, kind: str) -> str:
    if name not in figures:
        return ""
    if kind == "returns":
        title = "Return of an episode"
        caption = "Means of episodes that follow each other" + f", over {_count(s.seeds, 'seed')}" * (s.seeds > 1)
    elif kind == "curves":
        title = f"{YS[s.measure].capitalize()} over episodes"
        caption = f"Mean and 95% interval over {_count(s.seeds, 'seed')}" if s.seeds > 1 else "One seed"
    else:
        title = f"Memory against {ENDS[s.measure]}"
        caption = (
            f"Filled: on the Pareto front, no other agent is better in memory or {s.measure} and no worse in the other"
        )
    label = f"{title}. Arrow keys move, plus and minus zoom, 0 resets. The numbers are in the table below."
    return (
        f"<figure><h4>{text(title)}</h4>"
        f'<div class="plot" data-plot="{kind}" tabindex="0" role="group" aria-label="{text(label)}"></div>'
        f"{_paper(figures, name, title)}<figcaption>{text(caption)}. {_beside(name)}</figcaption></figure>"
    )


def _paper(figures: Mapping[str, Drawn], name: str, title: str) -> str:
    """The figure as it is printed, or shown where scripts do not run."""
    return f'<img class="paper" alt="{text(title)}" src="{data_uri("svg+xml", figures[name].svg)}">'


def _beside(name: str) -> str:
    return f'<span class="beside">Also in <code>figures/{name}.svg</code> and <code>.png</code>.</span>'


def _results_table(s: Section, styles: Styles) -> str:
    rows = []
    for summary, row in zip(s.summaries, comparison_rows(s.summaries), strict=True):
        cells = [Cell(text("–" if value == "-" else value)) for value in row]
        cells[0] = Cell(agent(styles[summary.agent]))
        cells[HEADER.index("agent memory")] = Cell(human_bytes(summary.agent_bytes), summary.agent_bytes)
        rows.append(cells)
    shown = table("Results: means over seeds; memory is the peak", HEADER, rows)
    certified = (_certificate(x.agent, x.certificate) for x in s.summaries if x.certificate is not None)
    stale = (_staleness(x.agent, x.staleness) for x in s.summaries if x.staleness is not None)
    return shown + "".join((*certified, *stale))


def _certificate(name: str, value: float) -> str:
    return (
        f"<p>Certificate of {text(short_name(name))}: the regressions along an episode are within {value:.3g}, in sum, "
        f"of those on all next states, on average over the episodes.</p>"
    )


def _staleness(name: str, value: float) -> str:
    return (
        f"<p>Staleness of {text(short_name(name))}: by estimate, which is no bound, folded targets put the regressions "
        f"along an episode off by {value:.3g}, in sum, on average over the episodes.</p>"
    )


def _warnings(s: Section) -> str:
    found = flagged(s.runs)
    if not found:
        return ""
    items = "".join(f"<li>{text(warning)} <small>{text(_origin(runs))}</small></li>" for warning, runs in found.items())
    body = f'<ol class="warnings">{items}</ol>'
    return details(f"{_count(len(found), 'warning')} <small>of the diagnostics</small>", body, open_=len(found) <= 3)


def _origin(runs: Sequence[RunResult]) -> str:
    agents = dict.fromkeys(short_name(r.agent) for r in runs)
    seeds = sorted({r.seed for r in runs})
    listed = ", ".join(map(str, seeds[:20])) + ", …" * (len(seeds) > 20)
    return f"{', '.join(agents)}, seed{'s' * (len(seeds) > 1)} {listed}"


def _diagnostics(s: Section, styles: Styles) -> str:
    numbers = {warning: i for i, warning in enumerate(flagged(s.runs), start=1)}
    head = ("agent", "seed", s.measure, "Q at cap", "ties", "updates", "resets", "drift", "memory", "CPU s", "warnings")
    rows = [
        [
            Cell(agent(styles[r.agent])),
            Cell(str(r.seed)),
            Cell(*_outcome(r)),
            Cell(f"{r.saturated:.1%}"),
            Cell("–" if math.isnan(r.tied) else f"{r.tied:.1%}"),
            Cell(f"{r.updates:,}", r.updates),
            Cell(f"{r.resets:,}", r.resets),
            Cell("–" if r.drift is None else f"{r.drift:.1e}"),
            Cell(human_bytes(r.peak_bytes), r.peak_bytes),
            Cell(f"{r.cpu_seconds:.2f}"),
            Cell(", ".join(str(numbers[w]) for w in dict.fromkeys(r.warnings)) or "none"),
        ]
        for r in s.runs[:MOST_ROWS]
    ]
    more = f"<p>The first {MOST_ROWS} of {len(s.runs)} runs are shown.</p>" if len(s.runs) > MOST_ROWS else ""
    note = (
        "<p>Q at cap: fraction of Q values at their largest possible value, at the states visited in the last tenth of "
        "the episodes; an agent where most are has learned nothing. Ties: fraction of those states where several "
        "actions share the largest Q. Drift: the largest error of a maintained inverse. A number under warnings points "
        "to the list of warnings above. A dash: not recorded.</p>"
    )
    return note + table("Diagnostics of each run", head, rows) + more


def _outcome(r: RunResult) -> tuple[str, float]:
    value = r.reward if r.final_regret is None else r.final_regret
    return number(value), value


def _exponent(i: Interval | None, seeds: int) -> Cell:
    if i is None:
        return Cell("–")
    mean, low, high = (f"{round(value, 2) + 0.0:.2f}" for value in i)  # + 0.0: no minus before a zero
    return Cell(f"{mean} [{low}, {high}]" if seeds > 1 else mean, i.mean)
