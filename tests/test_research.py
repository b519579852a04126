"""The studies: every sweep is valid, every table has a page, no page waits for a table, and nobody imports them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from linmdp.experiments.games import GAME_SCALES
from linmdp.experiments.paper import TABLES
from linmdp.plugins import import_modules
from linmdp.report.tables import in_pages, into_pages
from linmdp.runner.sweep import plan, read_sweep
from research.__main__ import parts, studies
from research.study import DOCS, HERE, ROOT, Study, by_env, pages, within, write

SWEEPS = sorted(HERE.glob("*/*.toml"))


def test_every_study_can_be_run_by_its_name() -> None:
    assert studies()
    for study in studies():
        assert parts(study)
        assert all(callable(part) for part in parts(study).values())


@pytest.mark.parametrize("path", SWEEPS, ids=lambda p: f"{p.parent.name}-{p.stem}")
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.usefixtures("as_before")  # or every command that a later test suggests would name the module
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
    assert named >= 20


def test_every_table_of_a_page_is_written_by_a_study_or_a_benchmark() -> None:
    scripts = "".join(path.read_text() for path in (*ROOT.glob("benchmarks/*.py"), HERE / "benchmark" / "read.py"))
    written = {part for study in studies() for part in parts(study)} | {"live"}
    written |= {f"linearize_{item}_{scale}" for item in (*TABLES, "distilled") for scale in GAME_SCALES}
    for page in pages():
        text = page.read_text()
        opened, closed = (re.findall(rf"^<!-- {mark}(\w[\w-]*) -->$", text, flags=re.MULTILINE) for mark in ("", "/"))
        assert opened == closed, page.name
        for name in set(opened) - written:
            stem = re.sub(r"^bench_(sweeps_)?", "", name)
            assert re.search(rf"\b({name}|{stem})\b", scripts), f"{name} of {page.name}"


QUICK = {"pages": ("families", "window"), "bounded": ("centres_bound",), "general": ("general_families",)}
"""Tables that are written in seconds and have no time of a machine in them."""


@pytest.mark.parametrize(("study", "part"), [(study, part) for study, named in QUICK.items() for part in named])
def test_a_table_of_the_docs_is_what_its_study_writes(study: str, part: str, tmp_path: Path) -> None:
    assert in_pages(pages(), part) == str(parts(study)[part](Study(study, tmp_path))).strip()


def test_a_table_goes_into_its_place_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n\n<!-- one -->\n| old |\n<!-- /one -->\n\n<!-- two -->\nx\n<!-- /two -->\n")
    into_pages([page], "one", "| new \\1 |\n")
    assert page.read_text() == "# A\n\n<!-- one -->\n| new \\1 |\n<!-- /one -->\n\n<!-- two -->\nx\n<!-- /two -->\n"
    assert in_pages([page], "one") == "| new \\1 |"
    assert in_pages([page], "three") == ""


def test_pages_are_plain_markdown() -> None:
    """What a viewer without Sphinx would show as it is: directives, roles, labels."""
    for page in DOCS.glob("*.md"):
        text = re.sub(r"^```\w*\n.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^`{3,}\{|^:{3,}|\{\w+\}`|^\([\w-]+\)=$", text, flags=re.MULTILINE), page.name


def test_every_link_from_page_to_page_leads_somewhere() -> None:
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{target} in {page.name}"


def test_every_picture_is_shown_and_every_picture_shown_is_there() -> None:
    shown = {name for page in pages() for name in re.findall(r"[(\"](?:docs/)?images/(.+?)[)\"]", page.read_text())}
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
    (tmp_path / "small" / "notes.md").write_text("<!-- table -->\n<!-- /table -->\n")
    study = Study("small", tmp_path / "store", jobs=1)
    first = study.results()
    assert list(by_env(first)) == ["lock:H=4", "lock:H=3"]
    assert [(r.agent, r.seed) for r in first[:4]] == [("random", 0), ("random", 1), ("lsvi-ucb", 0), ("lsvi-ucb", 1)]
    again = Study("small", tmp_path / "store", stored=True).results()
    assert [r.cpu_seconds for r in again] == [r.cpu_seconds for r in first]
    write("table", within([1.0, 1.0]))
    assert (tmp_path / "small" / "notes.md").read_text() == "<!-- table -->\n1\n<!-- /table -->\n"
