"""Tables in Markdown: the same text in a terminal, a file and the docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import takewhile
from pathlib import Path

from linmdp.io.units import human_bytes
from linmdp.report.plots import is_baseline
from linmdp.results.summary import Summary

HEADER = (
    "agent",
    "seeds",
    "regret [95% interval]",
    "per episode",
    "of random",
    "return at the end",
    "return, mean",
    "interactions",
    "agent memory",
    "while planning",
    "CPU s",
    "resets",
    "at cap",
)
WIDTH = 100
"""Columns of a terminal that a table should fit into."""
NOTHING = {"resets": {"0"}, "at cap": {"0%"}}
"""What is not worth a column, where nobody has anything else; of the others, "-"."""
LESS_NEEDED = ("return, mean", "per episode", "at cap", "resets", "seeds", "CPU s", "of random")
"""What is left out of a table that is too wide, first the first."""


def comparison_table(summaries: Sequence[Summary], name: Callable[[str], str] = str, *, chosen: bool = True) -> str:
    """The rows in Markdown, such that they fit a terminal, and below it what was chosen by itself."""
    named = zip(comparison_rows(summaries, name), summaries, strict=True)
    rows = [(*row, _certified(s), _short(s.certificate)) for row, s in named]
    table = markdown(*_fitting((*HEADER, "certified", "certificate"), rows))
    return "\n\n".join(
        [table, *_chosen([(row[0], s) for row, s in zip(rows, summaries, strict=True)] if chosen else [])]
    )


def _chosen(named: Sequence[tuple[str, Summary]]) -> list[str]:
    """What was chosen by itself; what a policy that chooses nothing has to say, its environment chose, for all.

    Where it has nothing to say, what all learners have in common is said once.
    """
    chosen = [s.chosen for _, s in named if s.chosen]
    env = next((s.chosen for _, s in named if is_baseline(s.agent) and s.chosen), "")
    if not env and len(chosen) > 1:
        pieces = zip(*(words.split(", ") for words in chosen), strict=False)
        env = ", ".join(together[0] for together in takewhile(lambda each: len(set(each)) == 1, pieces))
    lines = [(name, s.chosen.removeprefix(env).lstrip(", ")) for name, s in named]
    return [f"chosen for all: {env}"] * bool(env) + [f"chosen by {name}: {words}" for name, words in lines if words]


def _certified(s: Summary) -> str:
    """How much more is possible an episode; "~" where that is not proved."""
    proved = "" if s.certified_kind and s.certified_kind.startswith("certified") else "~"
    return "-" if s.certified is None else f"{proved}{s.certified:.3g}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def comparison_rows(summaries: Sequence[Summary], name: Callable[[str], str] = str) -> list[tuple[str, ...]]:
    """One row per agent, named `name(spec)`; "of random" is regret divided by the random policy's."""
    random = next((s.regret.mean for s in summaries if s.agent == "random" and s.regret), None)
    return [(name(s.agent), *_row(s, random)) for s in summaries]


def columns_of(summaries: Sequence[Summary], names: Sequence[str]) -> list[list[str]]:
    """Some columns of these rows, by their names."""
    return [[row[HEADER.index(name)] for name in names] for row in comparison_rows(summaries)]


def _row(s: Summary, random: float | None) -> tuple[str, ...]:
    regret = ("-", "-", "-")
    if s.regret:
        ratio = f"{s.regret.mean / random:.2f}" if random else "-"
        regret = (s.regret.text(".1f"), f"{s.regret.mean / s.episodes:.3f}", ratio)
    return (
        str(s.seeds),
        *regret,
        f"{s.end.mean:.4g}",
        f"{s.reward.mean:.4g}",
        "-" if s.interactions is None else f"{s.interactions:,.0f}",
        human_bytes(s.agent_bytes),
        human_bytes(s.planning_bytes),
        f"{s.cpu_seconds:.1f}",
        f"{s.resets:g}",
        f"{s.saturated:.0%}",
    )


def _fitting(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The columns that say something, and of those as many as fit; in the end names are cut."""
    columns = list(zip(header, *rows, strict=True))
    kept = [column for column in columns if set(column[1:]) != NOTHING.get(column[0], {"-"})]
    for name in LESS_NEEDED:
        if _width(kept) > WIDTH:
            kept = [column for column in kept if column[0] != name]
    if _width(kept) > WIDTH:  # names say more than a number that is the same for all
        kept = [column for column in kept if column[0] != "interactions" or len(set(column[1:])) > 1]
    if _width(kept) > WIDTH:
        most = WIDTH - _width(kept[1:]) - 3
        kept[0] = tuple(cell if len(cell) <= most else cell[: most - 1] + "…" for cell in kept[0])
    return [column[0] for column in kept], [list(row) for row in zip(*(column[1:] for column in kept), strict=True)]


def _width(columns: Sequence[Sequence[str]]) -> int:
    return 1 + sum(3 + max(map(len, column)) for column in columns)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An aligned Markdown table."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in (header, *rows)]
    lines.insert(1, ["-" * w for w in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The same for a notebook."""
    head, *body = (
        f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>"
        for tag, row in (("th", header), *(("td", row) for row in rows))
    )
    shown = f"<thead>{head}</thead><tbody>{''.join(body)}</tbody>"
    return f"<table><caption>{escape(caption)}</caption>{shown}</table>"


def into_pages(pages: Iterable[Path], name: str, text: str) -> None:
    """Put a table where the pages have `<!-- NAME -->` and, below it, `<!-- /NAME -->`."""
    for page in pages:
        before = page.read_text(encoding="utf-8")
        after = _place(name).sub(lambda marks: f"{marks[1]}{text.strip()}\n{marks[3]}", before)
        if after != before:
            page.write_text(after, encoding="utf-8")


def in_pages(pages: Iterable[Path], name: str) -> str:
    """The table that the first of the pages has there, or nothing."""
    found = (_place(name).search(page.read_text(encoding="utf-8")) for page in pages)
    return next((marks[2].strip() for marks in found if marks), "")


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(^<!-- {re.escape(name)} -->\n)(.*?)(^<!-- /{re.escape(name)} -->)", re.DOTALL | re.MULTILINE)
