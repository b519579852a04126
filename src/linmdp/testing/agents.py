"""What every agent owes. Each check makes what it needs anew."""

from __future__ import annotations

import copy
import gc
import inspect
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from linmdp.agents.base import Agent
from linmdp.envs.guard import Guard, task_of
from linmdp.errors import InvalidData, InvalidParameter, without_warnings
from linmdp.runner.loop import play, run
from linmdp.runner.registry import construct, make_agent, make_env
from linmdp.testing.envs import require
from linmdp.types import State, Transition


class Case(NamedTuple):
    """How the environment of a check is made, and the agent for it."""

    env: Callable[[], Any]
    agent: Callable[[Any], Agent]

    def fresh(self) -> tuple[Any, Agent]:
        """A new environment and a new agent."""
        env = self.env()
        return env, self.agent(env)


ENVS = (
    "synthetic:S=12,A=3,d=4,H=5",
    "lock:H=4,A=3",
    "gym:FrozenLake-v1,H=12",
    "gym:MountainCar-v0,H=9,features=fourier",
)
LARGE = "synthetic:S=300,A=8,d=24,H=12"
"""Where arrays outweigh the Python objects around them."""

EPISODES = 40


def check_agent(agent: str | type[Agent], env: Any = None) -> None:
    """Check a class with each of its `test_parameters`, or the agent of a spec, in `env` or in several small ones.

    A class may refuse a task with `InvalidParameter`, but not one with finite states and a linear model.
    """
    if isinstance(agent, type):
        check_parameters(agent)
    for make in _makers(agent):
        for place in ENVS if env is None else (env,):
            case = Case(partial(_env, place), make)
            try:
                case.fresh()
            except InvalidParameter:
                if place in ENVS[2:]:
                    continue
                raise
            for check in CHECKS:
                check(case)
        check_nbytes(Case(partial(_env, LARGE if env is None else env), make))


def _env(env: Any) -> Any:
    return make_env(env) if isinstance(env, str) else env


def _makers(agent: str | type[Agent]) -> list[Callable[[Any], Agent]]:
    if isinstance(agent, str):
        return [partial(make_agent, agent, episodes=EPISODES)]
    require(agent.test_parameters, f"{agent.name}: test_parameters must not be empty")
    return [partial(_constructed, agent, parameters) for parameters in agent.test_parameters]


def _constructed(cls: type[Agent], parameters: dict[str, Any], env: Any) -> Agent:
    return construct(cls, parameters, task_of(env), EPISODES)


def check_parameters(cls: type[Agent]) -> None:
    """The task comes first; parameters are keyword-only, and kept as they were given."""
    who, signature = cls.name, inspect.signature(cls)
    require(next(iter(signature.parameters)) == "task", f"{who}: the first parameter must be 'task'")
    defaults = {name: p.default for name, p in cls.parameters().items()}
    others = {p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD} - {"task"}
    require(others <= set(defaults), f"{who}: parameters must be keyword-only, unlike {others - set(defaults)}")
    agent = construct(cls, {}, task_of(make_env(ENVS[0])), 30)
    expected = defaults | ({"episodes": 30} if "episodes" in defaults else {})
    require(agent.get_params() == expected, f"{who}: parameters must be kept verbatim, as attributes of their names")


def check_run(case: Case) -> None:
    """A run has finite rewards, no negative regret, and diagnostics within their ranges."""
    env, agent = case.fresh()
    with without_warnings():  # of agents that learn nothing in a few episodes
        result = run(env, agent, episodes=EPISODES, seed=3)
    who = agent.name
    require(result.rewards.shape == (EPISODES,), f"{who}: each episode must have a return")
    require(np.isfinite(result.rewards).all(), f"{who}: returns must be finite")
    known = getattr(env.unwrapped, "model", None) is not None
    require((result.regret is not None) == known, f"{who}: there must be regret where the model is known, only there")
    if result.regret is not None:
        losses = np.diff(result.regret, prepend=0.0)
        require((losses >= -1e-9).all(), f"{who}: no policy can beat the optimal one")
    require(result.peak_bytes >= agent.nbytes >= 0, f"{who}: nbytes must lie between 0 and the peak")
    require(0 <= result.saturated <= 1, f"{who}: q_values must not be above caps")
    require(result.drift is None or result.drift < 1e-9, f"{who}: the inverse has drifted by {result.drift}")


def check_same_seed(case: Case) -> None:
    """The same seed gives the same run: `self.rng` is the only source of randomness."""
    with without_warnings():
        one, two = (run(*case.fresh(), episodes=20, seed=7) for _ in range(2))
    same = np.array_equal(one.rewards, two.rewards)
    if one.regret is not None and two.regret is not None:
        same = same and np.array_equal(one.regret, two.regret)
    require(same, f"{one.agent}: the same seed must give the same run; use self.rng for all randomness")


