"""Tables in Markdown: the same text in a terminal, a file and the docs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linmdp.io.units import human_bytes
from linmdp.results.summary import Summary

HEADER = (
    "agent",
    "seeds",
    "regret [95% interval]",
    "per episode",
    "of random",
    "reward per episode",
    "agent memory",
    "CPU s",
    "resets",
    "at cap",
)


def comparison_table(summaries: Sequence[Summary], name: Callable[[str], str] = str) -> str:
    """The rows in Markdown, with certificates, and what was chosen by itself, where there is any."""
    head: tuple[str, ...] = HEADER
    rows = comparison_rows(summaries, name)
    for title, cells in (
        ("certificate", [_certificate(s) for s in summaries]),
        ("chosen", [s.chosen or "-" for s in summaries]),
    ):
        if any(cell != "-" for cell in cells):
            head, rows = (*head, title), [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    return markdown(head, rows)


def _certificate(s: Summary) -> str:
    return "-" if s.certificate is None else f"{s.certificate:.3g}"


def comparison_rows(summaries: Sequence[Summary], name: Callable[[str], str] = str) -> list[tuple[str, ...]]:
    """One row per agent, named `name(spec)`; "of random" is regret divided by the random policy's."""
    random = next((s.regret.mean for s in summaries if s.agent == "random" and s.regret), None)
    return [(name(s.agent), *_row(s, random)) for s in summaries]


def _row(s: Summary, random: float | None) -> tuple[str, ...]:
    regret = ("-", "-", "-")
    if s.regret:
        ratio = f"{s.regret.mean / random:.2f}" if random else "-"
        low, high = s.regret.low, s.regret.high
        interval = f"{s.regret.mean:.1f} [{low:.1f}, {high:.1f}]" if s.seeds > 1 else f"{s.regret.mean:.1f}"
        regret = (interval, f"{s.regret.mean / s.episodes:.3f}", ratio)
    return (
        str(s.seeds),
        *regret,
        f"{s.reward.mean:.3f}",
        human_bytes(s.agent_bytes),
        f"{s.cpu_seconds:.1f}",
        f"{s.resets:g}",
        f"{s.saturated:.0%}",
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An aligned Markdown table."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in (header, *rows)]
    lines.insert(1, ["-" * w for w in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
