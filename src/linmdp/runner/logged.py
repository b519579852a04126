"""Episodes in files: recorded in Minari's layout, and logged transitions in any form, as episodes of a task."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from linmdp.envs.adapter import GymTask
from linmdp.envs.guard import name_of, plain_array
from linmdp.envs.spaces import inner_spaces, is_text
from linmdp.errors import (
    Fault,
    InvalidData,
    InvalidParameter,
    OutputError,
    check_flag,
    described,
    needed,
    one_number,
    shown,
)
from linmdp.io.files import output_folder, write_atomic
from linmdp.runner.loop import run
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import State, Task, Transition

FORMAT = "0.5.3"
"""The version of Minari whose layout this is; later ones read it."""
DATA, META = "main_data.hdf5", "metadata.json"
COLUMNS = ("observations", "actions", "rewards", "terminations", "truncations")
WORDS = "A Minari dataset needs {name}: pip install 'linmdp[minari]'."


FIELDS = {
    spaces.Box: ("dtype", "shape", "low", "high"),
    spaces.Discrete: ("dtype", "start", "n"),
    spaces.MultiDiscrete: ("dtype", "nvec", "start"),
    spaces.MultiBinary: ("n",),
    spaces.Text: ("max_length", "min_length", "characters"),
}
"""What Minari writes of each kind of space."""


def described_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space as Minari writes it."""
    kind = type(space).__name__
    if isinstance(space, spaces.Dict):
        return {"type": kind, "subspaces": {key: described_space(one) for key, one in space.spaces.items()}}
    if isinstance(space, spaces.Tuple):
        return {"type": kind, "subspaces": [described_space(one) for one in space.spaces]}
    if type(space) not in FIELDS:
        raise InvalidParameter(f"A dataset must be of spaces that Minari knows. Got {space}.")
    found = {name: getattr(space, name) for name in FIELDS[type(space)]}
    plain = {name: str(x) if name == "dtype" else np.asarray(x).tolist() for name, x in found.items()}
    return {"type": kind, **{"charset" if name == "characters" else name: x for name, x in plain.items()}}


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Writes every episode that is played, as the environment shows it, into a folder that is there when it is closed.

    Parameters
    ----------
    env : an environment
    folder : of the dataset, which must not have one yet
    about : further metadata, such as who played
    """

    def __init__(self, env: gymnasium.Env[Any, Any], folder: Path, **about: Any) -> None:
        super().__init__(env)
        h5py = needed("h5py", WORDS)
        self.folder = output_folder(folder) / "data"
        if self.folder.exists():
            raise OutputError(f"The folder '{folder}' must have no dataset yet. It has one: give another --out.")
        both = {"observation_space": env.observation_space, "action_space": env.action_space}
        self._meta = {name: json.dumps(described_space(space)) for name, space in both.items()} | about
        self._meta |= {"data_format": "hdf5", "jpeg_encoding": False, "minari_version": FORMAT}
        with suppress(TypeError, ValueError, AttributeError):  # made by nobody's registry, or with what is no JSON
            self._meta["env_spec"] = env.spec.to_json()  # type: ignore[union-attr]
        self._making = Path(tempfile.mkdtemp(prefix=".data.", dir=folder))
        self._file = h5py.File(self._making / DATA, "w", track_order=True)
        self.episodes, self.steps = 0, 0
        self._columns: dict[str, list[Any]] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; one that somebody else has cut is over."""
        self._write()
        observation, info = self.env.reset(seed=seed, options=options)
        self._columns = {name: [] for name in COLUMNS}
        self._columns["observations"].append(_copied(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        found = self.env.step(action)
        for name, value in zip(COLUMNS, (found[0], action, *found[1:4]), strict=True):
            self._columns[name].append(_copied(value))
        return found

    def _write(self) -> None:
        columns, self._columns = self._columns, {}
        if not columns or not (n := len(columns["rewards"])):
            return
        columns["truncations"][-1] = bool(columns["truncations"][-1]) or not columns["terminations"][-1]
        group = self._file.create_group(f"episode_{self.episodes}")
        group.attrs["id"], group.attrs["total_steps"] = self.episodes, n
        _put(group, "observations", self.env.observation_space, columns["observations"])
        _put(group, "actions", self.env.action_space, columns["actions"])
        for name, kind in zip(COLUMNS[2:], (np.float64, np.bool_, np.bool_), strict=True):
            group.create_dataset(name, data=np.array(columns[name], dtype=kind))
        self.episodes, self.steps = self.episodes + 1, self.steps + n

    def close(self) -> None:
        """Finish the dataset; without an episode there is none."""
        self._write()
        if self._file:
            self._file.close()
            if self.episodes:
                sizes = {"total_episodes": self.episodes, "total_steps": self.steps}
                write_atomic(self._making / META, json.dumps(self._meta | sizes).encode())
                self._making.rename(self.folder)
            shutil.rmtree(self._making, ignore_errors=True)
        super().close()


def _copied(value: Any) -> Any:
    """An environment may go on writing into its own arrays."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return tuple(map(_copied, value)) if isinstance(value, tuple) else np.copy(value)


def _put(group: Any, name: str, space: spaces.Space[Any], values: list[Any]) -> None:
    """A column: a Dict and a Tuple are groups of columns."""
    if inner := inner_spaces(space):
        below = group.create_group(name)
        for key, one in inner.items():
            _put(below, f"_index_{key}" if isinstance(space, spaces.Tuple) else key, one, [v[key] for v in values])
    elif is_text(space):
        group.create_dataset(name, data=[str(v) for v in values], dtype=needed("h5py", WORDS).string_dtype())
    else:
        group.create_dataset(name, data=np.array(values, dtype=space.dtype))


def read_episodes(folder: Path) -> Iterator[dict[str, Any]]:
    """The columns of each episode of a dataset, of `linmdp record` or of Minari's."""
    h5py = needed("h5py", WORDS)
    places = [place / DATA for place in (folder, folder / "data") if (place / DATA).is_file()]
    if not places:
        raise InvalidData(f"The dataset '{folder}' must be a folder of 'linmdp record' or of Minari, with {DATA}.")
    try:
        with h5py.File(places[0], "r") as file:
            for name in sorted(file, key=lambda name: int(name.rpartition("_")[2])):
                yield {column: _column(file[name][column]) for column in COLUMNS}
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidData):
            raise
        raise InvalidData(f"The dataset '{places[0]}' cannot be read: {described(error)}.") from error


def _column(part: Any) -> Any:
    if not hasattr(part, "keys"):
        return part[()]
    inner = {key: _column(part[key]) for key in part}
    if inner and all(key.startswith("_index_") for key in inner):
        return tuple(inner[f"_index_{i}"] for i in range(len(inner)))
    return inner


def record(env: Any, agent: str, folder: Path, *, episodes: int, seed: int = 0, progress: bool = False) -> Recorder:
    """Let an agent learn, and record what the environment itself shows and is told; Ctrl-C keeps what was played."""
    task_env: Any = make_env(env)
    adapted = isinstance(task_env, GymTask)
    plain = "".join(c if c.isalnum() else "-" for c in name_of(task_env).partition("-v")[0]).strip("-") or "task"
    made = make_agent(agent, task_env, episodes)
    outside = task_env.outside if adapted else task_env
    recorder = Recorder(outside, folder, dataset_id=f"linmdp/{plain}-v0", algorithm_name=agent)
    try:
        played = task_env.beside(recorder) if adapted else recorder
        run(played, made, episodes=episodes, seed=seed, progress=progress, eval_every=episodes, verdict=False)
    finally:
        recorder.close()
    return recorder


NAMES = ("observations", "actions", "rewards", "terminations", "truncations", "next_observations")
"""What a dataset calls its columns, as Minari does."""


class Logged(NamedTuple):
    """One step of a log: what was seen, done and paid in the environment's own terms, and the same for an agent."""

    observation: Any
    following: Any
    paid: float
    step: Transition


def logged_episodes(dataset: Any, task: Task, adapter: Any | None) -> Iterator[list[Logged]]:
    """The episodes of a log, cut where they end and after H steps.

    Parameters
    ----------
    dataset : a mapping of arrays (or lists) by `NAMES`, a pandas frame with such columns, a Minari dataset, or the
        folder of one. Observations may have one entry more than the rest, the last one of their only episode; then
        `next_observations` is not needed
    task, adapter : what the agent knows, and what reads observations, where there is one
    """
    count, read = 0, None if adapter is None else adapter.reader()
    for columns in _parts(dataset):
        episode = list[Logged]()
        for seen, action, reward, following, terminated, truncated in _rows(columns):
            place = f"of transition {count} of the dataset"
            count += 1
            episode.append(_step(task, adapter, read, episode, (seen, action, reward, following, terminated), place))
            if terminated or truncated or len(episode) == task.H:
                yield episode
                episode = []
        if episode:
            yield episode
    if not count:
        raise InvalidData("A dataset must have at least one transition. It has none.")


def _parts(dataset: Any) -> Iterator[Mapping[str, Any]]:
    """Its columns, or those of each of its episodes."""
    if isinstance(dataset, str | Path):
        yield from read_episodes(Path(dataset))
    elif hasattr(dataset, "iterate_episodes"):
        for episode in dataset.iterate_episodes():
            yield {name: getattr(episode, name) for name in NAMES[:-1]}
    elif isinstance(dataset, Mapping):
        yield dataset
    elif hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):
        yield {name: dataset[name].to_list() for name in NAMES if name in dataset.columns}
    else:
        kinds = f"a mapping or a pandas frame with {', '.join(NAMES)}, a Minari dataset, or the folder of one"
        raise InvalidParameter(f"The dataset must be {kinds}. Got {shown(dataset)}.")


