"""Run a study: show its tables and put them into the pages of docs, and its pictures into docs/images.

python -m research                          the studies, and the parts of each
python -m research STUDY [PART...]          some parts of it, or all

Runs are kept in a store: what it has is not run again, and what was interrupted goes on.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from linmdp.errors import InvalidParameter, LinMDPError, unknown
from research.study import HERE, ROOT, Study, write

Part = Callable[[Study], str | None]
"""Returns the text between `<!-- PART -->` and `<!-- /PART -->`, or writes what it makes by itself."""


def studies() -> list[str]:
    """The folders that have something to run."""
    return sorted(path.parent.name for path in HERE.glob("*/read.py"))


def parts(study: str) -> dict[str, Part]:
    """What a study makes, by name."""
    found: dict[str, Part] = importlib.import_module(f"research.{study}.read").PARTS
    return found


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m research", description="Run a study of research/.")
    parser.add_argument("study", nargs="?", metavar="STUDY", help="without it: the studies, and the parts of each")
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to make; without one: all")
    parser.add_argument("--store", type=Path, metavar="DIR", help="where runs are kept (docs/_build/research/STUDY)")
    parser.add_argument("--stored", action="store_true", help="run nothing; show what the store has")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (one a core)")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds, where a study lets one choose")
    parser.add_argument("--seed", type=int, metavar="S", help="the first of them")
    return parser.parse_args()


def main() -> None:
    """List, or run and write."""
    given = arguments()
    if given.study is None:
        for name in studies():
            print(f"{name}: {', '.join(parts(name))}")
        return
    if given.study not in studies():
        unknown("study", given.study, studies())
    for name in ("jobs", "seeds"):
        if (value := getattr(given, name)) is not None and value < 1:
            raise InvalidParameter(f"--{name} must be at least 1. Got {value}.")
    known = parts(given.study)
    for name in given.parts:
        if name not in known:
            unknown("part", name, known)
    store = given.store or ROOT / "docs" / "_build" / "research" / given.study
    study = Study(given.study, store.resolve(), given.jobs, given.stored, given.seeds, given.seed)
    for name in given.parts or known:
        text = known[name](study)
        if text is not None:
            write(name, text)
        print(f"({name})", flush=True)


if __name__ == "__main__":
    try:
        main()
    except LinMDPError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
