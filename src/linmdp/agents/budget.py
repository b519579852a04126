"""max_bytes: which parameters keep an agent's memory below a number that the user chooses.

What a choice takes is asked of an agent that is made with it, but owns no memory (`imagined`): its arrays, what they
grow by (`bytes_after`), and what planning needs beside them (`working_bytes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from linmdp.errors import InvalidParameter
from linmdp.io.units import human_bytes, parse_bytes

Choice = dict[str, Any]
OBJECTS = 8192
"""Small Python objects that no array counts."""

STATE_BYTES = 512
"""Taken for a state that is not finite, where a task does not say what one takes."""


def chosen_within(
    owner: str, max_bytes: Any, choices: Iterable[Choice], bytes_of: Callable[[Choice], int], hint: str = ""
) -> Choice:
    """What an agent makes of its `max_bytes`, the bytes that it will take, and why; nothing where no limit is given.

    The first choice that fits; they come in the order of what they lose, as far as that is known.
    """
    if max_bytes is None:
        return {}
    limit, first, least = parse_bytes(owner, max_bytes), None, 0
    for choice in choices:
        need = bytes_of(choice)
        if need <= limit:
            found = choice | {"bytes": need}
            return found | {"reason": reason(*first, found)} if first else found
        first, least = first or (need, choice), min(least or need, need)
    raise InvalidParameter(
        f"The 'max_bytes' parameter of {owner} must be at least {least} ({human_bytes(least)}): its smallest form on "
        f"this task needs that{hint}. Got {limit}."
    )


def reason(need: int, best: Choice, found: Choice) -> str:
    """Why something else was chosen than what loses least."""
    names = [name for name in best if best[name] != found.get(name)]
    if "storage" in best and "storage" not in names:
        names = ["storage", *names]
    words = " ".join(str(best[name]) if name == "storage" else f"{name}={best[name]}" for name in names)
    return f"{words or 'the best form'} would take {human_bytes(need)}"


def held_within(owner: str, max_bytes: Any, held: int) -> Choice:
    """The same of an agent that has nothing to choose."""
    return chosen_within(owner, max_bytes, [{}], lambda _: held + OBJECTS)


def varied(choices: Iterable[Choice], name: str, high: int, low: int) -> Iterator[Choice]:
    """All of these with the parameter at `high`, then all of them with a smaller one, down to `low`."""
    each = list(choices)
    yield from (choice | {name: value} for value in descending(high, low) for choice in each)


def descending(high: int, low: int) -> Iterator[int]:
    """Whole numbers from `high` down to `low`, each about a tenth less than the one before."""
    while high > low:
        yield high
        high = min(high - 1, int(high * 0.9))
    yield low
