"""The examples of the documentation run as they stand, in order, in a process of their own."""

from __future__ import annotations

import importlib
import operator
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from linmdp.cli.main import app
from linmdp.io.memory import memory_kept

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LONG = ["extending.md", "extending-lsvi.md", "python.md"]
"""Pages that build something, step by step."""


def examples(page: Path) -> list[str]:
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def run(blocks: list[str], folder: Path) -> str:
    """What they print, one after the other in one process."""
    script = folder / "example.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", LONG)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    blocks = examples(DOCS / page)
    assert len(blocks) > 3
    run(blocks, tmp_path)


def test_the_examples_of_all_other_pages_run(tmp_path: Path) -> None:
    """Each page for itself, one after the other in one process."""
    pages = [page for page in sorted(DOCS.glob("*.md")) if page.name not in LONG and examples(page)]
    assert {"first-task.md", "learner.md"} <= {page.name for page in pages}
    run([f"exec({chr(10).join(examples(page))!r}, {{}})" for page in pages], tmp_path)


def test_every_command_of_the_pages_can_be_given() -> None:
    """Parsed, not run: commands, arguments and options are there, and values are of their kinds."""
    with memory_kept():  # which parsing --max-memory sets
        assert parsed_commands() > 50


def parsed_commands() -> int:
    """How many commands stand on the pages."""
    group: Any = typer.main.get_command(app)
    count = 0
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for line in re.findall(r"^(?:\$ )?linmdp (.+)$", page.read_text().replace("\\\n", " "), flags=re.MULTILINE):
            for words in line.partition(" #")[0].split("; "):  # a semicolon within an agent has no space after it
                name, *arguments = shlex.split(words.replace("linmdp ", ""))
                placeholders = any(re.fullmatch(r"[A-Z\[|.]{2,}.*", word) or word == "..." for word in arguments)
                if name in group.commands and not placeholders and "--import" not in arguments:
                    group.commands[name].make_context(name, arguments)
                    count += 1
    return count


def test_the_snippet_of_the_readme_learns_and_says_so(tmp_path: Path) -> None:
    (snippet,) = examples(ROOT / "README.md")
    assert len([line for line in snippet.splitlines() if line]) <= 10
    assert re.search(r"# learned: \d+( \[\d+, \d+\])? an episode, random 20.4 ", snippet, re.MULTILINE)
    assert re.match(r"learned: \d+( \[\d+, \d+\])? an episode, random 20.4 ", run([snippet], tmp_path))


def test_a_walk_through_one_step_opens_at_most_eight_files_that_have_what_it_names() -> None:
    rows = check_map("A walk through one step")
    assert 5 < rows <= 8


def test_where_to_change_what_is_where_it_says() -> None:
    assert check_map("Where to change what") > 5


def check_map(title: str) -> int:
    """How many files a table names; each must have what it is said to have."""
    part = (ROOT / "CONTRIBUTING.md").read_text().split(f"## {title}")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| `")]
    for file, names in rows:
        module = importlib.import_module("linmdp." + file.strip(" `").removesuffix(".py").replace("/", "."))
        for name in re.findall("`(.*?)`", names):
            found = operator.attrgetter(name)(module)
            assert found.__module__ == module.__name__, f"{name} is not in {file}"
    return len(rows)
