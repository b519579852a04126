"""README.md of an exported library: for whoever puts it into firmware."""

from __future__ import annotations

from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.export.learner import Learner
from linmdp.export.names import CNames
from linmdp.export.numbers import filled, in_markdown


def learner_readme(learner: Learner, names: CNames, *, sizes: dict[str, int], run: str) -> str:
    """Of a learner and its policy; `sizes` are in bytes."""
    low, high = learner.reward_range
    values = {
        "run": _origin(run),
        "centres": f"{learner.centres:,}" if learner.merges else None,
        "low": f"{low:g}",
        "high": f"{high:g}",
    }
    bytes_of = {name: f"{n:,}" for name, n in sizes.items()}
    return filled("README.md", {**values, **bytes_of, **_meaning(learner.S, learner.H, names)})


def gp_readme(
    agent: LSVIGP, names: CNames, *, held: dict[str, int], flash: int, stack: int, kind: str, run: str
) -> str:
    """Of `lsvi-gp`, whose structs are so many bytes each."""
    task = agent.task
    parts = {
        "experience": "transitions",
        "plan": "a plan; there are two",
        "job": "planning",
        "returns": "sums of rewards",
    }
    values = {
        "run": _origin(run),
        "ram": f"{held['learner']:,}",
        "stack": f"{stack:,}",
        "flash": f"{flash:,}",
        "parts": "\n".join(_row(words, f"{held[name]:,}") for name, words in parts.items()),
        "kind": kind,
        "spec": f"{agent.name}:states={agent.states},features={agent.features},kept={agent.kept}",
    }
    return filled("README_gp.md", values | _meaning(task.S or 0, task.H, names))


def policy_readme(learner: Learner, names: CNames, *, flash: int, run: str) -> str:
    """Of a policy alone."""
    return filled(
        "README_policy.md", {"run": _origin(run), "flash": f"{flash:,}"} | _meaning(learner.S, learner.H, names)
    )


def _origin(run: str) -> str:
    return f"From this run: {in_markdown(run)}." if run else "From an agent in Python."


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _meaning(S: int, H: int, names: CNames) -> dict[str, str]:
    """What states and actions are."""
    if S:
        first = "static const unsigned state = 0;"
        words = f"A state is a number 0 .. {S - 1}. It counts through these fields, the last one fastest:"
        rows = [_row(f"`{name}`", f"0 .. {size - 1}") for name, size in names.fields]
        table = ["| field | values |", "|---|---|", *rows]
    else:
        first = f"static const linmdp_real state[] = {{{', '.join(['0'] * len(names.fields))}}};"
        words = "A state is a pointer to these numbers, in this order:"
        table = [
            "| place | number |",
            "|---|---|",
            *(_row(str(i), f"`{name}`") for i, (name, _) in enumerate(names.fields)),
        ]
    actions = "\n".join(_row(str(a), f"`LINMDP_ACTION_{name.upper()}`") for a, name in enumerate(names.actions))
    return {"states": "\n".join([words, "", *table]), "actions": actions, "H": f"{H:,}", "state": first}