def _rows(columns: Mapping[str, Any]) -> Iterator[tuple[Any, Any, float, Any, bool, bool]]:
    """Transition by transition, each with what was seen before and after it."""
    for name in NAMES[:3]:
        if name not in columns:
            raise InvalidData(f"A dataset must have '{name}'. It has {', '.join(map(str, columns)) or 'nothing'}.")
    n, seen = len(columns["rewards"]), columns["observations"]
    following = columns.get("next_observations")
    if following is None and _length(seen) != n + 1:
        rule = "have 'next_observations', or one observation more than rewards"
        raise InvalidData(f"A dataset must {rule}. It has {_length(seen)} observations and {n} rewards.")
    sizes = {name: _length(columns[name]) for name in NAMES if name in columns}
    wrong = next((name for name, size in sizes.items() if size != n + (name == NAMES[0] and following is None)), None)
    if wrong:
        raise InvalidData(f"'{wrong}' of a dataset must have {n} entries, as its rewards. Got {sizes[wrong]}.")
    ends = [columns.get(name, np.zeros(n, dtype=np.bool_)) for name in ("terminations", "truncations")]
    for i in range(n):
        after = _at(seen, i + 1) if following is None else _at(following, i)
        terminated, truncated = (check_flag(name, end[i]) for name, end in zip(NAMES[3:5], ends, strict=True))
        yield _at(seen, i), _at(columns["actions"], i), columns["rewards"][i], after, terminated, truncated


