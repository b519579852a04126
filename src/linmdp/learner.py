"""One object that learns a task: it plays, plans, predicts, is evaluated, saved and exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from linmdp.agents.base import Agent, prefixed, saved_array, under
from linmdp.agents.merge import agent_of
from linmdp.envs.adapter import GymTask
from linmdp.envs.guard import as_it_is, name_of, task_of
from linmdp.errors import InvalidData, InvalidParameter, LinMDPError, check_int, invalid
from linmdp.export.wasm import export_wasm
from linmdp.export.write import Exported, export_c
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.results.verdict import verdict
from linmdp.runner.course import TIES, Callback, Course
from linmdp.runner.logged import logged_episodes
from linmdp.runner.loop import chosen_by
from linmdp.runner.measured import MOST_EPISODES, build_result, one_blas_thread
from linmdp.runner.offline import OfflineValue, asked_outside, fitted_value
from linmdp.runner.policy import Evaluation, Policy, Predictor, evaluated, settled
from linmdp.runner.random_play import random_returns
from linmdp.runner.registry import AGENTS, ENVS, SB3_AGENTS, construct, make_env, make_learner, with_task
from linmdp.runner.saved import check_sizes
from linmdp.runner.spec import check_no_import, extended_spec, parse_spec, written_spec
from linmdp.types import RunResult, State


class Learner:
    """An agent in an environment, with the methods that users of Stable-Baselines3 expect.

    Every episode has a seed of its own, which follows from `seed` and its number: what is learned is the same in one
    call of `learn` or in several, with evaluations between them or without, and after `save` and `load`. The streams of
    a vector environment begin anew with each call of `learn`, and episodes that it does not finish are not learned.

    Parameters
    ----------
    env : a Gymnasium id, a spec of linmdp, an environment (wrapped or not), or a vector environment
    agent : the name or the spec of an agent, or its class; by default the one that chooses everything itself
    seed : of all randomness
    actions : values of each coordinate of actions that are a Box; by default 5, or as many as make 1,024 in all at most
    history : how many observations the agent sees together, with the actions between them; by default what is seen now
    parameters : of the agent

    Attributes
    ----------
    env : the environment whose observations `predict` takes
    agent : the agent, a `linmdp.Agent`
    """

    def __init__(
        self,
        env: Any,
        agent: str | type[Agent] = "auto",
        *,
        seed: int = 0,
        actions: int | None = None,
        history: int | None = None,
        **parameters: Any,
    ) -> None:
        self.seed = check_int("Learner", "seed", seed, low=0)
        given = {"actions": actions, "history": history}
        self._options = {name: value for name, value in given.items() if value is not None}
        self._made_from = _spec_of(env, self._options) if isinstance(env, str) else None
        self._vector = env if isinstance(env, gymnasium.vector.VectorEnv) else None
        task_env: Any = make_env(self._made_from) if self._made_from else with_task(env, **self._options)
        self._adapter = task_env if task_env is not env and isinstance(task_env, GymTask) else None
        self.env = env if not isinstance(env, str) else task_env.outside if self._adapter else task_env
        self._task_env = task_env
        self.task = task_of(self._task_env)
        self.agent = _agent_of(agent, parameters, self.task)
        if self._vector is not None and self.agent.whole_episodes:
            rule = f"one environment, and not streams of it, for {self.agent.name}: each episode is somebody's"
            invalid("Learner", "env", rule, self._vector)
        if self._made_from:
            self.agent.made_from = {"agent": self._given(), "env": self._made_from}
        self._policy = Policy(self.agent)
        ties = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(TIES,)))
        space = self.env.observation_space if self._vector is None else self._vector.single_observation_space
        self._predictor = Predictor(self._policy, space, self._adapter, ties)
        self._course = Course(self.agent, task_env, self._vector, self.seed)
        self._random_returns = list[float]()

    @property
    def episodes(self) -> int:
        """Episodes that it has played and learned from so far."""
        return len(self.returns)

    @property
    def steps(self) -> int:
        """Their steps."""
        return self._course.steps

    @property
    def returns(self) -> list[float]:
        """What each of them earned."""
        return self._course.returns

    # learning

    def learn(
        self,
        episodes: int | None = None,
        *,
        steps: int | None = None,
        progress: bool = False,
        callback: Callback | None = None,
    ) -> Learner:
        """Learn from so many more episodes, or from whole episodes until that many more steps are played.

        `callback(record)` is called after each episode; if it returns False, learning stops. Returns the learner.
        """
        if (episodes is None) == (steps is None):
            invalid("learn", "episodes", "given, or steps in its place, and not both", episodes)
        if callback is not None and not callable(callback):
            invalid("learn", "callback", "a function of the record of an episode", callback)
        what, unit = ("episodes", episodes) if episodes is not None else ("steps", steps)
        budget = check_int("learn", what, unit, low=0, high=MOST_EPISODES)
        self._course.learn(what, budget, progress, callback)
        return self

    def learn_from(self, dataset: Any) -> Learner:
        """Observe logged transitions, episode by episode as if they had been played, and plan; returns the learner.

        `dataset` is a mapping of arrays, or a pandas frame, with Minari's names (observations, actions, rewards,
        terminations, truncations, next_observations), a Minari dataset, or the folder of one, as `linmdp record`
        writes it. Observations and actions are those of `env`; an action of a Box counts as the nearest of the grid.
        """
        self._course.observe([row.step for row in e] for e in logged_episodes(dataset, self.task, self._adapter))
        return self

    def evaluate_offline(self, policy: Any, dataset: Any) -> OfflineValue:
        """What `policy` would earn, from logged transitions of any other policy alone; nothing is played or learned.

        `policy` is something with `predict` (this learner, an agent of Stable-Baselines3), or a function from
        observations to actions; `dataset` as in `learn_from`. It is evaluated on the features of the task.
        """
        with one_blas_thread():
            self.task.features  # noqa: B018 (which may take random play, before anything is read)
            episodes = list(logged_episodes(dataset, self.task, self._adapter))
            if policy is self:
                return fitted_value(self.task, episodes, self._greedy, by_step=True)
            return fitted_value(self.task, episodes, asked_outside(policy, self._adapter))

    def _greedy(self, h: int, state: State, observation: Any) -> int:
        return settled(self._policy, h, state)

    def take(self, agent: Agent) -> Learner:
        """Go on with what another agent of the same kind knows, such as a merged one; random numbers stay its own."""
        self.agent.load_state_dict(agent_of("take", agent).state_dict() | {"rng": self.agent.state_dict()["rng"]})
        self._course.anew()
        return self

    # what came of it

    @property
    def verdict(self) -> str:
        """Whether it does better than random play, in one line."""
        if not self.returns:
            return "nothing learned yet: call learn()"
        if not self._random_returns:
            with self._course.aside():
                self._random_returns = random_returns(self._task_env)
        with self._course.aside():
            return verdict([self._result()])

    @property
    def spec(self) -> str:
        """The agent and its parameters, as `linmdp.make_agent` and the command line take them."""
        given = getattr(self.agent, "spec", None)
        if isinstance(given, str):
            return given
        return self._given()

    def _given(self) -> str:
        """The spec of the agent as it was given: its name, and parameters that are not the default ones."""
        usual, given = self.agent.parameters(), self.agent.get_params()
        changed = {name: value for name, value in given.items() if value != usual[name].default}
        return written_spec(self.agent.name, changed)

    @property
    def reasons(self) -> list[str]:
        """Why it is set up as it is: a line for each decision."""
        with as_it_is(self._task_env):
            of_env = getattr(self._task_env.unwrapped, "chosen", {})
        chosen = getattr(self.agent, "reasons", None)
        if chosen is None:
            chosen = [f"{name}={value}" for name, value in getattr(self.agent, "chosen", {}).items()]
        return [*chosen, *(f"{name}={value}" for name, value in of_env.items())]

    def _result(self) -> RunResult:
        """What was learned so far, as the result of a run."""
        return build_result(
            env=self._made_from or name_of(self._task_env),
            agent=self.agent.name,
            params=self.agent.get_params(),
            chosen=chosen_by(self._task_env, self.agent),
            seed=self.seed,
            eval_every=1,
            episodes=self.episodes,
            gaps=None,
            rewards=np.array(self.returns),
            peak_bytes=self._course.peak,
            planning_bytes=self._course.planning,
            feature_bytes=self.task.features.nbytes if self.task.knows("features") else 0,
            clock=self._course.clock,
            updates=self.agent.updates,
            resets=self.agent.resets,
            saturated=0.0,
            tied=0.0,
            drift=self.agent.drift(),
            possible=self.agent.more_possible(),
            random_returns=self._random_returns,
            most_return=getattr(self._task_env.unwrapped, "most_return", None),
        )

    def __repr__(self) -> str:
        where = self._made_from or name_of(self._task_env)
        return f"Learner({where}, {self._given()}, seed={self.seed}): {self.episodes:,} episodes, {self.steps:,} steps"

    # acting

    def predict(
        self,
        observation: Any,
        state: None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[Any, None]:
        """The action of the greedy policy for an observation of `env`, and no state, as in Stable-Baselines3.

        Of a vector environment, or wherever n observations come together, n actions. `deterministic=False` draws among
        actions that are equally good. Calls are counted, as a policy may depend on the step: pass `episode_start=True`
        with the first observation of an episode, if you can. After H calls it goes on as at the first, without a limit.
        `action_masks` say which actions may be taken, as `info["action_mask"]` does: of n observations n of them.
        """
        return self._predictor(observation, episode_start, deterministic, action_masks), None

    def evaluate(self, episodes: int = 20) -> Evaluation:
        """What the greedy policy earns in so many episodes, always the same ones; nothing is learned."""
        n = check_int("evaluate", "episodes", episodes, low=1, high=MOST_EPISODES)
        with one_blas_thread(), self._course.aside():
            return evaluated(self._course.guard, self._policy, map(self._course.evaluation_seed, range(n)))

    # files

    def save(self, path: str | Path) -> None:
        """Write the learner to a file, whole or not at all; `Learner.load` goes on from there, bit for bit."""
        words: dict[str, Any] = {
            "env": self._made_from,
            "agent": self._given(),
            "seed": self.seed,
            "episodes": self.episodes,
        }
        words |= {"options": {} if self._made_from else self._options}
        state = self._course.state()
        learned = self.agent.state_dict()
        self.agent._check_complete(learned)
        arrays = prefixed("agent", learned) | {"returns": np.array(self.returns)}
        meta = {"agent": self.agent._identity(), "run": words, "state": state}
        write_atomic(Path(path), packed("learner", meta, arrays))

    @classmethod
    def load(cls, path: str | Path, env: Any = None) -> Learner:
        """The learner in a file; `env` must be given where it was made with an environment, and not with a name."""
        file = read_tensors(path, "learner", signed=True)
        words, state = file.meta.get("run"), file.meta.get("state")
        if not isinstance(words, Mapping) or not isinstance(state, Mapping):
            raise InvalidData(f"The learner file '{path}' lacks a part: its metadata must name the run and its state.")
        spec = words.get("env")
        if env is None and not isinstance(spec, str):
            raise InvalidParameter(f"The 'env' of the learner in '{path}' must be given: the file does not name it.")
        if env is None:
            check_no_import(str(spec))
        try:
            check_sizes(file.arrays)
            options = words["options"] if env is not None else {}
            found = cls(spec if env is None else env, str(words["agent"]), seed=words["seed"], **options)
            found.agent.load_state_dict(under("agent", file.arrays))
            found._course.restore(state, saved_array(file.arrays, "returns"))
        except (LinMDPError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidData(f"The learner in '{path}' cannot be used here. {error}") from error
        return found

    def export_c(
        self, folder: str | Path, *, real: str = "float", only: str | None = None, steps: int = 1000
    ) -> Exported:
        """Write it as C99 with static memory, as `linmdp export --c` does: learner and policy, or the policy alone."""
        how: dict[str, Any] = {"only": only, "real": real, "steps": steps, "run": repr(self)}
        with self._course.aside():
            return export_c(self.agent, self._task_env, Path(folder), **how)

    def export_wasm(self, folder: str | Path, *, real: str = "float", steps: int = 1000) -> Exported:
        """Write a learner of its kind as WebAssembly with a loader, as `linmdp export --wasm` does."""
        with self._course.aside():
            return export_wasm(self.agent, self._task_env, Path(folder), real=real, steps=steps, run=repr(self))


def _spec_of(env: str, options: Mapping[str, Any]) -> str:
    """The spec of what a user names, with options: a Gymnasium id may stand for itself."""
    name = parse_spec(env)[0]
    if name not in ENVS and name in gymnasium.registry:
        env = f"gym:{env}"
    return extended_spec(env, options)


def _agent_of(agent: Any, parameters: Mapping[str, Any], task: Any) -> Agent:
    """The agent of a spec or of a class, with further parameters."""
    if isinstance(agent, type) and issubclass(agent, Agent):
        return construct(agent, parameters, task)
    name, given = parse_spec(agent)
    if name in SB3_AGENTS or name == "optimal":
        invalid("Learner", "agent", "one that learns from its own steps", agent)
    if name not in AGENTS or not parameters:
        return make_learner(agent, task)
    return construct(AGENTS[name], {**given, **parameters}, task)
