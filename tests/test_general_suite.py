"""`linmdp benchmark general`: scores that mean something, what must not matter, variants, shards, and one command."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import general_anchors
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import linmdp
import linmdp.experiments.benchmark as runs
from command import linmdp as command
from linmdp.envs.general import NAMES, instance
from linmdp.envs.general import general as general_env
from linmdp.envs.general.base import Instance
from linmdp.envs.general.perturb import PERTURBATIONS, DoesNotApply, original, perturbed
from linmdp.experiments.suite import GENERAL, Anchor, Suite, SuiteTask, known_anchors, suite
from linmdp.report.benchmark import Benchmark
from linmdp.results.store import Store
from linmdp.runner.registry import AGENTS

ANCHOR = Anchor(random=-10.0, best=30.0, constant=10.0, action=0, shortest=5)


class Clerk(Instance):
    """A toy with observations of any space: action 1 pays 1, action 0 pays -1; action 2 goes home early."""

    def __init__(self, space: spaces.Space[Any], *, early: bool = False, ends: bool = False) -> None:
        super().__init__(H=5, A=3, space=space, ends=ends)
        self.early = early

    def begin(self) -> None:
        self.observation_space.seed(int(self.np_random.integers(1 << 30)))

    def move(self, action: int) -> tuple[float, bool]:
        return (-1.0, 1.0, 0.0)[action], self.early and action == 2

    def show(self) -> Any:
        return self.observation_space.sample()


SPACES: dict[str, spaces.Space[Any]] = {
    "number": spaces.Discrete(7),
    "numbers": spaces.MultiDiscrete([3, 5]),
    "vector": spaces.Box(np.array([-2.0, 0.0, -1.0], np.float32), np.array([2.0, 100.0, np.inf], np.float32)),
    "bits": spaces.Box(0, 1, (6,), np.int8),
    "board": spaces.Box(0.0, 1.0, (4, 5), np.float64),
    "picture": spaces.Box(0, 255, (16, 16, 3), np.uint8),
}
NOT_FOR = {
    "number": {"scaled", "rotated", "float64", "float32"},
    "numbers": {"scaled", "rotated", "float64", "float32"},
    "vector": {"floats", "onehot", "float32", "integers"},
    "bits": {"scaled", "rotated", "shifted", "onehot", "float64", "float32"},
    "board": {"scaled", "rotated", "shifted", "beside", "floats", "onehot", "float64", "integers"},
    "picture": {"scaled", "rotated", "shifted", "doubled", "beside", "floats", "onehot"}
    | {"float64", "float32", "integers"},
}


@pytest.mark.parametrize("name", PERTURBATIONS)
@pytest.mark.parametrize("kind", SPACES)
def test_a_perturbed_task_is_sound_or_refused_in_a_line(kind: str, name: str) -> None:
    made = Clerk(SPACES[kind], early=True)
    if name in NOT_FOR[kind] | {"truncated"}:
        with pytest.raises(DoesNotApply, match=r"This perturbation is for|ends like that anyway"):
            perturbed(made, name, 3)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|image|wrapped|flattened|reset|different).*")
        check_env(perturbed(made, name, 3), skip_render_check=True)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_returns_come_back_in_the_units_of_the_instance(name: str) -> None:
    """Whatever is done to rewards, and however early an episode ends: 1, 1, home pays 2."""
    if name in NOT_FOR["number"]:
        pytest.skip("not for whole numbers")
    made = perturbed(Clerk(spaces.Discrete(4), early=True, ends=name == "truncated"), name, 0)
    for play in ((1, 1, 2), (1, 0, 1, 0, 1), (2,)):
        made.reset(seed=1)
        paid = [float(made.step(undone(name, a))[1]) for a in play]
        assert original(made, np.array([sum(paid)]))[0] == pytest.approx(sum((-1, 1, 0)[a] for a in play), abs=1e-4)


def undone(name: str, action: int) -> int:
    """What to play so that the toy gets this action."""
    if name == "permuted":
        made: Any = perturbed(Clerk(spaces.Discrete(4)), name, 0)
        return next(a for a in range(3) if made.func(a) == action)
    return action + 3 if name == "twice" else action


def test_an_early_end_is_worth_what_it_was_after_a_shift() -> None:
    """The last reward has the shifts of all steps that are left."""
    made: Any = perturbed(Clerk(spaces.Discrete(4), early=True), "up", 0)
    made.reset(seed=0)
    assert [made.step(1)[1], made.step(2)[1]] == [2.0, 4.0]


def test_what_is_seen_is_the_same_in_other_words() -> None:
    def seen(name: str, space: spaces.Space[Any]) -> tuple[Any, Any]:
        plain, other = Clerk(space), perturbed(Clerk(space), name, 0)
        return plain.reset(seed=4)[0], other.reset(seed=4)[0]

    x, y = seen("onehot", SPACES["numbers"])
    assert y.tolist() == [float(i == x[0]) for i in range(3)] + [float(i == x[1]) for i in range(5)]
    x, y = seen("floats", SPACES["number"])
    assert (y.dtype, y.tolist()) == (np.float32, [x])
    x, y = seen("doubled", SPACES["vector"])
    assert y.tolist() == [*x, *x]
    x, y = seen("beside", SPACES["vector"])
    assert y[:3].tolist() == x.tolist()
    assert len(y) == 5
    x, y = seen("integers", SPACES["bits"])
    assert (y.dtype, y.tolist()) == (np.int64, x.tolist())
    plain, turned = Clerk(SPACES["vector"]), perturbed(Clerk(SPACES["vector"]), "rotated", 0)
    pairs = [(plain.reset(seed=k)[0], turned.reset(seed=k)[0]) for k in range(20)]
    X, Y = (np.array(each, dtype=np.float64) for each in zip(*pairs, strict=True))
    back, residual, *_ = np.linalg.lstsq(Y, X, rcond=None)
    assert back.shape == (3, 3)
    assert (residual < 1e-6).all()


def test_ends_are_reported_in_the_other_way_and_only_at_the_last_step() -> None:
    for ends, name in ((False, "terminated"), (True, "truncated")):
        made = perturbed(Clerk(SPACES["number"], early=True, ends=ends), name, 0)
        made.reset(seed=0)
        found = [made.step(1)[2:4] for _ in range(5)]
        assert found[:4] == [(False, False)] * 4
        assert found[4] == (not ends, ends)
        made.reset()
        assert made.step(2)[2:4] == (True, False)


def test_noise_leaves_the_randomness_of_the_instance_alone() -> None:
    plain, noisy = instance("hills", 2), general_env(family="hills", instance=2, perturb="noise")
    for env in (plain, noisy):
        env.reset(seed=3)
    steps = [(plain.step(1), noisy.step(1)) for _ in range(20)]
    assert all(np.array_equal(one[0], two[0]) for one, two in steps)
    gaps = np.array([float(two[1]) - float(one[1]) for one, two in steps])
    assert 0 < np.abs(gaps).max() < 1e-5


TASK = SuiteTask("clerk/0", "clerk", "made", "made", "general:family=poles", 6, ANCHOR, floor=-1.0)


def test_scores_are_0_for_random_and_1_for_the_best_and_no_less_than_minus_1() -> None:
    assert TASK.score(np.array([-10.0, 30.0, 10.0, -500.0, 50.0])).tolist() == [0, 1, 0.5, -1, 1.5]


@dataclass
class Played:
    """What `returns_of` looks at."""

    agent: str
    rewards: np.ndarray
    episodes: int
    costs: list[list[float]]
    interactions: int
    regret: None = None


def test_steps_before_the_first_episode_count_as_random_play_and_the_last_episodes_fall_out() -> None:
    task = TASK._replace(factor=2.0, shift=5.0)
    run: Any = Played("lsvi-ucb", np.array([5.0, 7, 9, 11, 13, 15]), 6, [[6, 0, 0.0, 30]], 41)
    before = runs.steps_before(run)
    assert before == 11  # 2.2 episodes
    assert runs.returns_of(run, task, before).tolist() == [-10, -10, 0, 1, 2, 3]
    assert runs.returns_of(run, task, 0).tolist() == [0, 1, 2, 3, 4, 5]
    assert runs.returns_of(run, task, 1000).tolist() == [-10] * 6
    run.agent = "sb3-dqn"  # which makes no use of them
    assert runs.steps_before(run) == 0


def test_anchors_of_the_suite_are_those_of_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = known_anchors(GENERAL)
    monkeypatch.setattr(general_anchors, "anchors_file", lambda version: tmp_path / "anchors.json")
    monkeypatch.setattr(general_anchors, "known_anchors", lambda version: {})
    general_anchors.write_anchors(["chains"])
    assert json.loads((tmp_path / "anchors.json").read_text()) == {"chains": shipped["chains"]}


def test_every_family_has_anchors_and_room_between_them() -> None:
    known = known_anchors(GENERAL)
    assert tuple(known) == NAMES, "run python benchmarks/general_anchors.py FAMILY"
    for name, found in known.items():
        assert len(found) == 3, name
        for one in (Anchor(**anchor) for anchor in found):
            assert one.random < one.best
            assert one.constant <= one.best
            assert one.shortest >= 1


def test_an_instance_whose_best_is_no_better_than_random_play_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(general_anchors, "instance", lambda name, number: Clerk(SPACES["number"]))
    monkeypatch.setattr(general_anchors, "best_return", lambda name, env: -9.0)
    for random in (-3.0, 5.0):
        monkeypatch.setattr(general_anchors, "random_return", lambda env, random=random: random)
        if random < 5:
            assert general_anchors.anchors_of("clerk", 0).best == 5.0  # that of the constant action 1
            continue
        with pytest.raises(linmdp.LinMDPError, match="must have a policy better than random play"):
            general_anchors.anchors_of("clerk", 0)


class Careless(linmdp.RandomAgent):
    """It fails in its first episode where there are three actions and more."""

    name = "careless"

    def begin_episode(self) -> None:
        super().begin_episode()
        if self.task.A > 2:
            raise RuntimeError("too many actions")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """Two instances of two families, with few episodes."""
    whole = suite("general", "quick")
    grids, hills = (next(t for t in whole.tasks if t.family == name) for name in ("grids", "hills"))
    tasks = (grids._replace(episodes=6), hills._replace(episodes=3, half="kept"))
    small = whole._replace(tasks=tasks, fingerprint="none")
    monkeypatch.setattr(runs, "suite", lambda version, scale: small)
    with AGENTS.temporarily("careless", Careless):
        yield small


def benchmark(folder: Path, *agents: str, **options: Any) -> Benchmark:
    folder.mkdir(exist_ok=True)
    with closing(Store(folder)) as store:
        found = runs.run_benchmark(agents, store, version="general", processes=1, **options)
    assert found is not None
    return found


def test_what_fails_has_0_with_its_reason_in_a_line(tmp_path: Path, tiny: Suite) -> None:
    found = benchmark(tmp_path, "careless", "random")
    grids, hills = found.of("careless")
    assert grids.reason == "RuntimeError: too many actions"
    assert not grids.end.any()
    assert hills.reason == "" or hills.reason == grids.reason
    assert found.reasons()[0].startswith("careless has 0 on grids/0")
    assert all("\n" not in words for words in found.reasons())
    assert "made tasks" in str(found)
    assert "kept tasks" in str(found)


def test_perturbations_of_actions_and_rewards_do_not_touch_random_and_constant_play(
    tmp_path: Path, tiny: Suite
) -> None:
    found = benchmark(tmp_path, "constant", perturb=["noise", "times37", "doubled", "float64", "down"])
    plain = {s.family: s for s in found.scores}
    assert {s.perturb for s in found.perturbed} >= {"noise", "times37", "doubled", "float64"}
    for s in found.perturbed:
        assert s.end == pytest.approx(plain[s.family].end, abs=1e-3), s.perturb
        assert s.whole == pytest.approx(plain[s.family].whole, abs=1e-3), s.perturb
    assert "| times37 " in found.costs("constant")


def test_a_warm_up_that_is_counted_takes_the_place_of_episodes(tmp_path: Path, tiny: Suite) -> None:
    """Three episodes of hills are fewer steps than the trial play of features: nothing is left of the run."""
    counted = benchmark(tmp_path, "lsvi-ucb", "constant")
    given = benchmark(tmp_path, "lsvi-ucb", "constant", warm_up="given")
    one, two = (found.of("lsvi-ucb", "kept")[0] for found in (counted, given))
    assert one.before > one.steps
    assert not one.end.any()
    assert not one.whole.any()
    assert two.end.any()
    for found in (counted, given):
        assert found.of("constant", "kept")[0].before == 0
    assert np.array_equal(counted.counted("constant"), given.counted("constant"))


def test_shifts_are_only_where_all_episodes_have_the_same_length(tiny: Suite) -> None:
    task = tiny.tasks[0]
    H = instance(task.family, 0).H
    assert task._replace(anchor=task.anchor._replace(shortest=H - 1)).perturbed("up") is None
    after = task._replace(anchor=task.anchor._replace(shortest=H)).perturbed("up")
    assert after is not None
    assert after.shift > 0
    assert math.isclose(after.factor, 1)
    times: Any = task.perturbed("times37")
    assert times.factor == pytest.approx(37)
    assert times.anchor == task.anchor
    assert times.env == task.env + ",perturb=times37"


def test_variants_are_compared_with_the_first_agent_on_the_same_seeds(tmp_path: Path, tiny: Suite) -> None:
    found = benchmark(tmp_path, "random", "constant", leave_out=True)
    ours = np.stack([s.end for s in found.of("constant", "made")], axis=1)
    base = np.stack([s.end for s in found.of("random", "made")], axis=1)
    row = found.left_out().splitlines()[-1]
    assert row.startswith("| constant")
    assert f"{(ours - base).mean():+.2f}" in row
    with pytest.raises(linmdp.LinMDPError, match="give two agents or more"):
        benchmark(tmp_path, "random", leave_out=True)


def test_shards_do_every_run_once_and_the_whole_command_only_what_they_left(
    tmp_path: Path, tiny: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = ("benchmark", "general", "random", "constant", "--out", str(tmp_path), "-j", "1")
    said = [command(*common, "--shard", f"{i}/2") for i in (1, 2)]
    assert [done.status for done in said] == [0, 0], said
    assert all("4 runs, 4 to do" in done.err for done in said)
    monkeypatch.setattr("linmdp.runner.sweep.run_counted", lambda *_: pytest.fail("it has run already"))
    whole = command(*common)
    assert "8 runs, 0 to do" in whole.err, whole.err
    assert "best constant action" in whole.out
    for name in ("general.md", "general.png", "general.svg"):
        assert (tmp_path / name).stat().st_size > 300


def test_the_same_command_again_says_the_same(tmp_path: Path, tiny: Suite) -> None:
    arguments = ("benchmark", "general-1", "random", "--out", str(tmp_path), "-j", "1", "--json")
    first = command(*arguments)
    again = command(*arguments)
    assert "4 runs, 4 to do" in first.err
    assert "4 runs, 0 to do" in again.err
    assert first.out == again.out
    record = json.loads(first.out)
    assert (record["suite"], record["agent"], record["scale"]) == ("general-1", "random", "quick")
    assert set(record["made"]) == {"iqm_end", "mean_end", "iqm_whole", "mean_whole"}
    assert {"task", "family", "half", "score", "end", "whole", "reason", "before", "steps"} <= set(record["tasks"][0])


def test_python_has_it(tiny: Suite) -> None:
    found = linmdp.benchmark(["random", (linmdp.ConstantAgent, {"action": 1})], suite="general", jobs=1)
    assert isinstance(found, linmdp.Benchmark)
    assert found.agents == ["random", "constant:action=1"]
    assert len(found.rows()) == 4
    assert found.halves == ["made", "kept"]
    another: Any = "2"
    with pytest.raises(linmdp.LinMDPError, match="'suite' parameter of benchmark must be one of"):
        linmdp.benchmark("random", suite=another)


def test_a_false_verdict_is_counted(tmp_path: Path, tiny: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant play that says it has learned has said too much, on every run below 0.1."""
    honest = benchmark(tmp_path, "constant")
    assert not any(s.false.any() for s in honest.scores)
    monkeypatch.setattr(runs, "LEARNED", "")  # with which every line begins
    bold = benchmark(tmp_path, "constant")
    for s in bold.scores:
        assert s.false.tolist() == (s.end < 0.1).tolist()
    assert "of 2 |" in bold.table("made")
