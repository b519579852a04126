"""Tracking: what TensorBoard reads is what the run was."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import linmdp
from linmdp.errors import InvalidParameter, UnknownName
from linmdp.results.curves import SHOWN
from linmdp.results.tracking import Tracker, make_tracker, scalars
from linmdp.types import RunResult

pytest.importorskip("tensorboardX")


def events(path: Path) -> list[Any]:
    """The events of a file, read by its framing: length, checksum, data, checksum."""
    from tensorboardX.proto import event_pb2
    from tensorboardX.record_writer import masked_crc32c

    data, found = path.read_bytes(), []
    while data:
        (size,), (crc,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        assert crc == masked_crc32c(data[:8])
        body, (crc,) = data[12 : 12 + size], struct.unpack("<I", data[12 + size : 16 + size])
        assert crc == masked_crc32c(body)
        found.append(event_pb2.Event.FromString(body))
        data = data[16 + size :]
    return found


def curve(path: Path, tag: str) -> dict[int, float]:
    return {e.step: v.simple_value for e in events(path) for v in e.summary.value if v.tag == tag}


def one_run(episodes: int = 30) -> RunResult:
    env = linmdp.make_env("lock:H=4")
    agent = linmdp.make_agent("lsvi-ucb:beta=1,lam=1", env)
    return linmdp.run(env, agent, episodes=episodes, seed=3, name="lock:H=4")


def test_events_hold_the_curves_and_the_ends(tmp_path: Path) -> None:
    result = one_run()
    Tracker("tensorboard", tmp_path)(result)
    Tracker("tensorboard", tmp_path)(result)  # done again: the file is replaced
    (path,) = tmp_path.rglob("*tfevents*")
    assert path.parent == tmp_path / "tensorboard" / "lock_H=4" / "lsvi-ucb" / "K-30" / "seed-3"
    assert events(path)[0].file_version == "brain.Event:2"
    assert result.regret is not None
    regret, reward = curve(path, "regret"), curve(path, "reward per episode")
    assert list(regret) == list(reward) == list(range(1, 31))
    np.testing.assert_allclose(list(regret.values()), result.regret, rtol=1e-6)
    np.testing.assert_allclose(list(reward.values()), result.rewards, rtol=1e-5, atol=1e-6)
    assert curve(path, "agent bytes") == {30: result.peak_bytes}
    assert list(curve(path, "saturated")) == [30]


def test_thinned_rewards_lose_no_total() -> None:
    result = one_run(1000)
    points = list(scalars(result))
    assert len(points) == SHOWN
    steps = np.diff([step for step, _ in points], prepend=0)
    assert (steps * [values["reward per episode"] for _, values in points]).sum() == pytest.approx(result.reward)


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_every_run_of_a_command_is_tracked(command: str, tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text('name="s"\n[[runs]]\nenv="lock:H=4"\nagents=["random", "optimal"]\nepisodes=[5, 6]\nseeds=2\n')
    what = {
        "run": ["lock:H=4", "random", "-k", "5", "--seeds", "2"],
        "compare": ["lock:H=4", "random", "-k", "5", "--seeds", "2"],
        "sweep": [str(spec)],
    }[command]
    program = [sys.executable, "-c", "from linmdp.cli import main; main()", command, *what, "--out", str(tmp_path)]
    done = subprocess.run([*program, "--track", "tensorboard"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = sorted((tmp_path / "tensorboard").rglob("*tfevents*"))
    assert len(found) == {"run": 2, "compare": 4, "sweep": 8}[command]
    assert all(len(curve(path, "regret")) in (5, 6) for path in found)


def test_what_can_not_be_tracked_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_tracker(None, None) is None
    with pytest.raises(UnknownName, match=r"no tracker 'tensorbord'\. Did you mean 'tensorboard'"):
        make_tracker("tensorbord", tmp_path)
    with pytest.raises(InvalidParameter, match="'track' parameter of linmdp must be given together with --out"):
        make_tracker("tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboardX.writer", None)
    with pytest.raises(InvalidParameter, match=r"pip install 'linmdp\[tracking\]'"):
        make_tracker("tensorboard", tmp_path)


def learned(tracker: Tracker) -> linmdp.Learner:
    with tracker:
        return linmdp.Learner("lock:H=4", "q-learning").learn(6, callback=tracker)


class Told:
    """What stands in for a package that is not installed: it writes down what it is told."""

    steps: ClassVar[list[tuple[int, str, float]]] = []

    class Run:
        info = SimpleNamespace(run_id="1", experiment_id="1")
        experiment_id = "1"

        def log(self, values: dict[str, float], step: int) -> None:
            Told.steps.extend((step, key, value) for key, value in values.items())

        def finish(self) -> None:
            Told.steps.append((0, "over", 0.0))

        def get_experiment_by_name(self, name: str) -> None: ...
        def create_experiment(self, name: str) -> str:
            return name

        def create_run(self, experiment: str, run_name: str) -> Told.Run:
            return self

        def log_param(self, run: str, name: str, value: Any) -> None: ...
        def log_batch(self, run: str, metrics: list[tuple[str, float, int, int]]) -> None:
            Told.steps.extend((step, key, value) for key, value, _, step in metrics)

        def set_terminated(self, run: str) -> None:
            self.finish()

    package = SimpleNamespace(
        init=lambda **how: Told.Run(),
        MlflowClient=lambda tracking_uri: Told.Run(),
        entities=SimpleNamespace(Metric=lambda *of: of),
    )


def test_a_learner_on_its_way_is_tracked_episode_by_episode(tmp_path: Path) -> None:
    returns = learned(Tracker("tensorboard", tmp_path, "mine/first")).returns
    (path,) = tmp_path.rglob("*tfevents*")
    assert path.parent == tmp_path / "tensorboard" / "mine" / "first"
    assert curve(path, "reward per episode") == pytest.approx(dict(enumerate(returns, 1)))
    assert set(curve(path, "agent bytes")) == set(range(1, 7))


def test_a_run_of_ones_own_loop_is_tracked(tmp_path: Path) -> None:
    env = linmdp.make_env("lock:H=4")
    with Tracker("tensorboard", tmp_path) as tracker:
        found = linmdp.run(env, linmdp.make_agent("random", env), episodes=4, on_episode=tracker)
    (path,) = tmp_path.rglob("*tfevents*")
    assert found.regret is not None
    each = np.diff(found.regret, prepend=0.0)
    assert curve(path, "regret of the episode") == pytest.approx(dict(enumerate(each.tolist(), 1)))


def records(path: Path) -> Iterator[bytes]:
    """Of a file in the log format of LevelDB, after 7 bytes of its own: blocks of 32 KiB, records in pieces."""
    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (room := 32768 - at % 32768) < 7:  # too little for another header
            at += room
            continue
        size, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        whole, at = whole + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):  # whole, or its last piece
            yield whole
            whole = b""


def test_weights_and_biases_keeps_a_run_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_MODE", "offline")
    returns = learned(Tracker("wandb", tmp_path, "mine", {"lam": 1})).returns
    Tracker("wandb", tmp_path)(one_run())
    files = sorted(tmp_path.rglob("*.wandb"), key=lambda path: path.stat().st_mtime)
    assert len(files) == 2
    rows = list[dict[str, str]]()
    for data in records(files[0]):
        record = wandb_internal_pb2.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            rows.append({(i.key or i.nested_key[0]): i.value_json for i in record.history.item})
    assert [float(row["reward per episode"]) for row in rows] == pytest.approx(returns)
    assert [int(row["_step"]) for row in rows] == list(range(1, 7))


def test_mlflow_keeps_a_run_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    returns = learned(Tracker("mlflow", tmp_path, "mine", {"lam": 1})).returns
    result = one_run()
    Tracker("mlflow", tmp_path)(result)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("linmdp").experiment_id])
    named = {run.info.run_name: run for run in found}
    assert sorted(named) == ["lock_H=4/lsvi-ucb/K-30/seed-3", "mine"]
    assert {run.info.status for run in found} == {"FINISHED"}
    assert named["mine"].data.params == {"lam": "1"}
    points = client.get_metric_history(named["mine"].info.run_id, "reward per episode")
    assert {p.step: p.value for p in points} == pytest.approx(dict(enumerate(returns, 1)))
    last = named["lock_H=4/lsvi-ucb/K-30/seed-3"].data
    assert last.metrics["regret"] == pytest.approx(result.final_regret)
    assert last.params["seed"] == "3"


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_package_that_is_not_there_is_named_before_anything_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidParameter, match=rf"pip install 'linmdp\[{name}\]'"):
        make_tracker(name, tmp_path)


def test_a_tracker_that_cannot_begin_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**how: Any) -> None:
        raise OSError("no\nkey")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=refused))
    with pytest.raises(InvalidParameter, match=r"^WandB could not begin a run: OSError: no key\.$"):
        Tracker("wandb", tmp_path)(one_run(2))


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_each_tracker_is_told_every_number_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the door to a package that is not installed here: what is handed over."""
    monkeypatch.setitem(sys.modules, name, Told.package)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Told.steps.clear()
    result = one_run(8)
    make_tracker(name, tmp_path)(result)  # type: ignore[misc]
    assert result.regret is not None
    regret = [(step, value) for step, key, value in Told.steps if key == "regret"]
    assert dict(regret) == pytest.approx(dict(enumerate(result.regret.tolist(), 1)))
    assert len(regret) == 8
    assert Told.steps[-1] == (0, "over", 0.0)
