"""Settings of all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from linmdp.envs.mapping import MAPS
from linmdp.plugins import IMPORTED, REGISTERED
from linmdp.runner.registry import AGENTS, ENVS

settings.register_profile("linmdp", deadline=None)  # machines are shared: no test is judged by its time
settings.load_profile("linmdp")


@pytest.fixture
def as_before() -> Iterator[None]:
    """What a test registers or imports by name is gone after it."""
    known = [(names, dict(names._known)) for names in (AGENTS, ENVS, MAPS)]
    yield
    for names, before in known:
        names._known = before
    for name in IMPORTED:
        sys.modules.pop(name, None)
    REGISTERED.clear()
    IMPORTED.clear()
