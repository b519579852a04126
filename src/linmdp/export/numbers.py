"""C as text: numbers, tables of them, the files in `c/` that are templates, and words that come from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

import numpy as np

from linmdp.agents.base import TIE
from linmdp.errors import one_line
from linmdp.types import Array, IntArray

WIDTH = 120
TIES = {"float": 1e-7, "double": TIE}
"""Q that differ by less are equal. A float has 24 bits: below 1e-7 there is nothing to tell apart."""
FOLDER = Path(__file__).parent / "c"


def template(name: str) -> str:
    """The text of a file in `c/`."""
    return (FOLDER / name).read_text()


def filled(name: str, values: Mapping[str, object]) -> str:
    """The template with each `$key` replaced by its value; a line with a value that is None is left out."""
    missing = {key for key, value in values.items() if value is None}
    lines = template(name).splitlines(keepends=True)
    kept = [line for line in lines if missing.isdisjoint(Template(line).get_identifiers())]
    return Template("".join(kept)).substitute(values)


def in_comment(words: str) -> str:
    """Words that someone else wrote, as they may stand in a comment of C: they neither end it nor begin another."""
    return one_line(words).replace("*/", "* /").replace("/*", "/ *")


def in_markdown(words: str) -> str:
    """The same for Markdown: as code, between more backticks in a row than they have, so that nothing in it counts."""
    line = one_line(words)
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " * ("`" in line)
    return f"{fence}{space}{line}{space}{fence}"


def literal(value: object) -> object:
    """A parameter as it stands in C: truth as 0 or 1, numbers as `double`, several with commas between."""
    if isinstance(value, tuple):
        return ", ".join(str(literal(part)) for part in value)
    if isinstance(value, bool):
        return int(value)
    return real(value, "double") if isinstance(value, float) else value


def real(value: float, kind: str) -> str:
    """The shortest literal that is this number, as `float` or `double`."""
    text = str(np.float32(value)) if kind == "float" else repr(float(value))
    if not any(c in text for c in ".e"):
        text += ".0"
    return text + "f" if kind == "float" else text


def braces(items: Iterable[str]) -> str:
    """`{a, b, c}`"""
    return "{" + ", ".join(items) + "}"


def rows(items: Sequence[str], indent: int = 4) -> str:
    """The items with commas between, in lines that are not too long."""
    lines, line = [], " " * indent
    for item in items:
        if len(line) + len(item) + 2 > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += item + ", "
    return "\n".join([*lines, line.rstrip()])


def reals(values: Array, kind: str) -> list[str]:
    """Each number as a literal."""
    return [real(value, kind) for value in np.asarray(values, dtype=np.float64).ravel().tolist()]


def wholes(values: IntArray | Sequence[int]) -> list[str]:
    """Each whole number as a literal."""
    return [str(int(value)) for value in np.asarray(values).ravel()]


def table(declaration: str, items: Sequence[str]) -> str:
    """`declaration = {...};` over several lines."""
    return f"{declaration} = {{\n{rows(items)}\n}};\n"


def unsigned(largest: int) -> str:
    """The smallest unsigned type that holds 0 ... `largest`."""
    return next(f"uint{bits}_t" for bits in (8, 16, 32) if largest < 2**bits)
