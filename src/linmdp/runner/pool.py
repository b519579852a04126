"""Where pieces of work run: in this process, in others on this machine, or on a dask cluster.

A pool gives back what came of each piece as soon as it is there, in any order, so that it can be stored at once.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from linmdp.errors import ClusterError, LinMDPError, LinMDPWarning, WorkFailed, described, needed
from linmdp.results.store import machine
from linmdp.runner.progress import Advance, FileMeter, watched

Function = Callable[[Any, Advance], Any]
"""Does one piece of work, and calls its second argument on the way; found by its name in other processes."""

DEATHS = 3
"""How many times workers may die, with nothing finished in between, before the work is taken for the cause."""

WORKER_CHECK = 0.2
"""Seconds between two looks at whether a worker has come."""

PARENT_CHECK = 0.5
"""Seconds between a worker's looks at whether the process that started it is still there."""


class Done(NamedTuple):
    """One finished piece: its place in the list, what came of it, and the machine it ran on (None: this one)."""

    place: int
    value: Any
    machine: dict[str, Any] | None = None


Results: TypeAlias = Generator[Done, None, None]
"""Pieces in the order in which they finish; closing it stops the rest."""


class Pool(Protocol):
    """A way to run pieces of work, on a number of processes of this machine."""

    @property
    def processes(self) -> int: ...

    def run(self, function: Function, pieces: Sequence[Any], advance: Advance) -> Results:
        """`function` of every piece, in the order in which they finish."""
        ...


class PieceFailed(WorkFailed):
    """A piece of work failed where it ran; `place` is where it stands in the list."""

    def __init__(self, place: int, words: str) -> None:
        super().__init__(words)
        self.place = place


class InProcess:
    """One piece after the other, here."""

    processes = 1

    def run(self, function: Function, pieces: Sequence[Any], advance: Advance) -> Results:
        for place, piece in enumerate(pieces):
            yield Done(place, function(piece, advance))


class Processes:
    """Several processes of this machine (joblib's loky)."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def run(self, function: Function, pieces: Sequence[Any], advance: Advance) -> Results:
        import joblib
        from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        left, rounds, deaths = set(range(len(pieces))), 0, 0
        # What a run holds fits the cache of one core: two processes with one BLAS thread each beat one with two.
        with watched(advance) as folder, joblib.parallel_config("loky", inner_max_num_threads=1, **_follow(folder)):
            while left:
                parallel, rounds = joblib.Parallel(n_jobs=self.processes, return_as="generator_unordered"), rounds + 1
                tasks = (
                    joblib.delayed(_numbered)(function, i, pieces[i], FileMeter(folder / f"{rounds}-{i}"))
                    for i in sorted(left)
                )
                try:
                    for place, value in parallel(tasks):
                        left.remove(place)
                        deaths = 0
                        yield Done(place, value)
                except (BrokenProcessPool, ShutdownExecutorError, KeyError, OSError) as error:
                    if error.__cause__ is not None and not isinstance(error, BrokenProcessPool):
                        raise  # of the work itself: loky says where it comes from
                    if isinstance(error, OSError):
                        words = f"{self.processes} processes cannot be started: {described(error)}"
                        raise WorkFailed(f"{words}. Try fewer --jobs, or allow more with 'ulimit'.") from None
                    deaths += 1  # joblib gives up all that were running or waiting; a KeyError is its own, in doing so
                    if deaths > DEATHS:
                        words = f"{deaths} processes were killed at work, perhaps for want of memory: try fewer --jobs"
                        raise PieceFailed(min(left), words) from None


def _numbered(function: Function, place: int, piece: Any, advance: Advance) -> tuple[int, Any]:
    return place, function(piece, advance)


def _follow(folder: Path) -> dict[str, Any]:
    return {"initializer": follow_parent, "initargs": (os.getpid(), folder)}


def follow_parent(parent: int, folder: Path) -> None:
    """In a worker: end when the process that started it is gone, since nobody waits for its results any more.

    The folder of the meters goes with it: it was the parent's to take away.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Dask:
    """The workers of a dask scheduler, each with one thread.

    dask sends functions and results by pickle, between machines that trust each other; nothing of that is kept. A
    worker that dies costs what it was running: dask gives that to another one, and here it is given to dask again when
    dask has given up.
    """

    processes = 0

    def __init__(self, address: str, *, timeout: float = 10.0, patience: float = 300.0) -> None:
        self.address, self.timeout, self.patience = address, timeout, patience
        self._dask = _distributed()
        try:  # a client that was given a bad address would not only say so, but also fail to close
            self._dask.comm.get_address_host_port(address)
        except ValueError as error:
            raise ClusterError(f"'{address}' is no address of a dask scheduler: {error}.") from None

    def run(self, function: Function, pieces: Sequence[Any], advance: Advance) -> Results:
        with _quiet(), self._client() as client:
            self._wait_for_a_worker(client)
            self._check_that_workers_have_linmdp(client)
            do = partial(done_on_a_worker, function, needed=versions())
            futures = client.map(do, pieces, pure=False)
            places, deaths = {f.key: i for i, f in enumerate(futures)}, [0] * len(pieces)
            finished = self._dask.as_completed(futures, loop=client.loop, with_results=True, raise_errors=False)
            del futures  # a result that nobody refers to is dropped from its worker's memory
            for future, found in finished:
                i = places.pop(future.key)
                if isinstance(found, Outcome):
                    advance(found.steps)
                    yield Done(i, found.value, found.machine)
                    continue
                deaths[i] += 1
                self._raise_unless_killed(i, found, deaths[i])
                again = client.submit(do, pieces[i], pure=False)
                places[again.key] = i
                finished.add(again)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions: those that matter are checked here
                client = self._dask.Client(self.address, timeout=self.timeout, set_as_default=False)
        except (OSError, ImportError) as error:
            words = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
            raise ClusterError(f"There is no dask scheduler at '{self.address}': {words}.") from None
        try:
            there = client.get_versions()["scheduler"]["packages"]["distributed"]
            check_versions(f"The dask scheduler at {self.address}", versions(), {"distributed": there})
            yield client
        finally:
            client.close(timeout=self.timeout)

    def _wait_for_a_worker(self, client: Any) -> None:
        def there() -> bool:
            return bool(client.scheduler_info(n_workers=-1)["workers"])

        if there():
            return
        how = f"start one with 'dask worker {self.address} --nthreads 1'"
        warnings.warn(f"the scheduler at {self.address} has no worker yet: waiting for one; {how}", LinMDPWarning)
        deadline = time.monotonic() + self.patience
        while not there():
            if time.monotonic() > deadline:
                waited = f"{self.patience:g} seconds"
                raise ClusterError(f"No worker came to the scheduler at {self.address} within {waited}: {how}.")
            time.sleep(WORKER_CHECK)

    def _check_that_workers_have_linmdp(self, client: Any) -> None:
        """A worker that cannot load a task dies of it, and says so only in its own log."""

        def found() -> bool:  # a function within a function travels by value
            try:
                import linmdp  # noqa: F401
            except ModuleNotFoundError:
                return False
            return True

        for address, there in client.run(found, on_error="ignore").items():
            if not there:
                raise ClusterError(f"The worker {address} must have linmdp installed. It has not.")

    def _raise_unless_killed(self, place: int, found: Any, deaths: int) -> None:
        error = found[1] if isinstance(found, tuple) else found  # dask's form of a failure: type, error, traceback
        if isinstance(error, LinMDPError):
            raise error
        if isinstance(error, CancelledError):
            words = f"The scheduler at {self.address} is gone; what is finished is kept, and the same command goes on."
            raise ClusterError(words) from None
        if not isinstance(error, self._dask.KilledWorker):
            raise PieceFailed(place, f"{type(error).__name__}: {error}".partition("\n")[0]) from error
        if deaths > DEATHS:
            dead = deaths * (error.allowed_failures + 1)
            raise PieceFailed(place, f"{dead} workers died while they had it, perhaps for want of memory") from None


