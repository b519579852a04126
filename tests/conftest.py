"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("linmdp", deadline=None)  # machines are shared: no test is judged by its time
settings.load_profile("linmdp")
