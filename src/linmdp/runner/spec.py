"""`name:key=value,key=value`: how environments and agents are written on the command line and in files."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping
from typing import Any

from linmdp.errors import InvalidParameter, invalid, unknown
from linmdp.plugins import IMPORTED, REGISTERED, imports

Value = int | float | bool | str | None

FIRST = {"gym": "id", "general": "family", "bsuite": "id"}
"""Parameters whose name may be left out, if they come first."""


def parse_spec(text: str) -> tuple[str, dict[str, Value]]:
    """`"lock:H=10,A=5"` as ("lock", {"H": 10, "A": 5}). In `gym:ID,...` the first part is the `id`, and so on."""
    if not isinstance(text, str):
        raise InvalidParameter(f"A spec must be text, 'name' or 'name:key=value,...'. Got {text!r:.80}.")
    name, _, rest = text.partition(":")
    parameters: dict[str, Value] = {}
    if not name.strip():
        raise InvalidParameter(f"A spec must be 'name' or 'name:key=value,...'. Got {text!r}.")
    for index, part in enumerate(rest.split(",") if rest else []):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and index == 0 and key and name.strip() in FIRST:
            key, value = FIRST[name.strip()], key
        elif not equals or not key:
            raise InvalidParameter(f"A parameter in '{text}' must be written key=value. Got {part!r}.")
        if key in parameters:
            raise InvalidParameter(f"The '{key}' parameter in '{text}' must be given once. Got it twice.")
        parameters[key] = parse_value(value)
    return name.strip(), parameters


def parse_value(text: str) -> Value:
    """A whole number, a number, true/false, none, or the text itself."""
    words: dict[str, Value] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def value_text(value: Any) -> str:
    """The text that `parse_value` reads as this value."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def check_names(owner: str, given: Mapping[str, Any], known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse parameters that `owner` does not have, with the nearest match."""
    for name in given:
        if name not in known:
            unknown(f"parameter of {owner}", name, known)


def check_no_import(env: str) -> None:
    """A file must not make us import a module, as Gymnasium does for an id with a colon.

    One that was imported with --import may be named.
    """
    name, parameters = parse_spec(env)
    module, colon, _ = str(parameters.get("id")).rpartition(":")
    if name == "gym" and colon and module not in IMPORTED:
        how = "if it is yours, use --import MODULE"
        raise InvalidParameter(f"The id of a gym environment in a file must not name a module: {how}. Got {env!r:.80}.")


def extended_spec(spec: str, parameters: Mapping[str, Any]) -> str:
    """The spec with more parameters."""
    more = ",".join(f"{name}={value_text(value)}" for name, value in parameters.items())
    return spec + ("," if ":" in spec else ":") * bool(more) + more


def written_spec(name: str, parameters: Mapping[str, Any]) -> str:
    """The spec that `parse_spec` reads as this name and these parameters; a value that no spec can hold is refused."""
    texts = {key: value_text(value) for key, value in parameters.items()}
    for key, text in texts.items():
        if "," in text or parse_value(text.strip()) != parameters[key]:
            invalid(name, key, "a number, true, false, none, or text without a comma", parameters[key])
    return name + ":" * bool(texts) + ",".join(f"{key}={text}" for key, text in texts.items())


def rerun_words(env: str | None, agent: str | None) -> str:
    """Both specs as they stand in a command line; empty where it could not know them: an object, or a name given here.

    What a module of --import has registered is known wherever that module is imported.
    """
    if env is None or agent is None:
        return ""
    for group, spec in (("linmdp.envs", env), ("linmdp.agents", agent)):
        if parse_spec(spec)[0] in REGISTERED.get(group, {}):
            return ""
    return shlex.join([env, agent]) + imports()
