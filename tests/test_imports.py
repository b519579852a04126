"""The arrows point one way: who may import whom, read from the source."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import linmdp

ROOT = Path(linmdp.__file__).parent
EVERYONE = {"types", "errors", "io", "plugins"}
MAY_IMPORT = {
    "types": {"features"},  # for the type checker only
    "errors": set[str](),
    "io": {"io"},
    "plugins": set[str](),
    "features": {"features"},
    "envs": {"envs", "features"},
    "agents": {"agents", "features"},
    "linearize": {"linearize", "envs", "features"},
    "runner": {"runner", "envs", "features", "agents", "results"},
    "results": {"results"},
    "export": {"export", "agents", "envs", "features", "results"},
    "report": {"report", "results"},
    "api": {"agents", "envs", "experiments", "report", "results", "runner"},
    "learner": {"agents", "envs", "export", "features", "results", "runner"},
    "testing": {"testing", "agents", "envs", "features", "runner"},
}
MAY_IMPORT["experiments"] = {"experiments", "linearize", "report", *MAY_IMPORT["runner"]}
MAY_IMPORT["cli"] = {"cli", "export", *MAY_IMPORT["experiments"]}
FIELDS = ("id", "attr", "name", "arg")
"""Where a syntax tree has names."""
FILES = sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT or p.stem in MAY_IMPORT)


def imported_parts(path: Path) -> set[str]:
    """The parts of linmdp (its files and folders) that a file imports, wherever in the file."""
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"relative import in {path}"
        parts |= {name.split(".")[1] for name in names if name.startswith("linmdp.")}
    return parts


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert imported_parts(path) <= MAY_IMPORT[part] | EVERYONE


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_one_thing(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_memory_is_a_few_files() -> None:
    """One file for each kind of memory, and nothing beside them."""
    files = [p for p in (ROOT / "agents" / "memory").glob("*.py") if p.stem != "__init__"]
    assert len(files) <= 8
    assert sum(len(p.read_text().splitlines()) for p in files) <= 2150


@pytest.mark.parametrize("folder", ["memory", "exploration"])
def test_chains_of_classes_are_short(folder: str) -> None:
    """At most three classes of linmdp stand above any class."""
    for path in (ROOT / "agents" / folder).glob("*.py"):
        for kind in vars(importlib.import_module(f"linmdp.agents.{folder}.{path.stem}")).values():
            if isinstance(kind, type) and kind.__module__.startswith("linmdp.agents."):
                assert sum(c.__module__.startswith("linmdp.") for c in kind.__mro__[1:]) <= 3, kind


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_are_words_that_a_stranger_knows(path: Path) -> None:
    """None is a word that means something in this house alone; `hope` is what lsvi-gp has no data on yet."""
    banned = {"look", "room", "urge", "doubt", "restless", "patient", "content", "vacate", "vacated", "lent", "parcel"}
    banned |= {"seldom", "apart", "ours"} | ({"hope"} if "gp" not in path.stem and path.stem != "returns" else set())
    names = {getattr(node, field, "") for node in ast.walk(ast.parse(path.read_text())) for field in FIELDS}
    parts = {part.lower() for name in names for part in re.findall("[A-Z]?[a-z]+|[A-Z]+", str(name))}
    assert not parts & banned


def in_fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_is_light() -> None:
    heavy = {"torch", "scipy.stats", "matplotlib", "dask", "joblib", "typer"}
    loaded = in_fresh_python("import linmdp, sys; print(*sys.modules)").split()
    assert not heavy & set(loaded)


def test_agents_and_models_need_only_numpy() -> None:
    """On a machine without Gymnasium, typer and the rest, the algorithms still import and learn."""
    blocked = ("gymnasium", "typer", "pydantic", "joblib", "threadpoolctl", "matplotlib", "rich")
    assert "learned" in in_fresh_python(
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "import linmdp, linmdp.envs.linear_mdps as s\n"
        "model = s.synthetic(S=5, A=2, d=3, H=4)\n"
        "task = linmdp.Task(S=5, A=2, d=3, H=4, reward_range=(0, 1), features=model.features)\n"
        "agent = linmdp.LSVIUCB(task)\n"
        "agent.begin_episode(); agent.observe(0, 0, 1, 0.5, 2, False); agent.end_episode(); agent.begin_episode()\n"
        "from linmdp.runner.batch import Job, run_unit\n"
        "jobs = [Job('lock', 'lsvi-ucb:beta=0.1', 5, seed, 1) for seed in range(3)]\n"
        "import linmdp.runner.batch as batch, contextlib\n"
        "batch.one_blas_thread = contextlib.nullcontext\n"
        "linmdp.optimum(model); print('learned', agent.updates, run_unit(jobs)[2].final_regret)"
    )


def test_every_public_name_is_there() -> None:
    for name in linmdp.__all__:
        assert getattr(linmdp, name) is not None
    assert set(linmdp.__all__) <= set(dir(linmdp))
