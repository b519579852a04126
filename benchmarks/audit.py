"""The supply chain, checked without a network: what is installed is what is locked, and no file of it was changed.

    python benchmarks/audit.py [--osv FOLDER]

1. Every package that this project needs, with all its extras that are installed, stands in constraints.txt, and in that
   version.
2. Every file of those packages has the SHA-256 that its installer noted (RECORD).
3. With --osv: no locked version is named by an advisory in a folder of OSV JSON files (the format in which advisories
   of Python packages are published; fetch them where there is a network, check them where there is none).
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata as metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent


def name_of(text: str) -> str:
    """A package's name as everyone compares it."""
    return re.sub(r"[-_.]+", "-", text).lower()


def locked() -> dict[str, str]:
    """Versions in constraints.txt."""
    lines = (line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    return {name_of(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def needed(extras: tuple[str, ...] = ("test",)) -> dict[str, metadata.Distribution]:
    """Every installed package that the project needs, directly or not, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(r for e in extras for r in project["optional-dependencies"][e])]
    waiting, found = [(Requirement(text), "") for text in texts], dict[str, metadata.Distribution]()
    seen = set[tuple[str, frozenset[str]]]()
    while waiting:
        requirement, _ = waiting.pop()
        key = (name_of(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            there = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            continue  # for another platform or version of Python
        found[key[0]] = there
        for text in there.requires or ():
            more = Requirement(text)
            chosen = [{"extra": extra} for extra in (*requirement.extras, "")]
            if more.marker is None or any(more.marker.evaluate(extra) for extra in chosen):
                waiting.append((more, key[0]))
    return found


def unlocked() -> Iterator[str]:
    """Packages that are not locked, or installed in another version."""
    versions = locked()
    for name, there in sorted(needed().items()):
        version = there.version.partition("+")[0]
        if versions.get(name) != version:
            yield f"{name} {version} is installed, and constraints.txt has {versions.get(name, 'no version of it')}"


def changed() -> Iterator[str]:
    """Files that are not what was installed."""
    for name, there in sorted(needed().items()):
        for file in there.files or ():
            path = Path(str(there.locate_file(file)))
            if file.hash is None or file.hash.mode != "sha256" or path.suffix == ".pyc":
                continue
            if not path.is_file():
                yield f"{name}: {file} is missing"
                continue
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            if digest != file.hash.value:
                yield f"{name}: {file} is not what was installed"


def advised(folder: Path) -> Iterator[str]:
    """Locked versions that an advisory names."""
    versions = locked()
    for path in sorted(folder.rglob("*.json")):
        advisory = json.loads(path.read_text("utf-8"))
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            version = versions.get(name_of(str(package.get("name", ""))))
            if package.get("ecosystem") == "PyPI" and version and is_affected(version, affected):
                yield f"{package['name']} {version}: {advisory.get('id')}: {advisory.get('summary', '')}"


def is_affected(version: str, affected: dict[str, Any]) -> bool:
    """Whether an OSV entry names a version, one by one or by ranges of events."""
    if version in affected.get("versions", ()):
        return True
    return any(
        _within(Version(version), r["events"]) for r in affected.get("ranges", ()) if r.get("type") == "ECOSYSTEM"
    )


def _within(version: Version, events: list[dict[str, str]]) -> bool:
    inside = False
    for event in events:
        try:
            if "introduced" in event and (event["introduced"] == "0" or version >= Version(event["introduced"])):
                inside = True
            if "fixed" in event and version >= Version(event["fixed"]):
                inside = False
            if "last_affected" in event and version > Version(event["last_affected"]):
                inside = False
        except InvalidVersion:
            continue
    return inside


def main(arguments: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    wrong = [*unlocked(), *changed()]
    if "--osv" in arguments:
        wrong += advised(Path(arguments[arguments.index("--osv") + 1]))
    print("\n".join(wrong) or f"{len(needed())} packages are locked, installed in that version, and unchanged")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
