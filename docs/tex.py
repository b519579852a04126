"""Formulas of the pages as MathML, by docutils, which reads some TeX in another way than TeX does."""

from __future__ import annotations

import re

from docutils.utils.math.latex2mathml import tex2mathml

ARGUMENT = r"\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s\\{}])"
FRACTION = re.compile(r"(\\[td]?frac)(?![A-Za-z])" + ARGUMENT + ARGUMENT)


def braced(tex: str) -> str:
    r"""The same formula with braces around arguments of one token: \frac12 is a half, x^12 is x^1 times 2.

    docutils takes all digits that follow for one argument.
    """
    tex = FRACTION.sub(lambda m: m[1] + "".join(a if a.startswith("{") else f"{{{a}}}" for a in m.groups()[1:]), tex)
    return re.sub(r"([\^_]|\\sqrt)\s*(\d)(?=\d)", r"\1{\2}", tex)


def sided(tex: str) -> str:
    r"""The same formula without what docutils does not know: \bigl or \bigr for \big, and \mathtt for \texttt."""
    tex = tex.replace(r"\texttt", r"\mathtt")
    return re.sub(
        r"\\([bB]igg?)(?![A-Za-z])(\s*)(\\?[)\]}])?", lambda m: f"\\{m[1]}{'r' if m[3] else 'l'}{m[2]}{m[3] or ''}", tex
    )


def mathml(tex: str, *, block: bool = False) -> str:
    """A formula in a line, or on a line of its own."""
    return str(tex2mathml(braced(sided(tex)), as_block=block))
