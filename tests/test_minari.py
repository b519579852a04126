"""`linmdp record`: what is written is what was played, Minari reads it, and a learner learns from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from command import linmdp as command
from linmdp.runner.logged import Recorder, described_space, read_episodes, record

h5py = pytest.importorskip("h5py")


class Mixed(gymnasium.Env[Any, Any]):
    """All kinds of spaces at once, in arrays that are written over."""

    observation_space = spaces.Dict(
        {
            "where": spaces.Box(-np.inf, np.inf, (2,), np.float32),
            "what": spaces.Tuple((spaces.Discrete(3, start=1), spaces.MultiBinary(2))),
            "word": spaces.Text(5),
        }
    )
    action_space = spaces.MultiDiscrete([2, 3])

    def __init__(self) -> None:
        self._buffer, self._h = np.zeros(2, dtype=np.float32), 0

    def _seen(self) -> Any:
        self._buffer += 1
        return {
            "where": self._buffer,
            "what": (1 + self._h % 3, np.array([1, 0], dtype=np.int8)),
            "word": "a" * self._h,
        }

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._h, self._buffer[:] = 0, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._h += 1
        return self._seen(), float(self._h), self._h == 3, False, {}


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
@pytest.mark.parametrize("env", ["lock:H=4", "gym:FrozenLake-v1,H=30", "gym:FrozenLake-v1,history=2,H=30"])
def test_a_learner_of_a_record_is_the_one_that_played(env: str, tmp_path: Path) -> None:
    made: Any = linmdp.make_env(env)
    player = linmdp.make_agent("q-learning", made, 40)
    played = linmdp.run(made, player, episodes=40, seed=3, verdict=False)
    found = record(env, "q-learning", tmp_path, episodes=40, seed=3)
    episodes = list(read_episodes(tmp_path))
    assert [e["rewards"].sum() for e in episodes] == played.rewards.tolist()
    assert found.steps == played.interactions == sum(len(e["rewards"]) for e in episodes)
    learner = linmdp.Learner(env, "q-learning").learn_from(tmp_path)
    arrays, theirs = player.state_dict(), learner.agent.state_dict()
    tables = [name for name, array in arrays.items() if isinstance(array, np.ndarray) and array.ndim > 1]
    assert tables
    for name in tables:
        np.testing.assert_array_equal(theirs[name], arrays[name])


def test_every_kind_of_space_is_written_and_read(tmp_path: Path) -> None:
    recorder = Recorder(Mixed(), tmp_path, dataset_id="x/mixed-v0")
    for stop in (9, 2):
        recorder.reset(seed=0)
        for h in range(stop):
            if recorder.step(np.array([h % 2, h % 3]))[2]:
                break
    recorder.close()
    first, second = read_episodes(tmp_path / "data")
    np.testing.assert_array_equal(first["observations"]["where"], [[k, k] for k in (1, 2, 3, 4)])
    np.testing.assert_array_equal(first["observations"]["what"][0], [1, 2, 3, 1])
    assert first["observations"]["where"].dtype == np.float32
    assert [word.decode() for word in first["observations"]["word"]] == ["", "a", "aa", "aaa"]
    assert first["terminations"].tolist() == [False, False, True]
    assert first["truncations"].tolist() == [False] * 3
    assert second["truncations"].tolist() == [False, True]  # it was cut from outside
    np.testing.assert_array_equal(second["actions"], [[0, 0], [1, 1]])
    meta = json.loads((tmp_path / "data" / "metadata.json").read_text())
    assert (meta["total_episodes"], meta["total_steps"]) == (2, 5)


@pytest.mark.parametrize(
    "env", ["gym:CartPole-v1", "gym:FrozenLake-v1", "gym:Pendulum-v1,history=2", "gym:Blackjack-v1"]
)
def test_minari_reads_it(env: str, tmp_path: Path) -> None:
    minari = pytest.importorskip("minari")
    record(env, "random", tmp_path, episodes=4)
    dataset = minari.MinariDataset(tmp_path / "data")
    own: Any = linmdp.make_env(env)
    assert dataset.spec.observation_space == own.outside.observation_space
    assert dataset.spec.action_space == own.outside.action_space
    assert dataset.spec.env_spec.id == own.id
    for mine, theirs in zip(read_episodes(tmp_path), dataset.iterate_episodes(), strict=True):
        for name, column in mine.items():
            np.testing.assert_equal(getattr(theirs, name), column)
    one, other = (linmdp.Learner(env, "lsvi-ucb:lam=1,beta=0.1").learn_from(data) for data in (tmp_path, dataset))
    np.testing.assert_equal(one.agent.state_dict(), other.agent.state_dict())


def test_spaces_are_described_as_minari_does() -> None:
    serialization = pytest.importorskip("minari.serialization")
    for space in (*Mixed.observation_space.values(), Mixed.observation_space, Mixed.action_space):
        text = json.dumps(described_space(space))
        assert serialization.deserialize_space(text) == space
        assert json.loads(serialization.serialize_space(space)) == json.loads(text)


def test_a_pandas_frame_of_a_record_teaches_the_same(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    record("gym:CartPole-v1", "random", tmp_path, episodes=3)
    rows = list[dict[str, Any]]()
    for e in read_episodes(tmp_path):
        seen = list(e["observations"])
        columns = {name: list(e[name]) for name in ("actions", "rewards", "terminations", "truncations")}
        columns |= {"observations": seen[:-1], "next_observations": seen[1:]}
        rows += [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    frame = pandas.DataFrame(rows)
    one, other = (linmdp.Learner("CartPole-v1", "stream-q").learn_from(data) for data in (tmp_path, frame))
    np.testing.assert_equal(one.agent.state_dict(), other.agent.state_dict())


def test_the_command_writes_once_and_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    what = ("record", "lock:H=4", "random", "-k", "3", "-o", str(tmp_path / "new"))
    done = command(*what)
    assert (done.status, done.err.splitlines()[-1]) == (
        0,
        f"written: 3 episodes, 12 steps in {tmp_path / 'new' / 'data'}",
    )
    assert sorted(path.name for path in (tmp_path / "new" / "data").iterdir()) == ["main_data.hdf5", "metadata.json"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data"]
    again = command(*what)
    assert (again.status, again.err.count("\n")) == (2, 1)
    assert "must have no dataset yet" in again.err
    (tmp_path / "main_data.hdf5").write_bytes(b"no HDF5")
    for folder, words in ((tmp_path, "cannot be read"), (tmp_path / "nowhere", "must be a folder of 'linmdp record'")):
        with pytest.raises(linmdp.InvalidData, match=words):
            linmdp.Learner("lock:H=4", "q-learning").learn_from(folder)


def test_without_h5py_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    done = command("record", "lock:H=4", "random", "-k", "3", "-o", str(tmp_path))
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "pip install 'linmdp[minari]'" in done.err
