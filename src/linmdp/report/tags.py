"""Pieces of HTML. Every text that is passed in here is escaped; what these functions return is HTML."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from linmdp.report.looks import Look


class Cell(NamedTuple):
    """A cell of a table: HTML, and the number to sort by where the text is none."""

    html: str
    key: float | None = None


def text(words: object) -> str:
    """Any value as HTML that shows it."""
    return escape(str(words), quote=True)


def code(words: object) -> str:
    """Names and commands."""
    return f"<code>{text(words)}</code>"


def bullets(sentences: Sequence[str], kind: str = "found") -> str:
    """Sentences as a list."""
    return f'<ul class="{kind}">{"".join(f"<li>{text(s)}</li>" for s in sentences)}</ul>' if sentences else ""


def details(summary: str, body: str, *, open_: bool = False) -> str:
    """A part that can be folded; `summary` and `body` are HTML."""
    return f"<details{' open' * open_}><summary>{summary}</summary>{body}</details>"


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], *, sortable: bool = True) -> str:
    """A table that scrolls within its own width; the first cell of a row is its header."""
    button = "<button type='button'>{}</button>" if sortable else "{}"
    head = "".join(f'<th scope="col">{button.format(text(h))}</th>' for h in header)
    body = "".join(f"<tr>{''.join(_cell(c, first=i == 0) for i, c in enumerate(row))}</tr>" for row in rows)
    label = text(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table{" data-sort" * sortable}>'
        f"<caption>{label}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def swatch(look: Look) -> str:
    """A short piece of an agent's line, in its colour."""
    dashes = f' stroke-dasharray="{" ".join(f"{2 * d:g}" for d in look.dashes)}"' if look.dashes else ""
    return (
        f'<svg class="swatch" width="26" height="10" aria-hidden="true" '
        f'style="color:light-dark({look.light},{look.dark})">'
        f'<path d="M1 5H25" stroke="currentColor" stroke-width="3"{dashes}/></svg>'
    )


def data_uri(kind: str, data: bytes) -> str:
    """A picture inside the page."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _cell(cell: Cell, *, first: bool) -> str:
    tag = 'th scope="row"' if first else "td"
    key = "" if cell.key is None else f' data-key="{cell.key:.17g}"'
    return f"<{tag}{key}>{cell.html}</{tag.split()[0]}>"
