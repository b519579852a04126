"""Every command of README and of the first task runs: here with small numbers, and as it stands on a new install."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from command import linmdp as command

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "first-task.md")
SMALL = {"--episodes": 12, "--seeds": 2}
"""What a number is at most where a command only has to run."""

FIRST = {"first-task.md": "linmdp run gym:FrozenLake-v1,H=60 auto --episodes 300 --out lake"}
"""What the page says in words before its commands."""


def commands(page: Path) -> list[str]:
    """The command lines of a page, in order; also that in a comment of its Python."""
    text = page.read_text()
    lines = re.findall(r"^(?:\$ )?(linmdp .*)$", text, flags=re.MULTILINE)
    lines += re.findall(r"# (linmdp export \S+ --c \S+):", text)
    given = [FIRST[page.name]] if page.name in FIRST else []
    return given + [line.strip() for found in lines for line in found.partition("  #")[0].split(";")]


def shrunk(words: list[str]) -> list[str]:
    """The same command with small numbers."""
    pairs = zip(words, ["", *words], strict=False)
    small = [str(min(int(word), SMALL[before])) if before in SMALL else word for word, before in pairs]
    return [*small, "--budget", "12", "--seeds", "2"] if "tune" in words else small


def snippets(page: Path) -> str:
    """The Python of a page."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_every_command_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    for sweep in (ROOT / "examples").glob("*.toml"):
        small = re.sub(r"^(episodes|seeds) = .*$", r"\1 = 2", sweep.read_text(), flags=re.MULTILINE)
        (tmp_path / "examples" / sweep.name).write_text(small)
    exec(snippets(page).replace("progress=True", "progress=False").replace("episodes=300", "episodes=30"), {})
    found = commands(page)
    assert len(found) >= 4
    for line in found:
        done = command(*shrunk(shlex.split(line))[1:])
        assert done.status == 0, (line, done.err)
        assert "not drawn" not in done.err


@pytest.mark.slow
def test_every_command_runs_on_an_install_made_as_readme_says(tmp_path: Path) -> None:
    """In a copy of this repository; packages come from the index that pip is set up with."""
    ignored = shutil.ignore_patterns(".venv", ".git", "node_modules", "_build", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=ignored)
    block = re.search(r"^```\n(python3 -m venv .*?)^```", PAGES[0].read_text(), flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    lines = [line.partition("  #")[0].strip() for line in block[1].splitlines()]
    for page in PAGES:
        (tmp_path / "clone" / f"{page.stem}.py").write_text(snippets(page))
        lines += [f"python {page.stem}.py", *(f"{line} --yes" if " run " in line else line for line in commands(page))]
    script = "set -e\nunset PYTHONPATH\n" + "\n".join(lines)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path / "clone", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not drawn" not in done.stderr
