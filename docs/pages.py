"""What the site adds to its pages: its first page, its menu, the API reference, and formulas.

The pages are plain Markdown, which every viewer shows. The first page is README; the menu follows from the lists of
index.md. The reference has every public name, what it takes, and what it says of itself; without a description it
fails. Formulas become MathML by docutils, which reads some TeX in another way than TeX does.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import linmdp

README = Path(__file__).parent.parent / "README.md"

GROUPS = {
    "Learning": ("Learner", "Evaluation", "OfflineValue", "Late", "merge", "worth_sending"),
    "Runs": (
        "run",
        "compare",
        "sweep",
        "make_env",
        "make_agent",
        "load_agent",
        "load_policy",
        "RunResult",
        "Comparison",
        "Tracker",
    ),
    "Environments": ("check_env", "GymTask", "LinearMDPEnv", "LinearModel", "Task", "optimum", "policy_value"),
    "Features": ("FeatureMap", "TableFeatures", "one_hot"),
    "Your own": (
        "register_agent",
        "register_env",
        "register_features",
        "testing",
        "Agent",
        "Transition",
        "EpisodeRecord",
    ),
    "Errors": ("LinMDPError", "InvalidParameter", "InvalidData", "UnknownName", "LinMDPWarning"),
}
"""What is shown together; all other names are agents."""


def filled(name: str, text: str) -> str:
    """A page with what stands in its source as a comment, and README with the menu for index.md."""
    text = re.sub(r"^<!-- api: (.+) -->$", lambda found: api(found[1]), text, flags=re.MULTILINE)
    return screen() + menu(text) if name == "index" else text


def screen() -> str:
    """README: paths as seen from here, without what the menu has, and its picture twice, of which a theme shows one."""
    text = README.read_text("utf-8").replace("](docs/", "](").replace("](_static/live.html)", "](live.md)")
    text = text.replace(", [all pages](index.md)", "").partition("[CHANGELOG]")[0]
    return re.sub(r"<picture>.*?alt=\"(.*?)\".*?</picture>", _themed, text, flags=re.DOTALL)


def _themed(found: re.Match[str]) -> str:
    shown = (("light", ""), ("dark", "-dark"))
    return "\n".join(
        f"```{{image}} images/screen{of}.png\n:alt: {found[1]}\n:class: only-{theme}\n```" for theme, of in shown
    )


def menu(index: str) -> str:
    """The pages that the lists of index.md begin with, under its headings."""
    parts = [(part.partition("\n")[0], re.findall(LISTED, part)) for part in re.split(r"(?m)^## ", index)[1:]]
    trees = (
        "\n".join(["```{toctree}", f":caption: {title}", ":hidden:", "", *pages, "```"])
        for title, pages in parts
        if pages
    )
    return "\n\n" + "\n\n".join(trees) + "\n"


LISTED = re.compile(r"^- \[[^\]]*\]\(([\w-]+)\.md\)", re.MULTILINE)


def groups() -> dict[str, tuple[str, ...]]:
    """All public names by topic."""
    named = {name for names in GROUPS.values() for name in names}
    if missing := named - set(linmdp.__all__):
        raise LookupError(f"not public: {', '.join(sorted(missing))}")
    return {**GROUPS, "Agents": tuple(name for name in linmdp.__all__ if name not in named)}


def api(topic: str) -> str:
    """The reference of a topic, in Markdown."""
    return "\n".join(map(entry, groups()[topic]))


def entry(name: str) -> str:
    """One public name."""
    found = getattr(linmdp, name)
    parts = [f"## `{name}`\n"]
    if isinstance(found, types.ModuleType):
        members = [f"{name}.{one}" for one in found.__all__]
        return "\n".join(
            [*parts, described(name, found), *(member(m, getattr(found, m.split(".")[1])) for m in members)]
        )
    parts.append(f"```text\n{name}{signature(found)}\n```\n")
    parts.append(described(name, found))
    if isinstance(found, type):
        parts += [member(f"{name}.{key}", value) for key, value in members_of(found)]
    return "\n".join(parts)


def members_of(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class defines itself."""
    for key, value in vars(cls).items():
        plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if not key.startswith("_") and isinstance(plain, types.FunctionType | property):
            yield key, plain


def member(name: str, value: Any) -> str:
    """A method or a property, in one paragraph."""
    own = "" if isinstance(value, property) else signature(value)
    words = inspect.getdoc(value) or _inherited(name)
    if not words:
        raise LookupError(f"'{name}' has no description")
    return f"- `{name.split('.')[-1]}{own}`: {escaped(' '.join(words.split(chr(10) * 2)[0].split()))}"


def _inherited(name: str) -> str:
    """What a base says of a method."""
    cls, _, key = name.partition(".")
    return inspect.getdoc(getattr(getattr(linmdp, cls, None), key, None)) or ""


def signature(found: Any) -> str:
    """Parameters and their defaults, without types."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(plain))


def described(name: str, found: Any) -> str:
    """A docstring as Markdown: its sections become lists."""
    text = inspect.getdoc(found)
    if not text:
        raise LookupError(f"'{name}' has no description")
    parts = []
    for block in re.split(r"\n\n+", text):
        title, _, rest = block.partition("\n")
        if re.match(r"-{3,}$", rest.partition("\n")[0]):
            parts.append(f"**{title}**\n\n{_items(rest.partition(chr(10))[2])}")
        elif re.match(r"( {4}|>>> )", block) or "\nimport " in f"\n{block}":
            parts.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            parts.append(escaped(block))
    return "\n\n".join(parts) + "\n"


def _items(text: str) -> str:
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?! )", text) if entry.strip()]
    pairs = (entry.partition(" : ") for entry in entries)
    return "\n".join(f"- `{names}`: {escaped(words)}" if words else f"- {escaped(names)}" for names, _, words in pairs)


def escaped(text: str) -> str:
    """Text as it is: nothing but code is marked up."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if i % 2 else re.sub(r"([*_<>$\[\]|~])", r"\\\1", p) for i, p in enumerate(parts))


ARGUMENT = r"\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|\\[A-Za-z]+|[^\s\\{}])"
ACCENT = re.compile(
    r"(\\(?:wide)?(?:hat|tilde|check|bar)|\\underline|\\overline)(?![A-Za-z])" + ARGUMENT + r"(?=\s*[_^])"
)
FRACTION = re.compile(r"(\\[td]?frac)(?![A-Za-z])" + ARGUMENT + ARGUMENT)


def braced(tex: str) -> str:
    r"""The same formula with braces around arguments of one token: \frac12 is a half, x^12 is x^1 times 2.

    docutils takes all digits that follow for one argument, and sets what is below an accent's right under the letter.
    """
    tex = ACCENT.sub(r"\1{\2}{}", tex)
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
    from docutils.utils.math.latex2mathml import tex2mathml

    return str(tex2mathml(braced(sided(tex)), as_block=block))
