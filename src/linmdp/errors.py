"""One exception family, one message style: the parameter, the rule, the value.

Every error that a user can cause is a `LinMDPError`; the command line prints its one line and
exits with status 2.
"""

from __future__ import annotations

import difflib
import importlib
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NoReturn

LONGEST = 1000
LONGEST_VALUE = 120
"""Characters of a message, and of a value in it: both may come from a file that someone else wrote."""


class LinMDPError(Exception):
    """Base of all errors that the caller can fix; its message is one line, whatever it quotes.

    `status` is what a command ends with: 2 for bad input, 1 where good input failed.
    """

    status = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


def one_line(text: str, longest: int = LONGEST) -> str:
    """`text` without line breaks and control characters, cut where it is too long."""
    line = text if text.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def described(error: BaseException, longest: int = 200) -> str:
    """An exception in one line, "TypeError: its message", without a full stop; our own by their message alone."""
    try:
        kind, message = type(error).__name__, str(error).strip().rstrip(".")
    except Exception:  # its own message may fail, too
        return type(error).__name__
    if message and not isinstance(error, LinMDPError):
        message = f"{kind}: {message}"
    return one_line(message or kind, longest)


def shown(value: object, longest: int = LONGEST_VALUE) -> str:
    """A value in one line of a message, whatever it is."""
    try:
        return one_line(repr(value), longest)
    except Exception:  # a repr may fail, too
        return f"a {type(value).__name__}"


class InvalidParameter(LinMDPError, ValueError):
    """A parameter breaks its rule."""


class InvalidData(LinMDPError, ValueError):
    """An environment or a feature map delivered something unusable."""


class Fault(InvalidData):
    """Something that an environment delivered, before it is known in which episode and step.

    Attributes
    ----------
    what : "state", "observation", "terminated" or "truncated"
    rule : what it must be
    got : what it was, in words
    """

    def __init__(self, what: str, rule: str, got: object) -> None:
        self.what, self.rule = what, rule
        dtype, shape = getattr(got, "dtype", None), getattr(got, "shape", None)
        self.got = f"{dtype} of shape {shape}: {shown(got)}" if shape else shown(got)
        super().__init__(self.at(what))

    def at(self, place: str) -> str:
        """The message, with what it is about in other words."""
        return f"The {place} must be {self.rule}. Got {self.got}."


FAULTS = (Exception, SystemExit)
"""What an environment may raise: its sys.exit() is a fault like any other, and Ctrl-C is the user's."""


class UnknownName(LinMDPError, KeyError):
    """No environment, agent or parameter has that name."""

    def __str__(self) -> str:  # KeyError would print the repr, in quotes
        return str(self.args[0])


class OutputError(LinMDPError, OSError):
    """A result could not be written."""


class ClusterError(LinMDPError, RuntimeError):
    """Other processes or machines cannot do the work."""


class WorkFailed(ClusterError):
    """Work that was begun could not be finished; what is finished is kept."""

    status = 1


class StoreBusy(OutputError):
    """Another program is writing to the same store."""

    status = 1


class LinMDPWarning(UserWarning):
    """The run is valid, but it will probably not do what you want."""


@contextmanager
def without_warnings() -> Iterator[None]:
    """Inside, no `LinMDPWarning` is shown: it was shown before, or is stored elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)
        yield


def invalid(owner: str, parameter: str, rule: str, value: object) -> NoReturn:
    """Raise `InvalidParameter` with its message: the parameter, the rule, the value."""
    got = one_line(repr(value), LONGEST_VALUE)
    raise InvalidParameter(f"The '{parameter}' parameter of {owner} must be {rule}. Got {got}.")


TYPES = {"int": "a whole number", "float": "a number", "list": "a list", "string": "text", "dict": "a table"}
LIMITS = {"ge": ">=", "le": "<=", "min_length": "of length >="}


def ruled(found: Mapping[str, Any]) -> str:
    """An error of pydantic as all others are: the rule, the value."""
    kind, limits = found["type"], found.get("ctx", {})
    if kind == "missing":
        return "must be given."
    if kind == "extra_forbidden":
        return "must be left out: nothing has that name."
    rules = [f"{words} {limits[name]}" for name, words in LIMITS.items() if name in limits]
    rule = rules[0] if rules else TYPES.get(kind.partition("_")[0])
    return f"must be {rule}. Got {one_line(repr(found['input']), LONGEST_VALUE)}." if rule else found["msg"]


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
    if type(value) is float or (isinstance(value, Real) and not isinstance(value, bool)):  # a type is told faster
        number = float(value)
        if math.isfinite(number) and (low < number if open_low else low <= number) and number <= high:
            return number
    invalid(owner, parameter, _interval_rule("a finite number", low, high, open_low), value)


def one_number(value: Any) -> float:
    """`value` as a float; TypeError or ValueError for anything else, such as text, or an array of one number.

    Nothing is lost on the way: a complex number is refused, and so is what is masked or a length of time.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    several = bool(getattr(value, "ndim", False)) or hasattr(value, "mask")
    if isinstance(value, str | bytes) or kind not in "biufO" or several:
        raise TypeError(f"{type(value).__name__} is not a number")
    try:
        return float(value)
    except FAULTS as error:  # of a type of somebody else's; a whole number that no float can hold
        raise TypeError(described(error)) from error


