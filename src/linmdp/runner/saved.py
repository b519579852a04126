"""Agents and policies from files, in two lines: `agent.save(path)`, and `linmdp.load_agent(path, env)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from linmdp.agents.base import TIE, Agent, under
from linmdp.errors import InvalidData, LinMDPError, unknown
from linmdp.io.tensorfile import TensorFile, read_tensors
from linmdp.runner.guard import task_of
from linmdp.runner.registry import AGENTS, agent_parameters
from linmdp.runner.spec import check_names
from linmdp.types import Array, State, Task


def load_agent(path: str | Path, env: Any) -> Agent:
    """The agent that `agent.save` wrote, or that of a checkpoint, for the same task; `env` may also be a `Task`."""
    file = read_tensors(path, "agent", "checkpoint", signed=True)
    arrays = under("agent", file.arrays) if file.meta["kind"] == "checkpoint" else file.arrays
    try:
        agent = _made(file, env)
        agent.load_state_dict(arrays)
    except LinMDPError as error:
        raise InvalidData(f"The agent in '{path}' can not be used here. {error}") from error
    return agent


def _made(file: TensorFile, env: Any) -> Agent:
    """A new agent with the parameters in the file; what they make it allocate, the file must hold."""
    saved = file.meta.get("agent")
    if not isinstance(saved, dict) or not isinstance(saved.get("agent"), str):
        raise InvalidData("Its words must name the agent. They do not.")
    name = saved["agent"]
    if name not in AGENTS:
        unknown("agent", name, AGENTS)
    parameters = {key: value for key, value in saved.items() if key not in ("agent", "S", "A", "d", "H")}
    check_names(name, parameters, agent_parameters(name))
    task = env if isinstance(env, Task) else task_of(env)
    held = sum(array.nbytes for array in file.arrays.values())
    for key in ("M", "m"):  # samples of each step but the last that the agent has room for from the start
        if task.H > 1 and isinstance(parameters.get(key), int | float) and not parameters[key] <= held:
            raise InvalidData(f"The file must hold {key}={parameters[key]} samples a step. It has {held} bytes.")
    if name == "optimal":
        parameters["Q"] = env.unwrapped.optimum.Q
    make: Any = AGENTS[name]
    try:
        agent: Agent = make(task, **parameters)
    except (TypeError, OverflowError, AttributeError) as error:
        raise InvalidData(f"Its parameters can not be used: {error}.") from error
    return agent


def load_policy(path: str | Path, env: Any) -> Policy:
    """The greedy policy of a saved agent: it acts, and learns nothing."""
    return Policy(load_agent(path, env))


class Policy:
    """argmax_a Q_h(state, a) of an agent as it is, the first of equals; calling it changes nothing."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self.task = agent, agent.task

    def __call__(self, h: int, state: State) -> int:
        """The action for `state` at step h."""
        q = self.q_values(h, state)
        return int((q >= q.max() - TIE * max(1.0, abs(float(q.max())))).argmax())

    def q_values(self, h: int, state: State) -> Array:
        """What each action is worth, (A,)."""
        return self._agent.q_values(h, state)
