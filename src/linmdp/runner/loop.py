"""The agent-environment loop, exact regret beside it, and the same measurements around a loop of another library."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linmdp.agents.base import Agent
from linmdp.agents.sb3 import SB3Agent
from linmdp.envs.guard import Guard, as_it_is, name_of, task_of
from linmdp.envs.linear import LinearMDPEnv
from linmdp.envs.planning import policy_value
from linmdp.envs.raw import RawEpisodes, Watch
from linmdp.errors import InvalidData, InvalidParameter, LinMDPError, LinMDPWarning, check_int
from linmdp.results.summary import most
from linmdp.runner.measured import (
    MOST_EPISODES,
    CurveLog,
    Probe,
    RunStopped,
    Stopwatch,
    build_result,
    one_blas_thread,
    probe_from,
)
from linmdp.runner.progress import Advance, Meter, progress_bar, recent
from linmdp.runner.random_play import judged
from linmdp.runner.registry import make_env
from linmdp.runner.saved import Checkpoints
from linmdp.types import Array, EpisodeRecord, RunResult, State, Task, Transition, cost_points


def run(
    env: Any,
    agent: Agent,
    *,
    episodes: int,
    seed: int = 0,
    progress: bool | Advance = False,
    eval_every: int = 1,
    on_episode: OnEpisode | None = None,
    name: str | None = None,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    verdict: bool = True,
) -> RunResult:
    """Let `agent` learn in `env` (whatever `make_env` takes) for so many episodes.

    Regret is exact: V*(s_1) - V^pi(s_1) of the policy of each episode, by planning in the model. It is computed when
    the policy has changed; with `eval_every` n only in every n-th episode, and the value is held in between.
    One BLAS thread is used, so that the numbers do not depend on the machine's load or on the number of processes.

    With `checkpoint`, a folder, the run is saved there after every `every` episodes (default: a twentieth of them), and
    the same call resumes it bit for bit. `on_episode` is called with the episodes that are played now. If the
    environment fails, `RunStopped` says where; it carries the `result` of the episodes before, and what was learned is
    saved in the folder.

    The `verdict` of the result compares what it earned at the end with random play: the exact value where it is known,
    else a few episodes, played once for each environment when a run in it is over. `verdict=False` leaves it out, and
    the environment is played no more than the run needs: `interactions` of the result are all its steps.
    """
    env = make_env(env)
    task_of(env)
    with as_it_is(env):
        state = RunState(env, agent, episodes=episodes, seed=seed, eval_every=eval_every, name=name)
        keeper = None if checkpoint is None else Checkpoints(Path(checkpoint), every, state)
        with one_blas_thread(), progress_bar("episodes", state.episodes, progress) as advance:
            if isinstance(agent, SB3Agent):
                try:
                    play_external(state, agent, advance, on_episode)
                except InvalidData as error:
                    raise _stopped(error, state, None) from error
            else:
                _play_all(state, keeper, advance, on_episode)
        for words in state.findings():
            warnings.warn(words, LinMDPWarning, stacklevel=2)
        found = state.result()
    return judged(found, env, agent) if verdict else found


def _play_all(state: RunState, keeper: Checkpoints | None, advance: Meter, on_episode: OnEpisode | None) -> None:
    """Every episode that is left, with checkpoints on the way."""
    if keeper:
        advance(keeper.resume())
    with state.clock:
        while state.k < state.episodes:
            try:
                state.episode()
            except LinMDPError as error:
                raise _stopped(error, state, keeper) from error
            if on_episode or keeper:
                with state.clock.paused():
                    if on_episode:
                        on_episode(state.record())
                    if keeper:
                        keeper.episode_done()
            advance(1, state.recent)


class RunState:
    """A run in progress: who plays where, how far it is, and what was measured so far.

    Attributes
    ----------
    k, steps : episodes that are finished, and their steps
    next_seed : with what the environment is reset next; None where its own randomness goes on
    peak, planning : the most bytes that the agent has held, and that planning has taken on top, where that is known
    log : what they earned and lost
    notes : what the result has to tell beside its numbers
    """

    def __init__(self, env: Any, agent: Agent, *, episodes: int, seed: int, eval_every: int, name: str | None) -> None:
        self.episodes = check_int("run", "episodes", episodes, low=1, high=MOST_EPISODES)
        self.eval_every = check_int("run", "eval_every", eval_every, low=1)
        self.seed = check_int("run", "seed", seed, low=0)
        if not isinstance(agent, Agent):
            raise InvalidParameter(f"The agent must be a linmdp.Agent: use linmdp.make_agent. Got {agent!r:.80}.")
        self.env, self.agent, self.guard = env, agent, Guard(env)
        task = self.guard.task
        if agent.task is not task and _size(agent.task) != _size(task):
            got = _size(agent.task)
            raise InvalidParameter(f"The agent must be made for this environment's task. Got one for {got}.")
        self.name = name or name_of(env)
        env_seed, agent_seed = np.random.SeedSequence(self.seed).spawn(2)
        agent.rng = np.random.default_rng(agent_seed)
        self.next_seed: int | None = int(env_seed.generate_state(1)[0])
        self.meter, self.probe = RegretMeter(env.unwrapped, agent, self.eval_every), Probe(agent)
        self.log = CurveLog(self.episodes)
        self.k, self.steps, self.peak, self.before = 0, 0, agent.nbytes, counters(agent)
        self.planning = agent.planning_bytes
        self.feature_bytes = task.features.nbytes if task.knows("features") else 0
        self.clock, self.notes = Stopwatch(), list[str]()
        self.costs, self._points = list[list[float]](), set(cost_points(self.episodes))
        self.certified = [agent.certificate() or 0.0] * 2  # at the start, and before the last episode
        self.certificates = list[float]()

    def episode(self) -> None:
        """Plan, play and note one episode."""
        k, agent, meter = self.k, self.agent, self.meter
        if k == probe_from(self.episodes):
            self.probe.begin()
        self.certified[1] = agent.certificate() or 0.0
        agent.begin_episode()
        if meter.due(k):
            with self.clock.paused():
                meter.evaluate()
        state = self.guard.reset(k, self.next_seed, meter.reset_options())
        self.next_seed = None
        gap = meter.gap(state)
        watch = self.probe if k >= probe_from(self.episodes) else None
        reward = 0.0
        for step in play(self.guard, agent, state, k, watch):
            reward += step.reward
            self.steps += 1
        self.finish_episode(self.guard.original(reward), gap, self.clock.cpu_so_far)

    def finish_episode(self, reward: float, gap: float, cpu: float) -> None:
        """Note what one more episode earned and lost, and what the run has cost after it."""
        self.log.add(reward, gap)
        self.peak, self.planning = max(self.peak, self.agent.nbytes), most((self.planning, self.agent.planning_bytes))
        self.k += 1
        if self.k in self._points:
            self.costs.append([self.k, self.peak, cpu, self.steps])
            if (certificate := self.agent.certificate()) is not None:
                self.certificates.append(certificate - self.certified[0])

    def record(self) -> EpisodeRecord:
        """The last episode that was played."""
        certificate, (reward, gap) = self.agent.certificate(), self.log.recent[-1]
        last = None if certificate is None else certificate - self.certified[1]
        return EpisodeRecord(
            self.k - 1, float(reward), float(gap) if self.meter.known else None, self.agent.nbytes, last
        )

    def recent(self) -> str:
        """How the last episodes went, for a progress bar."""
        rewards, gaps = self.log.last()
        return recent(rewards, gaps if self.meter.known else None)

    def findings(self) -> list[str]:
        """What a user should hear of it, once all episodes are played."""
        notes = list(getattr(self.env.unwrapped, "notes", ()))
        return notes + (self.probe.findings(self.episodes) if self.k == self.episodes else [])

    def result(self) -> RunResult:
        """The episodes so far."""
        agent, k, (rewards, gaps) = self.agent, self.k, self.log.curves()
        updates, resets, switches = (now - before for now, before in zip(counters(agent), self.before, strict=True))
        return build_result(
            env=self.name,
            agent=agent.name,
            params=agent.get_params(),
            chosen=chosen_by(self.env, agent),
            seed=self.seed,
            eval_every=self.eval_every,
            episodes=k,
            gaps=gaps if self.meter.known else None,
            rewards=rewards,
            peak_bytes=self.peak,
            planning_bytes=self.planning,
            feature_bytes=self.feature_bytes,
            clock=self.clock,
            updates=updates,
            resets=resets,
            switches=switches,
            saturated=self.probe.saturated,
            tied=self.probe.tied,
            drift=agent.drift(),
            possible=agent.more_possible(),
            certificate=None if (sum_ := agent.certificate()) is None else (sum_ - self.certified[0]) / k,
            certificates=self.certificates,
            diagnostics=agent.diagnostics(),
            warnings=[*self.notes, *self.findings()],
            interactions=int(getattr(self.env.unwrapped, "interactions", 0)) + self.steps,
            costs=self.costs,
        )


def chosen_by(env: Any, agent: Agent) -> dict[str, Any]:
    """What the environment and the agent chose by themselves."""
    return {**getattr(env.unwrapped, "chosen", {}), **getattr(agent, "chosen", {})}


def counters(agent: Agent) -> tuple[int, int, int]:
    """Regressions solved, resets, and changes of the policy, since the agent was made."""
    return agent.updates, agent.resets, agent.policy_version


def play(guard: Guard, agent: Agent, state: Any, k: int, probe: Probe | None = None) -> Iterator[Transition]:
    """Episode k, which has begun in `state`, step by step, with its end; it may end early."""
    yield from steps_of(guard, agent, state, k, probe)
    agent.end_episode()


def steps_of(guard: Guard, agent: Agent, state: Any, k: int, probe: Probe | None = None) -> Iterator[Transition]:
    """The same without its end."""
    for h in range(guard.task.H):
        action = agent.act_within(h, state, guard.mask)
        if probe:
            probe.count(h, state, action)
        next_state, reward, terminated, truncated = guard.step(k, h, action)
        step = Transition(h, state, action, reward, next_state, terminated)
        agent.observe_within(step, guard.mask)
        yield step
        if terminated or truncated:
            return
        state = next_state


class RegretMeter:
    """V* - V^pi of the current policy, where the model is known; a drifting one is that of the episode."""

    def __init__(self, env: Any, agent: Agent, eval_every: int) -> None:
        self.model: Any = getattr(env, "model", None)
        self.known = self.model is not None
        self._env, self._agent, self._every = env, agent, eval_every
        self.version: int | None = None
        """That of the policy that was evaluated last."""
        self._optimal: Array = env.optimum.V[0] if self.known else np.zeros(0)
        self.gaps: Array = np.zeros_like(self._optimal)
        """V* - V^pi of that policy, (S,)."""

    def due(self, k: int) -> bool:
        """Whether the policy of episode k is to be evaluated: it is its turn, and it or the model is another one."""
        if not self.known or k % self._every:
            return False
        if isinstance(self._env, LinearMDPEnv) and self.model is not (model := self._env.model_of(k)):
            self.model, self._optimal, self.version = model, self._env.optimum_of(k).V[0], None
        return self.version != self._agent.policy_version

    def evaluate(self) -> None:
        """Evaluate the current policy."""
        self.gaps = self._optimal - policy_value(self.model, self._agent.policy)[0]
        self.version = self._agent.policy_version

    def gap(self, state: Any) -> float:
        """V*(state) - V^pi(state); 0 where the model is not known."""
        return float(self.gaps[state]) if self.known else 0.0

    def reset_options(self) -> dict[str, Any] | None:
        """The adversary's move: the start where the policy loses most."""
        if self.known and self.model.start == "adversarial":
            return {"state": int(self.gaps.argmax())}
        return None