REWARD_SLACK = 1e-9
"""Rounding allowed on a reward before it counts as outside its range."""


def check_reward(reward: Any, reward_range: tuple[float, float], k: int | None, h: int) -> float:
    """`reward` of episode k (None: not known) and step h as a float, if it is one number within the range."""
    low, high = reward_range
    try:
        value = reward if type(reward) is float else one_number(reward)
        if math.isfinite(value) and low - REWARD_SLACK <= value <= high + REWARD_SLACK:
            return value
        rule = "one finite number" if high - low == math.inf else f"in [{low:g}, {high:g}]"
    except (TypeError, ValueError):
        rule = "one number"
    which = f"step {h}" if k is None else f"episode {k}, step {h}"
    raise InvalidData(f"The reward of {which} must be {rule}. Got {shown(reward)}.{_range_hint(reward, low, high)}")


def _range_hint(reward: Any, low: float, high: float) -> str:
    """Which parameter of `gym:...` or GymTask widens the range."""
    if not isinstance(reward, float | int) or not _finite(reward) or low <= reward <= high:
        return ""
    name = "reward_low" if reward < low else "reward_high"
    return f" Give {name}={reward:g}, or reward=clip."


def _finite(number: float) -> bool:
    """Whether a float can hold it."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def check_flag(what: str, value: Any) -> bool:
    """`value` as True or False; 1 and 0 are, and nothing else: "False" would be true, and None false."""
    if value is True or value is False:
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    whole = type(value) is int or (kind in ("b", "i", "u") and not getattr(value, "ndim", 0))
    if whole and (value == 0 or value == 1):
        return bool(value)
    raise Fault(what, "True or False", value)


def check_int(owner: str, parameter: str, value: object, *, low: int, high: int | None = None) -> int:
    """`value` as an int within [low, high]."""
    number = None
    if type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool)):
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


def needed(module: str, words: str, kind: type[LinMDPError] = InvalidParameter) -> Any:
    """An optional dependency; where it is missing, an error that says what needs it and how to install it.

    "{name}" in `words` stands for the package that was not found.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise kind(words.format(name=error.name)) from None


ELSEWHERE = {"gamma": "discount", "lambda": "lam", "regularization": "lam", "horizon": "H"}
"""What other libraries call our parameters."""


def unknown(kind: str, name: str, known: Iterable[str], meant: str | None = None) -> NoReturn:
    """Raise `UnknownName` with the name that was probably meant, or all that there are."""
    options = sorted(known)
    name = one_line(name, LONGEST_VALUE)
    near = difflib.get_close_matches(name, options, n=1)
    if ELSEWHERE.get(name.lower()) in options:
        near = [ELSEWHERE[name.lower()]]
    elif meant:
        near = [meant]
    elif "gym" in options and re.search(r"-v\d+$", name):
        near = [f"gym:{name}"]
    hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(options) or 'none'}."
    if not near and kind in ("agent", "environment"):
        hint += " Import the module of your own with --import MODULE."
    raise UnknownName(f"There is no {kind} '{name}'. {hint}")


def _interval_rule(kind: str, low: float, high: float, open_low: bool) -> str:
    if high == math.inf:
        return kind if low == -math.inf else f"{kind} {'>' if open_low else '>='} {low:.12g}"
    return f"{kind} in {'(' if open_low else '['}{low:.12g}, {high:.12g}]"
