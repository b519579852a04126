"""`linmdp benchmark`: a suite that stays as it is, scores from 0 to 1, and no agent that can break it."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import anchors

import linmdp
import linmdp.experiments.benchmark as experiment
from command import linmdp as command
from linmdp.experiments import study
from linmdp.experiments.suite import SCALES, Anchor, Suite, SuiteTask, known_anchors, suite
from linmdp.results.store import Store
from linmdp.runner.registry import AGENTS, make_env
from linmdp.runner.start import made_to_stay

TINY = (
    ("lock", "exploration", "lock:H=3,A=2", 20, None),
    ("flip", "drifting", "drift:base=riverswim,S=4,H=6,every=5", 20, None),
    ("small", "memory", "lock:H=4,A=2", 10, 2**19),
    ("pole", "continuous", "gym:CartPole-v1,H=20", 3, None),
)


class Careless(linmdp.RandomAgent):
    """It fails in the episodes of one task, and holds too much memory everywhere."""

    name = "careless"

    def __init__(self, task: linmdp.Task, *, max_bytes: int | None = None) -> None:
        super().__init__(task)
        self.hoard = np.zeros(100_000)

    @property
    def nbytes(self) -> int:
        return self.hoard.nbytes

    def begin_episode(self) -> None:
        super().begin_episode()
        if self.task.S is None:
            raise RuntimeError("no idea what a pole is")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    tasks = []
    for name, kind, env, episodes, most in TINY:
        known = anchors.anchors({"env": env, "episodes": dict.fromkeys(SCALES, episodes)}) if name != "pole" else {}
        anchor = Anchor(*known.get("quick", (10.0, 20.0)))
        tasks.append(SuiteTask(name, name, "all", kind, env, episodes, anchor, most))
    small = Suite("0", "none", "quick", tuple(tasks), range(5, 7), "whole", "given", 2**30)
    monkeypatch.setattr(experiment, "suite", lambda version, scale: small)
    with AGENTS.temporarily("careless", Careless):
        yield small


def benchmark(folder: Path, *agents: str, scale: str = "quick") -> linmdp.Benchmark:
    with closing(Store(folder)) as store:
        found = experiment.run_benchmark(agents, store, scale=scale, processes=1)
    assert found is not None
    return found


def test_a_suite_once_released_does_not_change() -> None:
    """Suite 1 is released with version 0.2.0. From then on a change is a new suite, with a file of its own.

    The fingerprint was 581576944bbeebf7 before masks were obeyed by default: to stay as it was, Taxi now says that its
    mask is not.
    """
    assert suite("1", "quick").fingerprint == "2bf9d7b5f8213589"


@pytest.mark.parametrize("scale", SCALES)
def test_every_task_of_the_suite_can_be_run_and_scored(scale: str) -> None:
    whole = suite("1", scale)
    for task in whole.tasks:
        limit = f":max_bytes={task.max_bytes}" if task.max_bytes else ""
        assert task.spec("lsvi-ucb") == "lsvi-ucb" + limit
        assert made_to_stay(task.spec("lsvi-ucb"), make_env(task.env), task.episodes, whole.max_bytes)
        assert task.anchor.random < task.anchor.best
    assert len(whole.tasks) == 12


def test_the_shipped_values_are_those_of_their_command() -> None:
    known = known_anchors("1")
    for task in study("benchmark-1")["tasks"]:
        if task["name"] in ("lock", "flip", "inventory"):
            found = anchors.anchors(task)
            assert {scale: found[scale] for scale in SCALES} == {scale: known[task["name"]][scale] for scale in SCALES}
    cliff: Any = make_env("gym:CliffWalking-v1")
    assert anchors.tabled(cliff.env.unwrapped, 100)[1] == -13
    car: Any = make_env("gym:MountainCar-v0")
    assert -200 < anchors.shortest(car.env.unwrapped, 0, (0.008, 0.0012), 200) < -80


def test_random_has_0_and_the_optimal_policy_1(tmp_path: Path, tiny: Suite) -> None:
    found = benchmark(tmp_path, "random", "optimal")
    for s in found.of("random")[:3]:
        assert s.whole == pytest.approx([0, 0], abs=1e-6)
    for s in found.of("optimal")[:3]:
        assert s.whole == pytest.approx([1, 1], abs=1e-6)
    assert found.of("optimal")[3].reason.startswith("The optimal policy is known only where the model is")


def test_what_cannot_run_has_0_with_its_reason_and_the_others_their_scores(tmp_path: Path, tiny: Suite) -> None:
    found = benchmark(tmp_path, "careless", "psrl", "lsvi-ucb")
    lock, flip, small, pole = found.of("careless")
    assert not lock.reason
    assert not flip.reason
    assert small.reason == "it held 781 KiB, and 512 KiB are allowed"
    assert "no idea what a pole is" in pole.reason
    assert not found.of("psrl")[3].whole.any()
    assert "finite" in found.of("psrl")[3].reason
    assert all(s.whole.mean() > 0.2 for s in found.of("lsvi-ucb")[:3])
    assert found.mean("lsvi-ucb").mean == pytest.approx(np.mean([s.whole for s in found.of("lsvi-ucb")]))
    assert all("\n" not in words for words in found.reasons())
    for words in (*found.agents, "all tasks", "careless has 0 on pole"):
        assert words in str(found)


def test_what_would_not_fit_is_refused_before_any_of_its_arrays_is_made(
    tmp_path: Path, tiny: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    taxi = SuiteTask("taxi", "taxi", "all", "large", "gym:Taxi-v3", 2, Anchor(-771.0, 8.0))
    monkeypatch.setattr(experiment, "suite", lambda *_: tiny._replace(tasks=(tiny.tasks[0], taxi)))
    tracemalloc.start()
    try:
        found = benchmark(tmp_path, "lsvi-ucb-rare-switch")
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()
    assert found.scores[1].reason == "it needs about 26.9 GiB, and 1 GiB are allowed"


def test_the_same_command_again_runs_nothing_twice(
    tmp_path: Path, tiny: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("benchmark", "lsvi-ucb", "random", "--out", str(tmp_path), "--jobs", "1", "--json")
    first = command(*arguments)
    assert "16 runs, 16 to do" in first.err
    monkeypatch.setattr("linmdp.runner.sweep.run_counted", lambda *_: pytest.fail("it has run already"))
    assert command(*arguments).out == first.out
    ours, random = map(json.loads, first.out.splitlines())
    assert (ours["agent"], ours["suite"], ours["scale"]) == ("lsvi-ucb", "0", "quick")
    assert pytest.approx(random["tasks"][0]["score"], abs=1e-6) == 0
    assert set(ours["tasks"][0]) >= {"task", "score", "low", "high", "scores", "value", "random", "best", "reason"}
    for name in ("benchmark.md", "benchmark.png", "benchmark.svg"):
        assert (tmp_path / name).stat().st_size > 300


def test_python_has_it_with_classes_and_many_agents(tiny: Suite) -> None:
    found = linmdp.benchmark(["random", (linmdp.ConstantAgent, {"action": 1}), "psrl", "q-learning", "ucbvi"], jobs=1)
    assert found.agents[1] == "constant:action=1"
    assert len(found.rows()) == 20
    assert found.table("all").splitlines()[0].startswith("| agent ")
    assert str(found.title) in found._repr_html_()
    (axes,) = found.plot().axes
    assert len(axes.lines) == 5
