"""What states and actions mean: linmdp_names.h, example/main.c, which speaks of them, and README.md."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.export.numbers import filled, in_markdown
from linmdp.types import Fields, Task

KEYWORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"""


class CNames(NamedTuple):
    """Names as C can have them: fields of a state with the number of their values (0: a real), and actions."""

    fields: Fields
    actions: list[str]


def c_names(task: Task, numbers: int) -> CNames:
    """The task's own names, or plain ones; a state that is not finite has so many numbers."""
    plain = (("state", task.S),) if task.S is not None else tuple((f"x{i}", 0) for i in range(numbers))
    fields = task.state_fields if task.S is not None or len(task.state_fields) == numbers else plain
    fields = fields or plain
    actions = task.action_names or [str(a) for a in range(task.A)]
    names = _identifiers([name for name, _ in fields])
    return CNames(tuple(zip(names, (size for _, size in fields), strict=True)), _identifiers(list(actions), "do_"))


def _identifiers(names: list[str], prefix: str = "x_") -> list[str]:
    """Each name with what C does not allow replaced, and different from all others."""
    found: list[str] = []
    for i, name in enumerate(names):
        word = re.sub(r"\W", "_", name.strip().lower(), flags=re.ASCII)
        word = f"{prefix}{word}" if not word[:1].isalpha() or word in KEYWORDS.split() else word
        found.append(f"{word}_{i}" if word in found else word)
    return found


def names_code(names: CNames, finite: bool) -> str:
    """linmdp_names.h"""
    reals = [(name, "linmdp_real", "") for name, _ in names.fields]
    wholes = [(name, "unsigned", f" /* 0 .. {size - 1} */") for name, size in names.fields]
    values = {
        "members": "\n".join(f"    {kind} {name};{range}" for name, kind, range in (wholes if finite else reals)),
        "actions": "\n".join(f"    LINMDP_ACTION_{name.upper()} = {a}," for a, name in enumerate(names.actions)),
        "words": ", ".join(f'"{name}"' for name in names.actions),
    }
    return filled("linmdp_names.h", values) + filled(*_coding(names.fields, finite))


def _coding(fields: Fields, finite: bool) -> tuple[str, dict[str, object]]:
    if not finite:
        into = "\n".join(f"    slot.x[{i}] = fields.{name};" for i, (name, _) in enumerate(fields))
        out = "\n".join(f"    fields.{name} = state[{i}];" for i, (name, _) in enumerate(fields))
        return "names_numbers.h", {"into": into, "out": out}
    code = f"fields.{fields[0][0]}"
    for name, size in fields[1:]:
        code = f"({code}) * {size}u + fields.{name}" if "*" in code else f"{code} * {size}u + fields.{name}"
    out = "\n".join(f"    fields.{name} = state % {size}u;\n    state /= {size}u;" for name, size in reversed(fields))
    wrong = " || ".join(f"fields.{name} >= {size}u" for name, size in fields)
    return "names_finite.h", {"wrong": wrong, "code": code, "out": out}


def example_code(names: CNames, finite: bool, kind: str) -> str:
    """example/main.c"""
    mark = "%u" if finite else "%f" if kind == "float" else "%lf"
    values = {
        "line": " ".join(name.upper() for name, _ in names.fields),
        "marks": " ".join([mark] * len(names.fields)),
        "addresses": ", ".join(f"&fields->{name}" for name, _ in names.fields),
        "count": len(names.fields),
        "real": "%f" if kind == "float" else "%lf",
    }
    return filled("example/main.c", values)


PARTS = {
    "experience": "transitions",
    "plan": "a plan; there are two",
    "job": "planning",
    "returns": "sums of rewards",
}
"""What the structs of `lsvi-gp` hold."""


def readme(template: str, names: CNames, S: int, H: int, *, run: str, **values: int | str | None) -> str:
    """The template with its values, and what states and actions are; whole numbers are sizes, mostly in bytes."""
    written = {name: f"{value:,}" if isinstance(value, int) else value for name, value in values.items()}
    origin = f"From this run: {in_markdown(run)}." if run else "From an agent in Python."
    return filled(template, {"run": origin, **written, **_meaning(S, H, names)})


def gp_readme(agent: LSVIGP, names: CNames, *, held: dict[str, int], run: str, **values: int | str) -> str:
    """Of `lsvi-gp`, whose structs are so many bytes each."""
    parts = "\n".join(_row(words, f"{held[name]:,}") for name, words in PARTS.items())
    spec = f"{agent.name}:" + ",".join(f"{name}={agent.sizes[name]}" for name in ("states", "features", "kept"))
    own: dict[str, Any] = {"ram": held["learner"], "parts": parts, "spec": spec}
    return readme("README_gp.md", names, agent.task.S or 0, agent.task.H, run=run, **own, **values)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _meaning(S: int, H: int, names: CNames) -> dict[str, str]:
    """What states and actions are."""
    if S:
        first = "static const unsigned state = 0;"
        words = f"A state is a number 0 .. {S - 1}. It counts through these fields, the last one fastest:"
        table = [("field", "values"), *((f"`{name}`", f"0 .. {size - 1}") for name, size in names.fields)]
    else:
        first = f"static const linmdp_real state[] = {{{', '.join(['0'] * len(names.fields))}}};"
        words = "A state is a pointer to these numbers, in this order:"
        table = [("place", "number"), *((str(i), f"`{name}`") for i, (name, _) in enumerate(names.fields))]
    header, *rows = (_row(*cells) for cells in table)
    actions = "\n".join(_row(str(a), f"`LINMDP_ACTION_{name.upper()}`") for a, name in enumerate(names.actions))
    states = "\n".join([words, "", header, "|---|---|", *rows])
    return {"states": states, "actions": actions, "H": f"{H:,}", "state": first}