def check_saved(case: Case) -> None:
    """An agent that is saved in mid-run and loaded into a new one goes on as if nothing had happened."""
    env, agent = case.fresh()
    with without_warnings():
        run(env, agent, episodes=17, seed=1)
    saved = agent.state_dict()
    arrays = all(isinstance(value, np.ndarray) and value.dtype != object for value in saved.values())
    require(arrays, f"{agent.name}: state_dict() must hold arrays and nothing else")
    twin = case.fresh()[1]
    twin.load_state_dict(saved)

    def go_on(who: Agent) -> list[Any]:
        steps = [step for k in range(15) for step in _episode(env, who, 100 + k)]
        return [(np.asarray(t.state).tolist(), t.action, t.reward) for t in steps]

    require(go_on(agent) == go_on(twin), f"{agent.name}: a saved agent must go on as if nothing had happened")


def check_copy(case: Case) -> None:
    """A copy that learns on leaves the original as it was."""
    env, agent = case.fresh()
    play_for(env, agent, 9)
    states = _states(env, agent)
    before = [agent.q_values(0, s).copy() for s in states]
    play_for(env, copy.deepcopy(agent), 5)
    same = np.array_equal([agent.q_values(0, s) for s in states], before)
    require(same, f"{agent.name}: a copy must go its own way, and share no array that changes")


def check_policy(case: Case) -> None:
    """`policy`, `q_values` and `act` agree, and Q is at most `caps`."""
    env, agent = case.fresh()
    with without_warnings():
        run(env, agent, episodes=15, seed=2)
    states = _states(env, agent)
    agent.begin_episode()
    for h in range(agent.task.H):
        chances = None if agent.task.S is None else _chances(agent, h)
        for s in states:
            _check_state(agent, h, s, None if chances is None else chances[s])


def _chances(agent: Agent, h: int) -> Any:
    """The policy as probabilities, (S, A)."""
    S, A, policy = agent.task.S, agent.task.A, agent.policy(h)
    require(policy.shape in ((S,), (S, A)), f"{agent.name}: policy(h) must have shape {(S,)} or {(S, A)}")
    chances = policy if policy.ndim == 2 else np.eye(A)[policy]
    require(np.allclose(chances.sum(axis=1), 1.0, rtol=1e-7, atol=0), f"{agent.name}: probabilities must sum to 1")
    return chances


def _check_state(agent: Agent, h: int, s: State, chances: Any) -> None:
    who, A, q, action = agent.name, agent.task.A, agent.q_values(h, s), agent.act(h, s)
    require(q.shape == (A,), f"{who}: q_values(h, state) must have shape {(A,)}")
    require(isinstance(action, int) and 0 <= action < A, f"{who}: act must return an int in [0, {A - 1}]: {action!r}")
    require(chances is None or chances[action] > 0, f"{who}: act must play what policy(h) gives a chance")
    if agent.caps is not None:
        require(q.max() <= agent.caps[h], f"{who}: q_values must be at most caps")
        played = q[[action]] if chances is None else q[chances > 0]
        require(played.min() >= q.max() - 1e-5, f"{who}: only the best actions may be played")


def check_damaged(case: Case) -> None:
    """A saved state that lacks an array is refused, and changes nothing."""
    env, agent = case.fresh()
    play_for(env, agent, 5)
    before = agent.state_dict()
    play_for(env, agent, 3)
    now = agent.state_dict()
    for name in set(now) & set(before):
        try:
            agent.load_state_dict({key: value for key, value in before.items() if key != name})
        except InvalidData:
            pass
        else:
            raise AssertionError(f"{agent.name}: a saved state without '{name}' must be refused with InvalidData")
        after = agent.state_dict()
        same = after.keys() == now.keys() and all(np.array_equal(after[key], now[key]) for key in now)
        require(same, f"{agent.name}: a state that is refused must change nothing")


def check_nbytes(case: Case) -> None:
    """`nbytes` is what the agent allocates, and at most what `bytes_after` announces."""
    env, agent = case.fresh()
    play_for(env, agent, EPISODES)  # whatever is loaded once, or cached by NumPy
    del agent
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        agent = case.agent(env)
        announced = agent.bytes_after(EPISODES)
        play_for(env, agent, EPISODES)
        gc.collect()
        allocated = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Python objects of a few kB come on top of any agent, also of one without arrays
    close = abs(agent.nbytes - allocated) <= max(0.05 * allocated, 24_000)
    require(close, f"{agent.name}: nbytes must be what it allocates, {allocated:,} bytes. Got {agent.nbytes:,}")
    for most in (announced, agent.bytes_after(EPISODES)):
        require(agent.nbytes <= most, f"{agent.name}: bytes_after must be at least {agent.nbytes:,}. Got {most:,}")


def play_for(env: Any, agent: Agent, episodes: int) -> None:
    """Play so many episodes."""
    for k in range(episodes):
        for _ in _episode(env, agent, k):
            pass


def _episode(env: Any, agent: Agent, seed: int) -> Iterator[Transition]:
    agent.begin_episode()
    guard = Guard(env)
    yield from play(guard, agent, guard.reset(seed, seed), seed)


def _states(env: Any, agent: Agent) -> list[State]:
    """All states where they are finite, else those of one more episode."""
    if agent.task.S is not None:
        return list(range(agent.task.S))
    return [step.state for step in _episode(env, agent, 0)]


CHECKS = (check_run, check_same_seed, check_saved, check_copy, check_policy, check_damaged)
