"""CUDA graphs: an episode recorded once and played again, without Python between its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linmdp.runner.lockstep.engine import Lockstep
from linmdp.types import IntArray

FEW, MANY = 16, 4
"""Runs that are planned at once where they are few; more than MANY times as many are planned with all others."""


class Recorder:
    """Planning and playing one episode; on a GPU recorded once as a graph and played again.

    A graph replays the same kernels on the same memory, without Python between them. What changes from episode to
    episode goes in through fixed tensors; resets and fresh inverses happen outside.
    """

    def __init__(self, engine: Lockstep) -> None:
        self.engine = engine
        self._graphs: dict[tuple[str, bool], Any] = {}
        self._fixed: dict[str, Any] = {}

    def plan(self, plan: Any, runs: IntArray, *, whole: bool) -> None:
        """Plan the steps and runs in `plan`, (H, B), those of `runs`: few at a time, or all that there are."""
        engine = self.engine
        if engine.horizon.discounted:  # the host looks on whether weights still move
            engine.planner.plan(plan, whole=whole)
            return
        if engine.planner.storage.kernels is None or len(runs) > MANY * FEW:
            self._run("plan", whole, lambda f: engine.planner.plan(f["plan"], whole=whole, runs=engine.runs), plan=plan)
            return
        name, there = self._listed(runs)
        body = lambda f: engine.planner.plan(f["plan"], whole=whole, runs=f[name])  # noqa: E731
        self._run(f"plan {name}", whole, body, plan=plan, **{name: there})

    def play(self, draws: Any, start: Any, store: Any, *, whole: bool, look: bool) -> None:
        """Play one episode of all runs."""

        def body(f: dict[str, Any]) -> None:
            self.engine.play(f["draws"], f["start"], f["store"], whole=whole, look=look)

        self._run("look" if look else "play", whole, body, draws=draws, start=start, store=store)

    def evaluate(self, runs: IntArray | None = None) -> Any:
        """V^pi of the policies of all runs, or of some, (B, S); it stays so until the next evaluation."""
        if runs is None or len(runs) > MANY * FEW:
            self._run("evaluate", True, lambda _: self.engine.evaluate())
        else:
            name, there = self._listed(runs)
            self._run(f"evaluate {name}", True, lambda f: self.engine.evaluate(f[name]), **{name: there})
        return self.engine.V

    def _listed(self, runs: IntArray) -> tuple[str, Any]:
        """Few runs as a list of one of two lengths, filled up with -1, and its name."""
        some = np.full(FEW if len(runs) <= FEW else MANY * FEW, -1)
        some[: len(runs)] = runs
        return f"{len(some)} runs", self.engine.backend.array(some, "int64")

    def _run(self, name: str, whole: bool, body: Callable[[dict[str, Any]], None], **inputs: Any) -> None:
        if self.engine.backend.device != "cuda":
            body(inputs)
            return
        torch, key = self.engine.backend.xp, (name, whole)
        for what, value in inputs.items():
            if what in self._fixed:
                self._fixed[what].copy_(value)
            else:
                self._fixed[what] = value.clone()
        if key not in self._graphs:
            # the first time it just runs (and compiles); the second time it is recorded, which runs nothing
            self._graphs[key] = None
            body(self._fixed)
            return
        if self._graphs[key] is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                body(self._fixed)
            self._graphs[key] = graph
        self._graphs[key].replay()
