"""Fuzzing of everything that reads a file: models, datasets, agents, checkpoints, stores and sweep files.

    python benchmarks/fuzz.py [CASES]                 default: 100,000
    python benchmarks/fuzz.py CASES --corpus FOLDER   and keep a small input for each kind of refusal
    python benchmarks/fuzz.py CASES --atheris         inputs from atheris (libFuzzer; the extra 'fuzz')

A case is a valid file with a few mutations: of its bytes, of its header, or of what it says (with a new checksum, so
that the checks behind it are reached). A reader may return, or refuse with a `LinMDPError` of one line. Anything else
is a failure: another exception, a crash of the process, more than 10 seconds, or more than 64 MiB of new memory, which
the operating system enforces (RLIMIT_AS).
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that are started later would need memory of their own

import numpy as np
from fuzz_readers import Reader, readers

from linmdp.errors import LinMDPError
from linmdp.io.tensorfile import packed, read_tensors

LIMIT = 64 << 20
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # files there cost no waiting for a disk
SECONDS = 10
BATCH = 5_000
NASTY = (0, -1, 1, 2**31, 2**63, -(2**63), 10**12, 10**30, 1e308, float("nan"), float("inf"), None, True, "", "x", [])
WORDS = (
    "9^9^9^9*K",
    "../../etc/passwd",
    "os:system",
    "\x00",
    "\udcff",
    "a\nb",
    "[" * 5000,
    "1" * 5000,
    "é" * 40,
    "nan",
)


def mutated(kind: str, data: bytes, rng: random.Random, folder: Path) -> bytes:
    """A valid file with a few mutations."""
    tensors = kind in ("model", "dataset", "agent", "checkpoint")
    choice = rng.random()
    if tensors and choice < 0.4:
        return _resigned(data, rng, folder)
    if tensors and choice < 0.6:
        return _header(data, rng)
    if kind == "store" and choice < 0.5:
        return _sql(data, rng, folder)
    if kind == "sweep" and choice < 0.7:
        return _tokens(data, rng)
    return _bytes(data, rng)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, pieces cut out, doubled or overwritten, the end cut off."""
    new = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not new:
            break
        at, n = rng.randrange(len(new)), rng.choice((1, 4, 8, 64))
        how = rng.randrange(6)
        if how == 0:
            new[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del new[at : at + n]
        elif how == 2:
            new[at:at] = new[at : at + n]
        elif how == 3:
            new[at : at + n] = rng.randbytes(n)
        elif how == 4:
            new[at : at + 8] = struct.pack("<q", rng.choice((0, -1, 2**62, len(new), 2**31)))
        elif rng.random() < 0.5:
            del new[at:]
    return bytes(new)


def _header(data: bytes, rng: random.Random) -> bytes:
    """The header of a safetensors file with other names, types, shapes, places or words."""
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    for _ in range(rng.choice((1, 1, 3))):
        name = rng.choice(list(header))
        entry = header[name]
        if name == "__metadata__":
            entry["linmdp"] = _tokens(entry.get("linmdp", "{}").encode(), rng).decode("utf-8", "replace")
        elif isinstance(entry, dict):
            key = rng.choice(list(entry))
            new = [_odd(rng) for _ in range(rng.randrange(4))]
            types = ("F64", "BF16", "F8_E4M3", "BOOL", "I64", "U16", "x")
            entry[key] = rng.choice((new, rng.choice(types), [0, 10**12], [2**40, 0]))
    body = json.dumps(header).encode()
    return struct.pack("<Q", len(body)) + body + data[8 + n :]


def _odd(rng: random.Random) -> Any:
    return rng.choice((*NASTY, *WORDS))


def _resigned(data: bytes, rng: random.Random, folder: Path) -> bytes:
    """Other arrays and other words under a checksum that is right."""
    path = folder / "resigned"
    path.write_bytes(data)
    kind = json.loads(_words_of(data))["kind"]
    file = read_tensors(path, kind)
    meta, arrays = json.loads(json.dumps({k: v for k, v in file.meta.items() if k != "sha256"})), dict(file.arrays)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.5:
            _change_words(meta, rng)
        elif arrays:
            _change_array(arrays, rng)
    try:
        return packed(kind, meta, arrays)
    except (ValueError, TypeError, OverflowError):
        return data


def _words_of(data: bytes) -> str:
    (n,) = struct.unpack("<Q", data[:8])
    return str(json.loads(data[8 : 8 + n])["__metadata__"]["linmdp"])


def _change_words(meta: Any, rng: random.Random) -> None:
    """One value somewhere in the words."""
    while True:
        keys = list(meta) if isinstance(meta, dict) else list(range(len(meta)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(meta[key], dict | list) and meta[key] and rng.random() < 0.8:
            meta = meta[key]
            continue
        if rng.random() < 0.2:
            del meta[key]
        else:
            meta[key] = rng.choice((_odd(rng), rng.choice((4, 7, 100, 10**7))))
        return


def _change_array(arrays: dict[str, np.ndarray], rng: random.Random) -> None:
    name = rng.choice(list(arrays))
    array, how = arrays[name], rng.randrange(7)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[name] = array[: len(array) // 2] if array.ndim else np.zeros(3)
    elif how == 2:
        arrays[name] = array.astype(rng.choice(("float32", "int64", "bool", "uint8", "float64")))
    elif how == 3:
        arrays[name] = np.zeros((*array.shape[:1], 0, 10**9), dtype=array.dtype)  # nothing there, and a huge shape
    elif how == 4 and array.size and array.dtype.kind in "fiu":
        new = array.copy()
        extreme = np.array(rng.choice((-1, 2**31 - 1, 255, 10**9))).astype(array.dtype)
        new.flat[rng.randrange(new.size)] = extreme if array.dtype.kind != "f" else rng.choice((np.nan, np.inf, 1e300))
        arrays[name] = new
    elif how == 5:
        arrays[rng.choice(("../x", "a/b", "agent.", "x" * 300))] = array
    else:
        arrays[name] = np.frombuffer(_bytes(array.tobytes(), rng), dtype=np.uint8)


def _sql(data: bytes, rng: random.Random, folder: Path) -> bytes:
    """A store with other contents, or with other things in it than tables."""
    path = folder / "sql.sqlite"
    for old in folder.glob("sql.sqlite*"):
        old.unlink()
    path.write_bytes(data)
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
        row = db.execute("SELECT record, machine FROM runs LIMIT 1").fetchone()
        column = rng.choice(("record", "machine", "at", "regret", "rewards", "finished", "key"))
        value: Any = _tokens(row[0 if column == "record" else 1].encode(), rng).decode("utf-8", "replace")
        if column in ("at", "regret", "rewards"):
            value = rng.choice((b"", b"\xff" * 16, rng.randbytes(rng.randrange(40)), b"\0" * 100_000))
        elif column == "finished":
            value = rng.choice((-1e300, 0.0, 1e300))
        change = rng.randrange(4)
        if change == 0:
            db.execute("UPDATE meta SET value = ?", (rng.choice(("2", "", "[", '[1, {"a": []}]', "x" * 9)),))
        elif change == 1:
            db.execute(rng.choice(("CREATE VIEW v AS SELECT * FROM runs", "DROP TABLE meta", TRIGGER)))
        else:
            db.execute(f"UPDATE runs SET {column} = ? WHERE rowid = 1", (value,))
        db.commit()
    except sqlite3.Error:
        pass
    finally:
        db.close()
    return path.read_bytes()


TRIGGER = "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"


def _tokens(data: bytes, rng: random.Random) -> bytes:
    """A text with other numbers, words or brackets."""
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(re.finditer(r"-?\d+(\.\d+)?|\"[^\"]*\"|[\[\]{}=,]", text))
        if not places:
            break
        at = rng.choice(places)
        odd = _odd(rng)
        new = rng.choice((json.dumps(odd), str(odd), "", at[0] * 3))
        text = text[: at.start()] + new + text[at.end() :]
    return text.encode("utf-8", "surrogatepass")


class Outcome(NamedTuple):
    """What a reader made of a case: whether that is allowed, and in which words it refused."""

    ok: bool
    words: str


def tried(reader: Reader, data: bytes, folder: Path) -> Outcome:
    """Give the bytes to the reader, under a limit of time."""
    for old in folder.iterdir():
        old.unlink()
    path = folder / reader.file
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        reader.read(path)
        return Outcome(True, "")
    except LinMDPError as error:
        words = str(error)
        lines = words.splitlines() if reader.file != "s.toml" else [words]  # several errors of a sweep: a line each
        return Outcome(
            len(lines) == 1 and len(words) < 4_000, words.replace(str(path), "FILE").replace(str(folder), "DIR")
        )
    except BaseException as error:
        return Outcome(False, f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Hang(BaseException):
    """A reader took too long."""


def _too_long(*_: object) -> None:
    raise Hang(f"{SECONDS} seconds")


def child(seed: int, count: int, report: Path, corpus: Path | None) -> None:
    """Cases of one process; what went wrong is written down, and the last case stays if the process dies of it."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    work = Path(tempfile.mkdtemp(prefix="linmdp-fuzz-", dir=MEMORY))
    made, used, spare = work / "made", work / "used", work / "spare"
    for folder in (made, used, spare):
        folder.mkdir()
    try:
        kinds, rng, seen = readers(made), random.Random(seed), set[tuple[str, str]]()
        for kind, reader in kinds.items():  # every module is loaded, and every valid file is read, before the limit
            for data in reader.seeds:
                outcome = tried(reader, data, used)
                assert outcome.ok, (kind, outcome)
        limit = _address_space() + LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for case in range(count):
            kind = rng.choice(list(kinds))
            data = mutated(kind, rng.choice(kinds[kind].seeds), rng, spare)
            report.with_suffix(".last").write_bytes(kind.encode() + b"\n" + data)
            outcome = tried(kinds[kind], data, used)
            if not outcome.ok:
                report.with_suffix(f".{case}.bad").write_bytes(kind.encode() + b"\n" + data)
                with report.open("a") as file:
                    file.write(f"{kind}: {outcome.words!r:.300}\n")
            elif corpus is not None and outcome.words and len(data) <= 6_000:
                template = re.sub(r"[\d.]+|'[^']*'|\"[^\"]*\"", "#", outcome.words)[:60]
                if (kind, template) not in seen:
                    seen.add((kind, template))
                    (corpus / f"{kind}-{len(seen):02d}").write_bytes(data)
        report.with_suffix(".last").unlink(missing_ok=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _address_space() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmSize:"))


def fuzz(cases: int, seed: int = 0, corpus: Path | None = None) -> list[str]:
    """Run that many cases in processes of their own; a line for each failure."""
    found, folder = list[str](), Path(tempfile.mkdtemp(prefix="linmdp-fuzzing-"))
    try:
        for batch, start in enumerate(range(0, cases, BATCH)):
            count, report = min(BATCH, cases - start), folder / str(batch)
            line = [sys.executable, __file__, "--child", str(seed + batch), str(count), str(report)]
            done = subprocess.run(
                [*line, *([str(corpus)] if corpus and batch == 0 else [])], capture_output=True, text=True
            )
            found += report.read_text().splitlines() if report.exists() else []
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or [""])[-1]
                found.append(f"process ended with {done.returncode} in batch {batch}: {last}")
        if found:
            kept = Path(tempfile.gettempdir()) / "linmdp-fuzz-failures"
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            print(f"inputs that failed are in {kept}", file=sys.stderr)
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_atheris(cases: int) -> None:
    """The same readers and rules, with inputs that libFuzzer makes from coverage."""
    import atheris

    work = Path(tempfile.mkdtemp(prefix="linmdp-fuzz-", dir=MEMORY))
    (made := work / "made").mkdir()
    (used := work / "used").mkdir()
    signal.signal(signal.SIGALRM, _too_long)
    warnings.simplefilter("ignore")
    atheris.instrument_all()
    kinds = list(readers(made).values())

    def one(data: bytes) -> None:
        if data:
            outcome = tried(kinds[data[0] % len(kinds)], data[1:], used)
            if not outcome.ok:
                raise AssertionError(outcome.words)

    (seeds := work / "seeds").mkdir()
    for i, reader in enumerate(kinds):
        for j, data in enumerate(reader.seeds):
            (seeds / f"{i}-{j}").write_bytes(bytes([i]) + data)
    atheris.Setup([sys.argv[0], f"-runs={cases}", "-max_len=20000", "-rss_limit_mb=2048", str(seeds)], one)
    atheris.Fuzz()


def main(arguments: list[str]) -> None:
    """See above."""
    if arguments[:1] == ["--child"]:
        seed, count, report, *rest = arguments[1:]
        child(int(seed), int(count), Path(report), Path(rest[0]) if rest else None)
        return
    cases = int(arguments[0]) if arguments else 100_000
    if "--atheris" in arguments:
        with_atheris(cases)
        return
    corpus = Path(arguments[arguments.index("--corpus") + 1]) if "--corpus" in arguments else None
    found = fuzz(cases, corpus=corpus)
    for words in sorted(set(found))[:50]:
        print(f"{found.count(words):6d}  {words}")
    print(f"{cases} cases, {len(found)} failures")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1:])
