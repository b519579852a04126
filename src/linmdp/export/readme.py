"""README.md of an exported library: for whoever puts it into firmware."""

from __future__ import annotations

from typing import Any

from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.export.names import CNames
from linmdp.export.numbers import filled, in_markdown

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
    spec = f"{agent.name}:states={agent.states},features={agent.features},kept={agent.kept}"
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
