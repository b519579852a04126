"""Is there room for a sweep? Memory and disk, estimated before anything runs."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linmdp.errors import InvalidParameter, LinMDPWarning, OutputError
from linmdp.results.store import row_bytes
from linmdp.runner.batch import Job
from linmdp.runner.registry import make_agent, make_env

GIB = 2**30


def check_memory(work: Sequence[Sequence[Job]], processes: int) -> None:
    """Raise if the largest units, as many as there are processes, would not fit into memory side by side."""
    available = available_memory()
    if available is None or not processes:
        return
    largest = sorted(zip(unit_bytes(work), work, strict=True), reverse=True)[:processes]
    needed = sum(size for size, _ in largest)
    if needed > available:
        job, at_once = largest[0][1][0], f"{len(largest)} processes" if len(largest) > 1 else "one process"
        raise InvalidParameter(
            f"The sweep needs about {needed / GIB:.3g} GiB of memory in {at_once}, and {available / GIB:.3g} GiB are "
            f"available. The largest run is {job.agent} in {job.env} with {job.episodes} episodes: "
            f"use fewer --jobs, fewer episodes, or an agent that holds less."
        )


def check_disk(jobs: Sequence[Job], folder: Path) -> None:
    """Raise if what these runs will store is more than the disk of `folder` has left."""
    needed, free = sum(row_bytes(job.episodes) for job in jobs), free_disk(folder)
    if needed > free:
        raise OutputError(
            f"The sweep needs about {needed / GIB:.3g} GiB of disk space for {len(jobs)} runs, "
            f"and '{folder}' has {free / GIB:.3g} GiB left."
        )


def unit_bytes(work: Sequence[Sequence[Job]]) -> list[int]:
    """Peak bytes of each unit: runs in lockstep share the model, and each has its agent and its two curves twice."""
    found: list[int] = []
    sizes: dict[tuple[str, str, int], tuple[int, int]] = {}
    name, env = "", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinMDPWarning)  # the plan has warned
        for job, runs in ((unit[0], len(unit)) for unit in work):
            if name != job.env:
                name, env = job.env, make_env(job.env)
            setting = (job.env, job.agent, job.episodes)
            if setting not in sizes:
                sizes[setting] = make_agent(job.agent, env, job.episodes).bytes_after(job.episodes), _model_bytes(env)
            agent, model = sizes[setting]
            found.append(runs * (agent + 2 * 2 * 8 * job.episodes) + model)
    return found


def _model_bytes(env: Any) -> int:
    """What describes an environment; a step that is seen many times through a view counts once."""
    model = getattr(env, "model", None)
    arrays = () if model is None else (model.theta, model.mu, model.mu_cdf)
    return int(env.task.features.nbytes + sum(a.nbytes if a.strides[0] else a[0].nbytes for a in arrays))


def available_memory() -> int | None:
    """Bytes that programs may still take, or None where the system does not say."""
    found = [_meminfo(), _container_limit()]
    known = [value for value in found if value is not None]
    return min(known, default=None)


def free_disk(folder: Path) -> int:
    """Bytes left on the disk of a folder."""
    return shutil.disk_usage(folder).free


def _meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container_limit() -> int | None:
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return None
