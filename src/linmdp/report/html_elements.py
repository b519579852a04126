"""HTML elements. Text that is passed in is escaped; what these functions return is HTML."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from linmdp.report.style import LineStyle


class Cell(NamedTuple):
    """A cell of a table: HTML, and the number to sort by where the text is not a number."""

    html: str
    key: float | None = None


def text(value: object) -> str:
    """Any value as HTML that shows it."""
    return escape(str(value), quote=True)


def spec(name: str) -> str:
    """An environment or agent as it was given; a line may end after a comma."""
    return text(name).replace(",", ",<wbr>")


def code(value: object) -> str:
    """Names and commands."""
    return f"<code>{text(value)}</code>"


def bullets(sentences: Sequence[str], kind: str = "found") -> str:
    """Sentences as a list."""
    return f'<ul class="{kind}">{"".join(f"<li>{text(s)}</li>" for s in sentences)}</ul>' if sentences else ""


def details(summary: str, body: str, *, open_: bool = False) -> str:
    """A part that can be folded; `summary` and `body` are HTML."""
    return f"<details{' open' * open_}><summary>{summary}</summary>{body}</details>"


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    text_columns: Sequence[str] = (),
    sortable: bool = True,
) -> str:
    """A table that scrolls within its own width; the first column and `text_columns` are left-aligned."""
    button = "<button type='button'>{}</button>" if sortable else "{}"
    left = [' class="left"' if i == 0 or h in text_columns else "" for i, h in enumerate(header)]
    heads = [button.format(text(h).replace(" ", "&nbsp;") if len(h) < 8 else text(h)) for h in header]
    head = "".join(f'<th scope="col"{c}>{h}</th>' for h, c in zip(heads, left, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, row, left, _TAGS))}</tr>" for row in rows)
    label = text(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table{" data-sort" * sortable}>'
        f"<caption>{label}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def swatch(style: LineStyle) -> str:
    """A short line in the style of an agent."""
    dashes = f' stroke-dasharray="{" ".join(f"{2 * d:g}" for d in style.dashes)}"' if style.dashes else ""
    return (
        f'<svg class="swatch" width="26" height="10" aria-hidden="true" '
        f'style="color:light-dark({style.light},{style.dark})">'
        f'<path d="M1 5H25" stroke="currentColor" stroke-width="3"{dashes}/></svg>'
    )


def agent(style: LineStyle) -> str:
    """An agent's name beside its line."""
    return f'<span class="agent">{swatch(style)}<span>{text(style.name)}</span></span>'


def data_uri(kind: str, data: bytes) -> str:
    """A picture inside the page."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


_TAGS = ("th", *("td",) * 99)


def _cell(cell: Cell, place: str, tag: str) -> str:
    key = "" if cell.key is None else f' data-key="{cell.key:.17g}"'
    scope = ' scope="row"' if tag == "th" else ""
    return f"<{tag}{scope}{place}{key}>{cell.html}</{tag}>"
