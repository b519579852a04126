"""The agent-environment loop, and exact regret beside it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from linmdp.agents.base import Agent, check_reward
from linmdp.envs.planning import policy_value
from linmdp.errors import InvalidData, InvalidParameter, LinMDPWarning, check_int
from linmdp.runner.diagnostics import MOST_EPISODES, Probe, probe_from
from linmdp.runner.progress import Advance, progress_bar
from linmdp.runner.sb3 import SB3Agent
from linmdp.runner.stopwatch import Stopwatch
from linmdp.types import WHOLE, Array, EpisodeRecord, RunResult, Task, Transition, cost_points


def run(
    env: Any,
    agent: Agent,
    *,
    episodes: int,
    seed: int = 0,
    progress: bool | Advance = False,
    eval_every: int = 1,
    on_episode: Callable[[EpisodeRecord], None] | None = None,
    name: str | None = None,
) -> RunResult:
    """Let `agent` learn in `env` for that many episodes.

    Regret is exact: V*(s_1) - V^pi(s_1) of the policy of each episode, by planning in the model. It is computed when
    the policy has changed; with `eval_every` n only in every n-th episode, and the value is held in between.
    One BLAS thread is used, so that the numbers do not depend on the machine's load or on the number of processes.
    """
    episodes = check_int("run", "episodes", episodes, low=1, high=MOST_EPISODES)
    eval_every = check_int("run", "eval_every", eval_every, low=1)
    task = getattr(env.unwrapped, "task", None)
    if not isinstance(task, Task):
        raise InvalidParameter(f"The environment must have a 'task': use linmdp.make_env or GymTask. Got {env!r}.")
    if (agent.task.S, agent.task.A, agent.task.d, agent.task.H) != (task.S, task.A, task.d, task.H):
        raise InvalidParameter(f"The agent must be made for this environment's task. Got one for {_size(agent.task)}.")
    name = name or str(getattr(getattr(env.unwrapped, "model", None), "name", None) or getattr(env, "id", env))
    if isinstance(agent, SB3Agent):  # its library drives the environment itself
        return agent.learn(
            env,
            episodes=episodes,
            seed=check_int("run", "seed", seed, low=0),
            progress=progress,
            eval_every=eval_every,
            on_episode=on_episode,
            name=name,
        )
    env_seed, agent_seed = np.random.SeedSequence(check_int("run", "seed", seed, low=0)).spawn(2)
    agent.rng = np.random.default_rng(agent_seed)
    first_seed: int | None = int(env_seed.generate_state(1)[0])

    regret_meter = RegretMeter(env.unwrapped, agent, eval_every)
    probe = Probe(agent)
    rewards, regret = np.zeros(episodes), np.zeros(episodes)
    peak, clock, before = agent.nbytes, Stopwatch(), (agent.updates, agent.resets)
    costs, points = [], set(cost_points(episodes))
    with (
        threadpool_limits(1, user_api="blas"),
        progress_bar("episodes", episodes, progress) as advance,
        clock,
    ):
        for k in range(episodes):
            if k == probe_from(episodes):
                probe.begin()
            agent.begin_episode()
            if regret_meter.due(k):
                with clock.paused():
                    regret_meter.evaluate()
            state, _ = env.reset(seed=first_seed, options=regret_meter.reset_options())
            first_seed = None
            _check_state(state, task.S, k, None)
            regret[k] = regret_meter.gap(state)
            watch = probe if k >= probe_from(episodes) else None
            for step in play(env, agent, state, k, watch):
                rewards[k] += step.reward
            peak = max(peak, agent.nbytes)
            if k + 1 in points:
                costs.append([k + 1, peak, clock.cpu_so_far])
            if on_episode:
                with clock.paused():
                    on_episode(EpisodeRecord(k, rewards[k], regret[k] if regret_meter.known else None, agent.nbytes))
            advance()
    found = probe.findings(episodes)
    for words in found:
        warnings.warn(words, LinMDPWarning, stacklevel=2)
    return RunResult(
        env=name,
        agent=agent.name,
        params=agent.get_params(),
        seed=seed,
        episodes=episodes,
        eval_every=eval_every,
        regret=np.cumsum(regret) if regret_meter.known else None,
        rewards=rewards,
        peak_bytes=peak,
        feature_bytes=task.features.nbytes,
        cpu_seconds=clock.cpu,
        wall_seconds=clock.wall,
        updates=agent.updates - before[0],
        resets=agent.resets - before[1],
        saturated=probe.saturated,
        tied=probe.tied,
        drift=agent.drift(),
        warnings=found,
        costs=costs,
    )


def play(env: Any, agent: Agent, state: Any, k: int, probe: Probe | None = None) -> Iterator[Transition]:
    """One episode, step by step; it may end early."""
    task = env.unwrapped.task
    for h in range(task.H):
        action = agent.act(h, state)
        if probe:
            probe.look(h, state, action)
        next_state, reward, terminated, truncated, _ = env.step(action)
        reward = check_reward(reward, task.reward_range, k, h)
        _check_state(next_state, task.S, k, h)
        agent.observe(h, state, action, reward, next_state, terminated)
        yield Transition(h, state, action, reward, next_state, terminated)
        if terminated or truncated:
            break
        state = next_state
    agent.end_episode()


class RegretMeter:
    """V* - V^pi of the policy of the moment, where the model is known."""

    def __init__(self, env: Any, agent: Agent, eval_every: int) -> None:
        self.model: Any = getattr(env, "model", None)
        self.known = self.model is not None
        self._agent, self._every = agent, eval_every
        self._version: int | None = None
        self._optimal: Array = env.optimum.V[0] if self.known else np.zeros(0)
        self._gap: Array = np.zeros_like(self._optimal)

    def due(self, k: int) -> bool:
        """Whether the policy of episode k is to be evaluated: its turn has come, and it is not the one of last time."""
        return self.known and k % self._every == 0 and self._version != self._agent.policy_version

    def evaluate(self) -> None:
        """Evaluate the policy of the moment."""
        self._gap = self._optimal - policy_value(self.model, self._agent.policy)[0]
        self._version = self._agent.policy_version

    def gap(self, state: Any) -> float:
        """V*(state) - V^pi(state); 0 where the model is not known."""
        return float(self._gap[state]) if self.known else 0.0

    def reset_options(self) -> dict[str, Any] | None:
        """The adversary's move: the start where the policy loses most."""
        if self.known and self.model.start == "adversarial":
            return {"state": int(self._gap.argmax())}
        return None


def _check_state(state: Any, S: int | None, k: int, h: int | None) -> None:
    if S is None:
        rule = "" if np.isfinite(state).all() else "finite"
    else:
        rule = "" if isinstance(state, WHOLE) and 0 <= state < S else f"a whole number in [0, {S - 1}]"
    if rule:
        which = f"first state of episode {k}" if h is None else f"state after episode {k}, step {h}"
        raise InvalidData(f"The {which} must be {rule}. Got {state!r}.")


def _size(task: Task) -> str:
    return f"S={task.S}, A={task.A}, d={task.d}, H={task.H}"
