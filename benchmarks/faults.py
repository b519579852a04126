"""Faults: a sweep under random SIGKILLs, on a full disk, in a read-only folder, with a clock that goes backwards.

    python benchmarks/faults.py [RUNS]        default: 2,000 runs

After every fault the same command is given again; in the end the store must equal that of an undisturbed sweep. The
full disk is a small tmpfs in a mount namespace of its own (`unshare`); where that is not permitted the size of a file
is limited instead, and the row says so. The clock is the coordinator's `time.time`, made to run backwards: the
machine's own is not touched.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

MAIN = "from linmdp.cli import main; main()"
BACKWARDS = "import itertools, time; t = itertools.count(2e9, -3600.0); time.time = lambda: next(t); "


class Row(NamedTuple):
    """One promise: how often it was tried, how often it was broken, and how."""

    promise: str
    trials: int
    failures: int
    how: str = ""


def spec_of(runs: int) -> str:
    """A sweep of that many small runs, half of them one by one and half in lockstep."""
    seeds = max(1, runs // 4)
    return (
        'name = "faults"\n[[runs]]\nenv = "lock:H=4"\nagents = ["lsvi-ucb", "lsvi-ucb:storage=states", '
        f'"lsvi-ucb-fixed:storage=features", "random"]\nepisodes = 40\nseeds = {seeds}\n'
    )


def command(spec: Path, out: Path, before: str = "") -> list[str]:
    """The sweep on two workers."""
    return [sys.executable, "-c", before + MAIN, "sweep", str(spec), "--jobs", "2", "--out", str(out)]


def contents(store: Path) -> list[tuple[Any, ...]]:
    """Every run without the times, which differ."""
    db = sqlite3.connect(store)
    try:
        return db.execute("SELECT key, at, regret, rewards FROM runs ORDER BY key").fetchall()
    finally:
        db.close()


def stored(out: Path) -> int:
    """How many runs are in the store so far."""
    try:
        return len(contents(out / "runs.sqlite"))
    except sqlite3.Error:
        return 0


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def workers(pid: int) -> list[int]:
    """Those of them that work: loky's, not the tracker of its resources."""
    return [p for p in children(pid) if b"popen_loky" in _read(p, "cmdline")]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    lines = _read(pid, "status").decode().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)


def alive(pid: int) -> bool:
    """Whether a process is there and at work."""
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"])


def quiet(line: list[str], **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def killed(spec: Path, out: Path, kills: int, rng: random.Random) -> tuple[int, int, int]:
    """Kill workers and coordinators at random until the sweep is done.

    How many workers and how many coordinators were killed, and how many workers outlived their coordinator.
    """
    of_workers = of_coordinators = orphans = 0
    while True:
        process = quiet(command(spec, out))
        time.sleep(1.0 + rng.random())
        while process.poll() is None and of_workers + of_coordinators < kills:
            at_work = workers(process.pid)
            if at_work and rng.random() < 0.7:
                os.kill(rng.choice(at_work), signal.SIGKILL)
                of_workers += 1
            elif at_work:
                process.kill()
                process.wait()
                of_coordinators += 1
                orphans += _outlive(at_work)
            time.sleep(0.1 + 0.6 * rng.random())
        if process.wait(timeout=600) == 0:
            return of_workers, of_coordinators, orphans


def _outlive(at_work: list[int], patience: float = 5.0) -> int:
    """How many of the workers are still there after a while; they look for their parent twice a second."""
    end = time.monotonic() + patience
    while time.monotonic() < end and any(map(alive, at_work)):
        time.sleep(0.1)
    return sum(map(alive, at_work))


def memory_growth(spec: Path, out: Path, runs: int) -> tuple[int, int]:
    """An undisturbed sweep: the coordinator's bytes once a quarter is stored, and the most it ever held after that."""
    process, quarter, most = quiet(command(spec, out)), 0, 0
    while process.poll() is None:
        held = resident(process.pid)
        if quarter or stored(out) >= runs // 4:
            quarter = quarter or held
            most = max(most, held)
        time.sleep(0.1)
    return quarter, most


def full_disk(spec: Path, out: Path, folder: Path, runs: int) -> tuple[str, int, str]:
    """The sweep on a disk that is too small, then on one with room: how, the status, and what it said."""
    small = folder / "small"
    small.mkdir()
    size = f"{max(96, 3 * runs // 2)}k"  # the store needs more, and less than that to begin
    inner = f'mount -t tmpfs -o size={size} none "$0" && mkdir -p "$1" && '
    inner += '{ "${@:2}"; s=$?; cp -r "$0"/o/. "$1"; exit $s; }'
    test = subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "none", str(small)], capture_output=True)
    if test.returncode == 0:
        line = [
            "unshare",
            "-Urm",
            "bash",
            "-c",
            inner,
            str(small),
            str(out),
            *command(spec, small / "o", NO_ROOM_CHECK),
        ]
        done, how = subprocess.run(line, capture_output=True, text=True), f"tmpfs of {size}B"
    else:
        limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)); "
        done, how = subprocess.run(command(spec, out, limit), capture_output=True, text=True), "files of 300 kB at most"
    return how, done.returncode, done.stderr


