"""Studies: what is run, and how it is shown. One module per study; NAME.toml holds its settings and figures."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def study(name: str) -> Any:
    """What stands in NAME.toml, with tuples in place of lists."""
    return _frozen(tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8")))


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
