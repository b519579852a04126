"""Tracking: what TensorBoard reads is what the run was."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.errors import InvalidParameter, UnknownName
from linmdp.results.tracking import POINTS, TensorBoard, make_tracker, scalars
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
    TensorBoard(tmp_path)(result)
    TensorBoard(tmp_path)(result)  # done again: the file is replaced
    (path,) = tmp_path.rglob("*tfevents*")
    assert path.parent == tmp_path / "lock_H=4" / "lsvi-ucb" / "K-30" / "seed-3"
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
    assert len(points) == POINTS
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
    with pytest.raises(InvalidParameter, match="extra 'tracking'"):
        make_tracker("tensorboard", tmp_path)
