"""linmdp_names.h: what states and actions mean, and example/main.c, which speaks of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from linmdp.export.numbers import filled
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
