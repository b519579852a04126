"""Optimistic least-squares value iteration, written once: what all LSVI agents share.

An LSVI agent is four independent choices: a schedule (when to plan, store and forget), an exploration (how Q is made
optimistic), a storage (what is kept of the past) and a horizon (what the steps share). A variant overrides
`make_schedule` or `make_exploration`, or changes a default, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from linmdp.agents.auto_beta import AutoBeta
from linmdp.agents.backend import NUMPY, Backend, imagined
from linmdp.agents.base import Agent, StateDict, check_step, load_array
from linmdp.agents.budget import OBJECTS, STATE_BYTES, Choice, chosen_within
from linmdp.agents.choice import LARGEST_BONUS, USUAL_LAM, StorageChoice, check_common
from linmdp.agents.exploration.base import Exploration
from linmdp.agents.exploration.bonus import Bonus, Inflated
from linmdp.agents.exploration.evidence import FIRST_LAM
from linmdp.agents.held import solvable
from linmdp.agents.horizon import Horizon
from linmdp.agents.memory.base import Parts, Storage
from linmdp.agents.planner import LockstepSetting, Planner
from linmdp.agents.ridge import DELAY
from linmdp.agents.schedules.base import Always, Schedule, Step
from linmdp.agents.widths import confidence_width
from linmdp.errors import InvalidData, InvalidParameter, check_int, invalid, without_warnings
from linmdp.features.tabular import phi_of, trusted
from linmdp.types import Array, BoolArray, IntArray, State, Task

SLACK = 0.01
"""An episode is as good as any can be if it falls short of the best by this share of the range, or less."""

FOREVER = 1 << 40
"""Episodes, where nobody says how many there will be."""


class LSVIAgent(Agent):
    """The base of all LSVI agents: it plays argmax_a Q_h(s, a) of an upper bound Q.

    Attributes
    ----------
    horizon, schedule : see there
    auto : lam and beta are "auto", and follow from the data (`Evidence`)
    beta_value, lam_value : beta and lam as numbers; with "auto" the current ones (beta: the mean over the steps)
    chosen_within : the parameters that `max_bytes` has chosen, in place of those given
    """

    schedule_type: ClassVar[type[Schedule]] = Always
    """The kind of schedule, where it reads features."""
    merges_for_bytes: ClassVar[bool] = False  # whether `max_bytes` may choose centres, where nothing exact fits
    own_M: ClassVar[bool] = False  # whether M is the most samples that the schedule stores, and not a storage's
    follows_evidence: ClassVar[bool] = True  # whether `Evidence` chooses beta and lam, if both are "auto"
    own_weights: ClassVar[bool] = False  # whether its exploration holds weights beside those of the planner
    bounded_errors: ClassVar[bool] = False  # whether its regressions err, by a bound that `inflate` reads
    own_storage: ClassVar[bool] = False  # whether `make_storage` makes one of its own
    _arrays: ClassVar[tuple[str, ...]] = ("_plan", "_store", "_tie_draws")
    _members: ClassVar[tuple[str, ...]] = ("_auto_beta", "schedule", "_planner")
    _derived: ClassVar[tuple[str, ...]] = ()  # the caps are those of the exploration

    def __init__(
        self,
        task: Task,
        *,
        beta: float | str = "auto",
        lam: float | str = USUAL_LAM,
        cap: str = "remaining",
        ties: str = "random",
        storage: str = "auto",
        memory: str | None = None,
        dtype: str = "float64",
        episodes: int | None = None,
        stationary: bool | str = "auto",
        discount: float | str = "auto",
        lookahead: int | str = "auto",
        max_bytes: int | str | None = None,
        M: int | None = None,
        inflate: float = 0.0,
    ) -> None:
        super().__init__(task)
        self.beta, self.lam, self.cap, self.ties, self.storage, self.memory = beta, lam, cap, ties, storage, memory
        self.dtype, self.episodes, self.stationary, self.discount = dtype, episodes, stationary, discount
        self.lookahead, self.inflate, self.max_bytes, self.M = lookahead, inflate, max_bytes, M
        self.auto = self.follows_evidence and lam == beta == "auto" and cap == "remaining"
        check_common(self)
        self.lam_value = FIRST_LAM if self.auto else USUAL_LAM if lam == "auto" else float(lam)
        self._K = None if episodes is None else check_int(self.name, "episodes", episodes, low=1)
        self._features, self.chosen_within = trusted(task.features), Choice()
        self._storing = StorageChoice(self)
        self._auto_beta: AutoBeta | None = None
        self._set_horizon(self._storing.make_horizon())
        self._storing.check()
        if beta == "auto" and not self.auto:
            scale = max(max(abs(r) for r in task.reward_range), 1e-12)
            self._auto_beta = AutoBeta(self.horizon, task.d, lam=self.lam_value, caps=self.caps, scale=scale)
            self.beta_value = self._auto_beta.beta
        elif beta == "auto":
            self.beta_value = 0.0
        else:
            self.beta_value = confidence_width(self.name, beta, d=task.d, H=task.H, K=self._K)
        if not self.beta_value * self.beta_value / self.lam_value < LARGEST_BONUS:
            invalid(self.name, "beta", f"such that beta^2 / lam is below {LARGEST_BONUS:g}", beta)
        self._exploration = self.make_exploration(self.beta_value)
        if inflate and (not self._exploration.inflate or self.horizon.discounted):
            invalid(self.name, "inflate", "0 without a bonus for each step", inflate)
        self._plan, self._store = (np.zeros(self.horizon.groups, dtype=np.bool_) for _ in range(2))
        self._tie_draws = np.zeros(task.H)
        try:
            self.chosen_within = self._choose()
        except InvalidParameter:
            if not self._storing.could_discount:
                raise
            self._set_horizon(self._storing.make_horizon(tight=True))
            self.chosen_within = self._choose()
        self._make_parts()
        self._next = task.H  # the step to be observed next; H between episodes
        self._earned = 0.0  # the sum of rewards in this episode
        self._over = False  # whether the last step observed ended the episode for good

    @property
    def chosen(self) -> Choice:
        """What the agent chose by itself for parameters that were left to it; lam and beta are those of now."""
        return self._storing.chosen() | self.chosen_within

    # what a variant may override

    def usual_storage(self, *, table: bool, unit: bool) -> str:
        """The storage where it is "auto": exact, and of all exact ones that which takes least memory."""
        if self.auto and unit:
            return "sparse"
        if table:
            return "counts"
        return "sparse" if unit else "merged" if self.auto else "features"

    def make_schedule(self) -> Schedule:
        """When to plan, store and forget."""
        return Always(self.horizon.groups)

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Exploration:
        """How Q is made optimistic; beta is a number or, for B runs in lockstep, (H, B)."""
        lows = self.horizon.lows(self.task.reward_range[0])
        if self.auto:
            return self._storing.make_automatic(np.shape(beta)[1:], backend)
        if self.inflate:
            return Inflated(self.horizon, self.caps, beta, lows, self.inflate)
        return Bonus(self.horizon, self.caps, beta, backend)

    def make_storage(self, parts: Parts) -> Storage:
        """What is kept of the past; an agent with another one says so (`own_storage`)."""
        return self._storing.make(parts)

    def make_ridge(self) -> Any:
        """Regressions in another form than `Ridge`; None for that."""
        return None if self.own_storage else self._storing.make_ridge()

    def _choices(self) -> Iterator[Choice]:
        """What `max_bytes` may choose, from the best to the smallest."""
        return self._storing.choices()

    def _choose(self) -> Choice:
        """What there is to choose within `max_bytes`."""
        return chosen_within(self.name, self.max_bytes, self._choices(), self._bytes_of, self._storing.smaller)

    def _bytes_of(self, choice: Choice) -> int:
        """The most bytes at once, with that choice."""
        self.chosen_within = choice
        with imagined(), without_warnings():
            self._make_parts()
        return self.most_bytes(None)

    def _known_K(self) -> int:
        """K, which some choices cannot be made without."""
        if self._K is None:
            invalid(self.name, "episodes", "given with max_bytes", None)
        return self._K

    @property
    def _state_bytes(self) -> int:
        """Bytes of a state: where it is not finite what the task declares, or a default."""
        usual = STATE_BYTES if self.task.state_bytes is None else self.task.state_bytes
        return usual if self.task.S is None else 8

    def _set_horizon(self, horizon: Horizon) -> None:
        self.horizon = horizon
        planned = horizon.caps(self.cap, self.task.reward_range[1])
        self.caps: Array = planned[[horizon.planned(h) for h in range(self.task.H)]]

    def _make_parts(self) -> None:
        """The exploration, the schedule and the planner, as they were chosen."""
        self._exploration = self.make_exploration(self.beta_value)
        self.schedule = self.make_schedule()
        self._planner = Planner(
            self.horizon,
            self._storing.weights,
            lam=self.lam_value,
            exploration=self._exploration,
            make_storage=self.make_storage,
            delay=DELAY if self.own_storage else self._storing.delay,
            ridge=self.make_ridge(),
        )
        self.schedule.bind(self._planner.ridge)

    def samples_held(self, episodes: int) -> int:
        return self.schedule.most_samples(episodes) * self._planner.storage.keeps_samples

    def plannings(self, episodes: int) -> int:
        return self.schedule.plannings(episodes)

    def bytes_after(self, episodes: int) -> int:
        storage = self._planner.storage
        return self.nbytes - storage.nbytes + storage.bytes_after(self._most_held(episodes))

    def _most_held(self, episodes: int) -> int:
        """The most samples of a regression; names of states are not forgotten."""
        each = self.horizon.samples_per_episode
        return episodes * each if self._storing.unbounded else self.schedule.most_held(episodes, each)

    def most_bytes(self, episodes: int | None) -> int:
        """Bytes at once within that many episodes, planning included; None: within as many as are known to come."""
        K = episodes or self._K or FOREVER
        if self._most_held(K) >= FOREVER and not self._storing.bounded:
            self._known_K()
        return self.bytes_after(K) + self.working_bytes(self._most_held(K)) + OBJECTS

    # an episode

    def begin_episode(self) -> None:
        """Lines 3 to 11 of Algorithm 1, where and when the schedule says so."""
        self._next, self._earned = 0, 0.0
        if not self.policy_version:
            self._exploration.seed([self.rng])
            self.schedule.seed(self.rng)
        self._tie_draws = self.rng.random(self.task.H)
        reset, self._plan[:], self._store[:] = self.schedule.begin_episode()
        if reset:
            self.resets += 1
            self._planner.drop_samples()
            self._planner.recall(self.schedule.recalled(), self._features)
        if self.schedule.eager and self._auto_beta and self._auto_beta.beaten:
            self._plan[:] = True
        with solvable(self.name):
            if self._plan.any() or self._store.any():
                self._planner.prepare(self._plan, self._store, self._plan)
            if self._plan.any():
                self._do_plan()

    def _do_plan(self) -> None:
        whole = bool(self._plan.all())
        if whole and self._auto_beta:  # a Q that is not planned again keeps the width that it was planned with
            self.beta_value = self._auto_beta.choose()
            self._planner.change_beta(self.beta_value)
        self._planner.plan(self._plan, whole=whole)
        self.note_choice(self._planner)
        if whole:
            self.schedule.planned()
        self.updates += self.task.H if self.horizon.shared else int(self._plan.sum())
        self.policy_version += 1
        if not np.isfinite(self._planner.w.sum()):  # one sum finds NaN and infinity at little cost
            raise InvalidData(
                f"The weights of {self.name} are not finite after planning: beta, lam or the features are too extreme."
            )
        if self._auto_beta and self._auto_beta.stale:
            self._auto_beta.renew(self._planner.greedy())

    def note_choice(self, planner: Planner, i: Any = ...) -> None:
        """Let `chosen` be what a planner (for run i in lockstep) has chosen."""
        if self.auto:
            self.beta_value, self.lam_value = float(planner.exploration.beta[:, i].mean()), float(planner.ridge.lam[i])

    def act(self, h: int, state: State) -> int:
        """argmax_a Q_h(state, a) (line 15); a tie goes to the first, or to any of them with the same chance."""
        tied = self._tied(h, state)
        if len(tied) == 1 or self.ties == "first":
            return int(tied[0])
        return int(tied[int(self._tie_draws[h] * len(tied))])

    def _tied(self, h: int, state: State) -> IntArray:
        """The numbers of the actions that share the largest Q, in order."""
        tied: IntArray = self._planner.storage.best_actions(self.horizon.acting(h), state).nonzero()[0]
        if len(tied) == 0:
            raise InvalidData(f"Q of {self.name} at step {h} is NaN: beta, lam or the features are too extreme.")
        return tied

    def observe(self, h: int, state: State, action: int, reward: float, next_state: State, terminated: bool) -> None:
        self._next = check_step(self.task, self._next, h, action, reward)
        if self.chosen_within and self.task.S is None and np.asarray(state).nbytes > self._state_bytes:
            raise InvalidData(
                f"With 'max_bytes' a state must take {self._state_bytes} bytes at most, for which the choice was made: "
                f"give the task its 'state_bytes'. Got {np.asarray(state).nbytes}."
            )
        self._over, self._earned = terminated, self._earned + reward
        phi, g = None, self.horizon.group(h)
        if not self._planner.storage.compact or self.schedule.reads_features or self._auto_beta:
            phi = phi_of(self._features, state, action)
        if self._auto_beta:
            self._auto_beta.see(self.horizon.planned(h), self._features.phi(state), action, reward)
        self._planner.storage.played(self.horizon.acting(h), state, action)
        self.schedule.watch(g, phi)
        step = Step(h, state, action, reward, next_state, terminated)
        self.schedule.saw(g, step)
        if self._store[g] and self.schedule.admits(g, phi):
            self._planner.add_step(step, phi)

    def end_episode(self) -> None:
        if self._auto_beta and self._next > 0:
            self._auto_beta.end(over=self._over or self._next == self.task.H)
        if self.auto and self.task.S is None:
            low, high = self.task.reward_range
            best, span = self.task.H * max(high, 0.0), self.task.H * (max(high, 0.0) - min(low, 0.0))
            self.at_best = best - self._earned <= SLACK * span
        self._next = self.task.H
        self.schedule.end_episode(self._earned)

    # what it believes

    def q_values(self, h: int, state: State) -> Array:
        """The optimistic value of every action, (A,)."""
        q: Array = self._planner.storage.q_values(self.horizon.acting(h), state)
        if self._exploration.adaptive:
            return np.asarray(q + self.caps[h])
        return q if self.horizon.stride == 1 else np.asarray(np.minimum(q, self.caps[h]))

    def policy(self, h: int) -> Array | IntArray:
        """(S,) actions or, where random ties are left, (S, A) probabilities."""
        best: BoolArray = self._planner.storage.best_table(self.horizon.acting(h))
        if self.ties == "first" or np.count_nonzero(best) == best.shape[-1]:
            actions: IntArray = best.argmax(axis=0)
            return actions
        probabilities: Array = (best / best.sum(axis=0)).T
        return probabilities

    def drift(self) -> float:
        """max |Lambda Lambda^-1 - I| over all regressions."""
        return float(self._planner.drift())

    def certificate(self) -> float | None:
        found = self._planner.storage.certificate
        return None if found is None else float(found)

    def diagnostics(self) -> dict[str, float]:
        return self.schedule.diagnostics() | self._planner.storage.diagnostics()

    def summed(self) -> list[Array]:
        plain = type(self._exploration) is Bonus and type(self.schedule) is Always
        if not plain or self.lockstep() is None:
            return []
        storage: Any = self._planner.storage
        ridge = self._planner.ridge
        ridge.defer(None, np.ones_like(ridge.behind))
        ridge.settle()
        return [ridge.Lambda, ridge.u, storage.N, storage.seen]

    def log_determinants(self) -> Array:
        return np.asarray(np.linalg.slogdet(self.summed()[0])[1])

    # lockstep and files

    def lockstep(self) -> LockstepSetting | None:
        """Counts, and a beta that is fixed or from the evidence, can share their products."""
        fits = vars(type(self)).get("in_lockstep", False)  # of this class, and of no base
        fits &= self._storing.name == "counts" and self.horizon.H == self.task.H
        fits &= not self._auto_beta and not self.max_bytes
        if not (fits and self._exploration.batched and self.schedule.batched):
            return None
        return LockstepSetting(self, self.beta_value, self.lam_value, self.ties, self.make_schedule())

    def become(
        self, batched: Planner, i: int, schedule: Schedule, rng: np.random.Generator, counters: Sequence[int]
    ) -> None:
        """Become the agent of run i in lockstep, after an episode; see `state_dict` for the counters."""
        self._planner.take_run(batched, i)
        self.note_choice(batched, i)
        self.schedule, self.rng = schedule, rng
        self.policy_version, self.updates, self.resets = map(int, counters)

    def state_dict(self) -> StateDict:
        return super().state_dict() | ({"beta": np.array(self.beta_value)} if self._auto_beta else {})

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        super()._load(state)
        if self._auto_beta:
            beta = np.zeros(())
            load_array(beta, state, "beta")
            self.beta_value = float(beta)
            self._exploration.change_beta(self.beta_value)
        self.note_choice(self._planner)
