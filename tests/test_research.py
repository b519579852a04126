"""The studies: every sweep is valid, every table has a page, no page waits for a table, and nobody imports them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from linmdp.plugins import import_modules
from linmdp.runner.sweep import plan, read_sweep
from research.__main__ import parts, studies
from research.study import DOCS, GENERATED, HERE, ROOT, Study, by_env, within, write

SWEEPS = sorted(HERE.glob("*/*.toml"))
WRITTEN_BY_THEMSELVES = {"api.md"}
"""What the site writes when it is built."""


def test_every_study_can_be_run_by_its_name() -> None:
    assert studies()
    for study in studies():
        assert parts(study)
        assert all(callable(part) for part in parts(study).values())


@pytest.mark.parametrize("path", SWEEPS, ids=lambda p: f"{p.parent.name}-{p.stem}")
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_every_sweep_of_a_study_is_valid(path: Path) -> None:
    import_modules(["wide"], str(HERE / "headlines"))
    assert plan(read_sweep(path))


def test_every_study_that_a_page_names_is_there() -> None:
    named = 0
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for study, part in re.findall(r"-m research (\w+)(?: (\w[\w.-]*\w))?", page.read_text()):
            assert study in studies(), page.name
            assert not part or part in parts(study), page.name
            named += 1
    assert named > 20


def test_pages_include_every_table_and_every_table_is_there() -> None:
    included = set[str]()
    for page in DOCS.glob("*.md"):
        included |= set(re.findall(r"include\} generated/(.+)$", page.read_text(), flags=re.MULTILINE))
    there = {path.name for path in GENERATED.iterdir()} - WRITTEN_BY_THEMSELVES
    assert included - WRITTEN_BY_THEMSELVES == there


def test_every_picture_is_shown_and_every_picture_shown_is_there() -> None:
    pages = [*DOCS.glob("*.md"), *GENERATED.glob("*.md"), ROOT / "README.md"]
    shown = {name for page in pages for name in re.findall(r"\((?:docs/)?images/(.+?)\)", page.read_text())}
    assert shown == {path.name for path in (DOCS / "images").iterdir()}


def test_nobody_imports_a_study_and_they_stay_few_lines() -> None:
    for path in (*ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/*.py"), *DOCS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "research" for name in names), path
    files = [path for path in HERE.rglob("*") if path.suffix in (".py", ".toml", ".md")]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 2500
    assert len(list((ROOT / "examples").iterdir())) <= 8
    assert len(list(DOCS.glob("*.py"))) <= 3


def test_a_study_runs_what_its_store_lacks_and_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the order of its sweep, whatever the order in the store."""
    block = 'env = ["lock:H=4", "lock:H=3"]\nagents = ["random", "lsvi-ucb"]\nepisodes = 5\nseeds = 2\n'
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "study.toml").write_text(f'name = "small"\n[[runs]]\n{block}')
    monkeypatch.setattr("research.study.HERE", tmp_path)
    monkeypatch.setattr("research.study.GENERATED", tmp_path)
    study = Study("small", tmp_path / "store", jobs=1)
    first = study.results()
    assert list(by_env(first)) == ["lock:H=4", "lock:H=3"]
    assert [(r.agent, r.seed) for r in first[:4]] == [("random", 0), ("random", 1), ("lsvi-ucb", 0), ("lsvi-ucb", 1)]
    again = Study("small", tmp_path / "store", stored=True).results()
    assert [r.cpu_seconds for r in again] == [r.cpu_seconds for r in first]
    write("table", within([1.0, 1.0]))
    assert (tmp_path / "table.md").read_text() == "1\n"
