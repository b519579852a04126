"""The supply chain: everything locked and unchanged, advisories read offline, and no network at run time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from test_faults import benchmark

audit = benchmark("audit")
ROOT = Path(__file__).parent.parent


def test_every_package_of_the_test_environment_is_locked_in_its_version() -> None:
    assert list(audit.unlocked()) == []
    assert len(audit.needed()) > 50


def test_every_version_has_its_hashes_but_that_of_torch() -> None:
    """locked.txt agrees with constraints.txt, which `benchmarks/lock.py` reads when it writes it."""
    lines = [line.split() for line in (ROOT / "locked.txt").read_text().splitlines() if not line.startswith("#")]
    locked = {name: hashes for name, *hashes in lines}
    versions = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert {line for line in versions if not line.startswith("torch==")} == set(locked)
    assert all(locked.values())
    assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", one) for hashes in locked.values() for one in hashes)


@pytest.mark.slow
def test_pip_takes_the_locked_versions_by_their_hashes_and_the_folder_by_its_constraints(tmp_path: Path) -> None:
    """In a new environment; what a core install needs."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    names = {name.replace("_", "-").lower() for name in audit.needed(extras=())}
    lines = (ROOT / "locked.txt").read_text().splitlines()
    core = [line for line in lines if line.partition("==")[0].replace("_", "-").lower() in names]
    assert len(core) == len(names)
    (tmp_path / "core.txt").write_text("\n".join(core))
    for words in (["--no-deps", "--require-hashes", "-r", str(tmp_path / "core.txt")], ["-c", "constraints.txt", "."]):
        pip = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", "--dry-run", *words]
        done = subprocess.run(pip, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_a_core_install_needs_neither_matplotlib_nor_torch() -> None:
    names = set(audit.needed(extras=()))
    assert {"numpy", "gymnasium", "typer", "pydantic", "safetensors", "joblib"} <= names
    assert not names & {"matplotlib", "pillow", "fonttools", "torch", "dask", "plotly", "scipy"}


def advisory(**affected: Any) -> dict[str, Any]:
    return {"id": "X-1", "affected": [{"package": {"ecosystem": "PyPI", "name": "NumPy"}, **affected}]}


def between(*events: dict[str, str]) -> dict[str, Any]:
    return advisory(ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (between({"introduced": "0"}), 1),
        (between({"introduced": "0"}, {"fixed": "1.0"}), 0),
        (between({"introduced": "1.0"}, {"fixed": "99"}), 1),
        (between({"introduced": "99"}), 0),
        (between({"introduced": "0"}, {"last_affected": "1.9"}), 0),
        (advisory(versions=["1.0", audit.locked()["numpy"]]), 1),
        (advisory(versions=["1.0"]), 0),
    ],
)
def test_an_advisory_that_names_a_locked_version_is_found(entry: dict[str, Any], found: int, tmp_path: Path) -> None:
    (tmp_path / "X-1.json").write_text(json.dumps(entry))
    assert len(list(audit.advised(tmp_path))) == found


NO_NETWORK = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "urllib.Request"):
        with open({log!r}, "a") as file:
            file.write(f"{{event}} {{arguments!r}}\\n")
        raise RuntimeError("no network")

sys.addaudithook(refuse)
"""

JOBS = (
    ("envs",),
    ("agents",),
    ("run", "lock:H=4", "lsvi-ucb", "-k", "20", "--seeds", "4", "--jobs", "2"),
    ("run", "lock:H=4", "lsvi-ucb:storage=centres,lam=0.1,M=4", "-k", "20", "--checkpoint", "{tmp}/saved"),
    ("compare", "riverswim:H=5", "lsvi-ucb", "-k", "20", "--out", "{tmp}/compared"),
    ("check", "gym:FrozenLake-v1,H=10", "--agent", "lsvi-ucb"),
    ("run", "linearized:model=phoenix,mode=model,H=4,anchors=8", "lsvi-ucb", "-k", "5"),
    ("sweep", str(ROOT / "tests" / "small.toml"), "--jobs", "2", "--out", "{tmp}/sweep"),
    ("table", "{tmp}/sweep"),
    ("report", "{tmp}/sweep"),
)


def test_no_job_asks_for_the_network(tmp_path: Path) -> None:
    """Every Python process of every job, workers included, refuses to open a connection, and says if it was asked."""
    log = tmp_path / "asked"
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK.format(log=str(log)))
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    probe = "import socket; socket.getaddrinfo('localhost', 80)"
    assert subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True).returncode == 1
    assert log.read_text().startswith("socket.getaddrinfo")
    log.unlink()
    for job in JOBS:
        line = [sys.executable, "-c", "from linmdp.cli import main; main()", *(a.format(tmp=tmp_path) for a in job)]
        done = subprocess.run(line, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (job, done.stderr)
    assert not log.exists(), log.read_text()
