"""One version, and everything that a release says of itself agrees with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import linmdp

ROOT = Path(__file__).parent.parent


def test_the_version_stands_in_one_place_and_elsewhere_follows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/linmdp/__init__.py"
    first = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[0]
    cited = re.findall(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert [first, *cited] == [linmdp.__version__] * 2


def test_type_checkers_are_told_that_it_is_typed() -> None:
    assert (Path(linmdp.__file__).parent / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "Typing :: Typed" in project["project"]["classifiers"]
