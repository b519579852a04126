"""Logged transitions, in the forms in which people have them, as episodes of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.envs.guard import plain_array
from linmdp.errors import Fault, InvalidData, InvalidParameter, check_flag, one_number, shown
from linmdp.runner.recorded import read_episodes
from linmdp.types import State, Task, Transition

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