NO_ROOM_CHECK = "import linmdp.runner.start as start; start.free_disk = lambda folder: 2**40; "
"""The sweep asks for its room before it starts; here the disk is to fill up under way."""


def one_line(status: int, said: str) -> bool:
    """Whether a failure is status 2 and one line that says so, after the line that announces the sweep."""
    words = [line for line in said.splitlines() if line.startswith("linmdp: ")]
    return status == 2 and len(words) == 1 and "Traceback" not in said


def rows(runs: int = 2000, kills: int = 60, seed: int = 0) -> Iterator[Row]:
    """Every fault, as a row of the table."""
    rng, folder = random.Random(seed), Path(tempfile.mkdtemp(prefix="linmdp-faults-"))
    try:
        spec, calm = folder / "sweep.toml", folder / "calm"
        spec.write_text(spec_of(runs))
        quarter, most = memory_growth(spec, calm, runs)
        expected = contents(calm / "runs.sqlite")
        grown = f"{(most - quarter) / 2**20:.1f} MiB from a quarter of {len(expected)} runs to the end"
        yield Row("memory of a sweep's coordinator is flat", len(expected), int(most - quarter > 32 * 2**20), grown)

        out = folder / "killed"
        of_workers, of_coordinators, orphans = killed(spec, out, kills, rng)
        how = f"{of_workers} workers and {of_coordinators} coordinators"
        yield Row("a killed sweep ends equal to an undisturbed one", kills, _differ(out, expected), how)
        yield Row("no worker outlives its coordinator", of_coordinators, orphans, "5 seconds")

        out = folder / "full"
        how, status, said = full_disk(spec, out, folder, runs)
        broken = int(not one_line(status, said)) + (_finished(spec, out) or _differ(out, expected))
        yield Row("a full disk is one line, and nothing is lost", 1, broken, how)

        yield Row(
            "a read-only folder is one line", 1, int(not _read_only(spec, folder / "readonly")), "bind mount or mode"
        )

        out = folder / "backwards"
        status = subprocess.run(command(spec, out, BACKWARDS), capture_output=True).returncode
        yield Row(
            "a clock that goes backwards changes nothing", 1, int(status != 0) or _differ(out, expected), "time.time"
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _finished(spec: Path, out: Path) -> int:
    return int(subprocess.run(command(spec, out), capture_output=True).returncode != 0)


def _differ(out: Path, expected: list[tuple[Any, ...]]) -> int:
    """Runs that are missing, twice, or not the same."""
    there = contents(out / "runs.sqlite")
    return len(set(there) ^ set(expected)) + len(there) - len(set(there))


def _read_only(spec: Path, out: Path) -> bool:
    """Whether a folder that cannot be written is refused in one line; root may write anywhere but on such a mount."""
    out.mkdir()
    bind = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    line = ["unshare", "-Urm", "bash", "-c", bind, str(out), *command(spec, out)]
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode != 0:
        out.chmod(0o500)
        line = command(spec, out)
    done = subprocess.run(line, capture_output=True, text=True)
    return one_line(done.returncode, done.stderr) and not any(out.iterdir())


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for row in rows(count, kills=max(4, count * 60 // 2000)):
        print(f"{row.promise}: {row.trials} trials, {row.failures} failures ({row.how})", flush=True)