def _stopped(error: LinMDPError, state: RunState, keeper: Checkpoints | None) -> RunStopped:
    """What stopped the run, with the episodes before it, and where what was learned is saved."""
    words = str(error) + (f" {keeper.save_stopped()}" if keeper else "")
    return RunStopped(words, state.result() if state.k else None)


def _size(task: Task) -> str:
    known = [name for name in ("S", "A", "d", "H") if task.knows(name)]
    return ", ".join(f"{name}={getattr(task, name)}" for name in known)


OnEpisode = Callable[[EpisodeRecord], None]


def play_external(state: RunState, agent: SB3Agent, advance: Meter, on_episode: OnEpisode | None) -> None:
    """All episodes of a run, in the library's own loop. Each run starts anew, from raw observations."""
    assert state.next_seed is not None
    raw = RawEpisodes(state.env, state.next_seed, Measurements(state, advance, on_episode))
    agent.policy_version = agent.updates = agent.resets = 0
    state.before, state.peak, state.feature_bytes = (0, 0, 0), 0, 0
    agent.learn(raw, episodes=state.episodes, clock=state.clock)
    state.peak = max(state.peak, agent.nbytes)


class Measurements(Watch):
    """Rewards, regret and bytes, episode by episode.

    The library also begins the episode after the last one, and does not play it.
    """

    def __init__(self, state: RunState, advance: Meter, on_episode: OnEpisode | None) -> None:
        self._state, self._advance, self._on_episode = state, advance, on_episode
        self._earned = self._gap = 0.0

    def options(self, k: int) -> dict[str, Any] | None:
        """Finish the episode before, and evaluate the policy where it is due."""
        state, cpu = self._state, self._state.clock.cpu_so_far
        with state.clock.paused():
            if k > 0:
                state.finish_episode(state.guard.original(self._earned), self._gap, cpu)
                if self._on_episode:
                    self._on_episode(state.record())
                self._advance(1, state.recent)
            if k < state.episodes:
                state.agent.policy_version = k + 1
                if state.meter.due(k):
                    state.meter.evaluate()
        return state.meter.reset_options()

    def started(self, k: int, state: State) -> None:
        """Note what the current policy loses from there."""
        if k < self._state.episodes:
            self._earned, self._gap = 0.0, self._state.meter.gap(state)

    def paid(self, reward: float) -> None:
        """Add up the rewards, and the steps."""
        self._state.steps += 1
        self._earned += reward