class Outcome(NamedTuple):
    """What a worker sends back: what came of a piece, the steps that it counted, and where it ran."""

    value: Any
    steps: int
    machine: dict[str, Any]


def done_on_a_worker(function: Function, piece: Any, *, needed: dict[str, str]) -> Outcome:
    """`function` of a piece, on a worker, which must have the versions that are needed."""
    from threadpoolctl import threadpool_limits

    worker = _distributed().get_worker()
    check_versions(f"The worker {worker.address}", needed, versions())
    if worker.state.nthreads != 1:  # times are those of a process, and BLAS threads are set for all of it
        raise ClusterError(
            f"Each dask worker must have one thread (--nthreads 1). Got {worker.state.nthreads} at {worker.address}."
        )
    threadpool_limits(1, user_api="blas")  # for good: the last bits of a product depend on it
    steps = 0

    def count(more: int = 1, note: object = None) -> None:
        nonlocal steps
        steps += more

    value = function(piece, count)
    return Outcome(value, steps, machine())


def versions() -> dict[str, str]:
    """What must be the same on all machines for results to be the same, bit for bit."""
    import numpy as np

    from linmdp import __version__

    python = ".".join(platform.python_version_tuple()[:2])
    return {"linmdp": __version__, "numpy": np.__version__, "python": python, "distributed": _distributed().__version__}


def check_versions(who: str, needed: dict[str, str], found: dict[str, str]) -> None:
    """Raise if `who` was found to have another version than the one needed."""
    for name in found:
        if found[name] != needed[name]:
            raise ClusterError(f"{who} must have {name} {needed[name]}, as here. Got {found[name]}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without dask's log, which tells of a lost worker or scheduler in twenty lines: what matters is raised."""
    before = {handler: handler.level for handler in logging.getLogger("distributed").handlers}
    try:
        for handler in before:
            handler.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for handler, level in before.items():
            handler.setLevel(level)


def _distributed() -> Any:
    words = "A dask cluster needs dask.distributed: pip install 'linmdp[dask]'."
    return needed("distributed", words, ClusterError)
