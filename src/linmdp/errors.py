"""One exception family, one message style: the parameter, the rule, the value.

Every error that a user can cause is a `LinMDPError`; the command line prints its one line and
exits with status 2.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, NoReturn

LONGEST = 1000
LONGEST_VALUE = 120
"""Characters of a message, and of a value in it: both may come from a file that someone else wrote."""


class LinMDPError(Exception):
    """Base of all errors that are the caller's to mend; its message is one line, whatever it quotes."""

    def __init__(self, words: str = "") -> None:
        super().__init__(one_line(words))


def one_line(words: str, longest: int = LONGEST) -> str:
    """`words` without line breaks and control characters, cut where they are too long."""
    line = words if words.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


class InvalidParameter(LinMDPError, ValueError):
    """A parameter breaks its rule."""


class InvalidData(LinMDPError, ValueError):
    """An environment or a feature map delivered something that can not be learned from."""


class UnknownName(LinMDPError, KeyError):
    """No environment, agent or parameter of that name."""

    def __str__(self) -> str:  # KeyError would print the repr, in quotes
        return str(self.args[0])


class OutputError(LinMDPError, OSError):
    """A result could not be written."""


class ClusterError(LinMDPError, RuntimeError):
    """Other processes or machines can not do the work."""


class LinMDPWarning(UserWarning):
    """The run is valid, but it will not do what was hoped for."""


def invalid(owner: str, parameter: str, rule: str, value: object) -> NoReturn:
    """Raise `InvalidParameter` in the one style that the project has."""
    got = one_line(repr(value), LONGEST_VALUE)
    raise InvalidParameter(f"The '{parameter}' parameter of {owner} must be {rule}. Got {got}.")


def check_number(
    owner: str,
    parameter: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
) -> float:
    """`value` as a finite float within [low, high], or (low, high] when `open_low`."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and (low < number if open_low else low <= number) and number <= high:
            return number
    invalid(owner, parameter, _interval_rule("a finite number", low, high, open_low), value)


def one_number(value: Any) -> float:
    """`value` as a float. An array of one number, or a number in words, is none: TypeError or ValueError."""
    if isinstance(value, str | bytes) or bool(getattr(value, "ndim", False)):
        raise TypeError(f"{type(value).__name__} is no number")
    return float(value)


def check_int(owner: str, parameter: str, value: object, *, low: int, high: int | None = None) -> int:
    """`value` as an int within [low, high]."""
    number = None
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        number = int(float(value))
    if number is not None and number >= low and (high is None or number <= high):
        return number
    top = math.inf if high is None else high
    invalid(owner, parameter, _interval_rule("a whole number", low, top, False), value)


def check_choice(owner: str, parameter: str, value: object, choices: Iterable[str]) -> str:
    """`value` if it is one of `choices`."""
    options = list(choices)
    if value not in options:
        invalid(owner, parameter, "one of " + ", ".join(map(repr, options)), value)
    return str(value)


def unknown(kind: str, name: str, known: Iterable[str]) -> NoReturn:
    """Raise `UnknownName` with the nearest match, or all that there is."""
    options = sorted(known)
    name = one_line(name, LONGEST_VALUE)
    near = difflib.get_close_matches(name, options, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(options) or 'none'}."
    raise UnknownName(f"There is no {kind} '{name}'. {hint}")


def _interval_rule(kind: str, low: float, high: float, open_low: bool) -> str:
    if high == math.inf:
        return kind if low == -math.inf else f"{kind} {'>' if open_low else '>='} {low:.12g}"
    return f"{kind} in {'(' if open_low else '['}{low:.12g}, {high:.12g}]"