def _step(
    task: Task,
    adapter: Any | None,
    read: Any,
    before_it: list[Logged],
    row: tuple[Any, Any, Any, Any, bool],
    place: str,
) -> Logged:
    """One step as an agent would have seen it, after those before it in its episode."""
    h = len(before_it)
    seen, action, reward, following, terminated = row
    try:
        paid = one_number(reward)
        if adapter is None:
            number, before, after = int(action), seen, following
        else:
            number = adapter.action_map.nearest(action)
            remembered = h > 0 and adapter.history > 1  # what was read after the last step is not read again
            before = before_it[-1].step.next_state if remembered else read(seen)
            after = read(following, action)
        if not np.isfinite(paid):
            raise Fault("reward", "one finite number", reward)
        if not 0 <= number < task.A:
            raise Fault("action", f"in [0, {task.A - 1}]", action)
        agents = paid if adapter is None else adapter.pay(paid)
        step = Transition(h, _state(task, before), number, agents, _state(task, after), terminated)
    except Fault as fault:
        raise InvalidData(fault.at(f"{fault.what} {place}")) from fault
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise InvalidData(f"What stands {place} must fit the environment. Got {shown(row[:4])}.") from error
    return Logged(seen, following, paid, step)


def _state(task: Task, observation: Any) -> State:
    if task.S is None:
        array = plain_array("state", observation)
        if not np.isfinite(array).all():
            raise Fault("state", "finite", observation)
        return array.copy()
    state = int(observation)
    if not 0 <= state < task.S:
        raise Fault("state", f"a whole number in [0, {task.S - 1}]", observation)
    return state


def _length(column: Any) -> int:
    """Of a Dict or a Tuple of arrays that of the first one."""
    if isinstance(column, Mapping):
        return _length(next(iter(column.values())))
    return _length(column[0]) if _has_parts(column) else len(column)


def _has_parts(column: Any) -> bool:
    """Whether it is a Tuple of columns, and no column of numbers that is a tuple."""
    return isinstance(column, tuple) and bool(column) and hasattr(column[0], "__len__")


def _at(column: Any, i: int) -> Any:
    """Entry i, also of a Dict or a Tuple of arrays."""
    if isinstance(column, Mapping):
        return {name: _at(part, i) for name, part in column.items()}
    if _has_parts(column):
        return tuple(_at(part, i) for part in column)
    return column[i]
