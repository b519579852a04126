"""Names that others can add to: what is built in, what is registered, and what installed packages declare.

An installed package declares agents, environments and feature maps as entry points (`linmdp.agents`, `linmdp.envs`,
`linmdp.features`); they are imported when one of their names is first needed. What is registered in this process
travels with the work to other processes: see `carried`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from linmdp.errors import InvalidParameter, LinMDPError, LinMDPWarning, described

T = TypeVar("T", bound=Callable[..., Any])
Maker = TypeVar("Maker", bound=Callable[..., Any])
Decorator = Callable[[Maker], Maker]

REGISTERED: dict[str, dict[str, Any]] = {}
"""What this process has registered, by group and name; it is sent along with work for other processes."""

IMPORTED: dict[str, str] = {}
"""Modules of `--import`, each with the folder that it was looked for in; other processes import them themselves."""

_importing = ""
"""What is being imported by name now: a "module" of `--import`, the "package" of an entry point, or nothing."""


class Names(Mapping[str, T]):
    """Classes or functions of one kind by name; iterating loads those of all installed packages.

    Parameters
    ----------
    kind : what they are, in messages: "agent"
    group : of the entry points: "linmdp.agents"
    built_in : by name; text such as "linmdp.envs.adapter:GymTask" is imported on first use
    check : raises if a value cannot go by a name
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, T | str], check: Callable[[str, T], None]) -> None:
        self.kind, self.group, self._check = kind, group, check
        self._known: dict[str, Any] = dict(built_in)
        self._broken: set[str] = set()

    @property
    def _registered(self) -> dict[str, Any]:
        return REGISTERED.setdefault(self.group, {})

    def register(self, name: str, value: T | None = None) -> Any:
        """Add `value` under a name that is free, or that the same value already has; a decorator without `value`."""
        if value is None:
            return lambda found: self.register(name, found)
        self._checked(name, value)
        taken = self._find(name)
        if taken is not None and not _same(taken, value):
            raise InvalidParameter(
                f"The name of a new {self.kind} must be free. Got '{name}', which is {_place(taken)}."
            )
        (self._known if _importing else self._registered)[name] = value
        return value

    @contextmanager
    def temporarily(self, name: str, value: T) -> Iterator[None]:
        """`value` under a free name, for a while."""
        self.register(name, value)
        try:
            yield
        finally:
            del self._registered[name]

    def _checked(self, name: str, value: T) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            rule = f"The name of a new {self.kind} must be letters, digits, '-', '_' and '.'"
            raise InvalidParameter(f"{rule}. Got {name!r:.80}.")
        self._check(name, value)

    def _here(self, name: str) -> Any:
        return self._registered.get(name) or self._known.get(name)

    def _find(self, name: str) -> T | None:
        if self._here(name) is None:
            self._load(name)
        if isinstance(self._here(name), str):
            self._known[name] = pkgutil.resolve_name(self._here(name))
        found: T | None = self._here(name)
        return found

    def _load(self, name: str) -> None:
        """Import what an installed package declares; if that fails it is as if it were not there, with a warning."""
        point = _declared(self.group).get(name)
        if point is None or name in self._broken or _importing == "package":  # which may declare several, half-imported
            return
        try:
            with _known_elsewhere("package"):
                value = point.load()
            self._checked(name, value)
            self._known[name] = value
        except Exception as error:
            self._broken.add(name)
            package = point.dist.name if point.dist else point.value
            what = f"the {self.kind} '{name}' of the package '{package}'"
            warnings.warn(f"{what} cannot be used: {described(error, 300)}", LinMDPWarning)

    def __getitem__(self, name: str) -> T:
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        for name in _declared(self.group):
            self._find(name)
        return iter({**self._known, **self._registered})

    def __len__(self) -> int:
        return len(list(iter(self)))


@contextmanager
def _known_elsewhere(what: str) -> Iterator[None]:
    """What is registered meanwhile need not travel: other processes import it by name."""
    global _importing
    before, _importing = _importing, what
    try:
        yield
    finally:
        _importing = before


@cache
def _declared(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in reversed(tuple(entry_points(group=group)))}  # the first one wins


def _same(one: Any, two: Any) -> bool:
    """Whether they are one object, or two versions of one definition, as when a notebook's cell is run again."""
    place = _place(one)
    return one is two or (place == _place(two) and "<lambda>" not in place)


def _place(value: Any) -> str:
    return value if isinstance(value, str) else f"{value.__module__}.{getattr(value, '__qualname__', value)}"


def settable(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function that can be given by name and have a default."""
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: p for p in named if p.default is not p.empty}


def check_maker(kind: str, name: str, maker: Callable[..., Any], positional: int) -> None:
    """Raise unless `maker` can be called with that many arguments and nothing else."""
    if not callable(maker):
        raise InvalidParameter(f"The maker of the {kind} '{name}' must be a function or a class. Got {maker!r:.80}.")
    try:
        inspect.signature(maker).bind(*range(positional))
    except TypeError as error:
        rule = f"must take {positional} argument{'s' * (positional != 1)} and have defaults for its parameters"
        raise InvalidParameter(f"The maker of the {kind} '{name}' {rule}. Got: {error}.") from None


def import_modules(names: Iterable[str], folder: str | None = None) -> None:
    """Import modules that register things, also from `folder` (default: the current one)."""
    folder = folder or os.getcwd()
    for name in names:
        if name in IMPORTED:
            continue
        if name.endswith(".py") or "/" in name or os.sep in name:
            stem = os.path.basename(name).removesuffix(".py") or "my_agents"
            raise InvalidParameter(f"The '--import' option must be a module's name, as in {stem}. Got '{name}'.")
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            with _known_elsewhere("module"):
                importlib.import_module(name)
        except LinMDPError as error:  # found, and wrong: say what is wrong
            raise type(error)(f"{error} (in the module '{name}' of --import)") from error
        except (Exception, SystemExit) as error:
            rule = "must be importable wherever runs take place"
            words = f"The module '{name}' of --import {rule}. Got {described(error, 300)}."
            raise InvalidParameter(words) from error
        IMPORTED[name] = folder


def imports() -> str:
    """The options of a command line that make known what was imported here: " --import my_agents", or nothing."""
    return "".join(f" --import {name}" for name in IMPORTED)


def _known_here(
    function: Callable[..., Any], imported: dict[str, str], registered: dict[str, dict[str, Any]], *arguments: Any
) -> Any:
    """Call a function in whichever process, where first is made known what was known elsewhere."""
    for name, folder in imported.items():
        import_modules([name], folder)
    for group, found in registered.items():
        REGISTERED.setdefault(group, {}).update(found)
    return function(*arguments)


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for other processes, with everything that was registered or imported by name in this one."""
    registered = {group: dict(found) for group, found in REGISTERED.items() if found}
    return partial(_known_here, function, dict(IMPORTED), registered) if IMPORTED or registered else function
