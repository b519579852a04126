"""A page that tells what was found, one picture after the other; no script, no network."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from linmdp.report.html_elements import bullets, data_uri, text

PAGE = """<!DOCTYPE html>
<html lang="en" class="no-js">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header class="top"><div><p class="kicker">linmdp</p><h1>{title}</h1><p>{lead}</p></div></header>
<main>
{main}
</main>
</body>
</html>
"""


class Chapter(NamedTuple):
    """A heading, what it is about, what came out, an SVG of it, and the command that does it again."""

    title: str
    words: str
    found: list[str]
    picture: bytes
    command: str


def story(title: str, lead: str, chapters: Sequence[Chapter], more: Sequence[str]) -> str:
    """The whole page; `more` are commands to go on with."""
    parts = [_chapter(chapter) for chapter in chapters]
    commands = "".join(f"<pre>{text(command)}</pre>" for command in more)
    parts.append(f"<section><h2>Where to go next</h2>{commands}</section>")
    return PAGE.format(title=text(title), style=stylesheet(), lead=text(lead), main="\n".join(parts))


def stylesheet() -> str:
    """The style of all pages."""
    return (resources.files("linmdp.report") / "page" / "style.css").read_text(encoding="utf-8")


def _chapter(chapter: Chapter) -> str:
    picture = f'<img class="paper wide" alt="{text(chapter.title)}" src="{data_uri("svg+xml", chapter.picture)}">'
    return (
        f"<section><h2>{text(chapter.title)}</h2><p>{text(chapter.words)}</p>{bullets(chapter.found, 'lead')}"
        f"<figure>{picture}</figure><pre>{text(chapter.command)}</pre></section>"
    )
