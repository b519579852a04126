"""No silent nonsense: hostile features and extreme parameters give finite values within their caps."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linmdp
from linmdp import TableFeatures, Task
from linmdp.runner.measured import RunStopped
from linmdp.runner.registry import make_learner
from test_faults import benchmark

AGENTS = (
    "lsvi-ucb",
    "lsvi-ucb:storage=features",
    "lsvi-ucb:storage=states",
    "lsvi-ucb:stationary=true",
    "lsvi-ucb:stationary=true,discount=0.9",
    "lsvi-ucb-fixed:rho=0.6",
    "lsvi-ucb-adaptive:m=2",
    "lsvi-ucb:storage=centres,M=12",
    "lsvi-ucb:storage=centres,M=12,stationary=true",
    "lsvi-ucb:storage=centres,M=12,stationary=true,discount=0.9",
)


@st.composite
def hostile_tables(draw: st.DrawFn) -> Any:
    """Features that are badly scaled, equal, zero or collinear, within norm 1."""
    S, A, d = draw(st.integers(2, 5)), draw(st.integers(2, 3)), draw(st.integers(1, 6))
    table = np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(S, A, d))
    table /= np.linalg.norm(table, axis=-1, keepdims=True)
    kind = draw(st.sampled_from(("scaled", "equal", "zero", "collinear", "tiny")))
    if kind == "scaled":
        table *= 10.0 ** np.linspace(-9, 0, d)
    elif kind == "equal":
        table[:] = table[0, 0]
    elif kind == "zero":
        table[1:] = 0.0
    elif kind == "collinear":
        table[:] = table[0, 0] * np.linspace(-1, 1, S * A).reshape(S, A, 1)
    else:
        table *= 1e-150
    return table


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    table=hostile_tables(),
    agent=st.sampled_from(AGENTS),
    lam=st.sampled_from((1e-8, 1e-4, 0.1, 1e4)),
    beta=st.sampled_from(("auto", 0.0, 0.3, 1e6)),
    dtype=st.sampled_from(("float64", "float32")),
    scale=st.sampled_from((1e-6, 1.0, 1e6)),
)
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_hostile_features_and_extreme_parameters_give_finite_values(
    table: Any, agent: str, lam: float, beta: Any, dtype: str, scale: float
) -> None:
    S, A, d = table.shape
    task = Task(S=S, A=A, d=d, H=4, reward_range=(0.0, scale), features=TableFeatures(table, bound=1 + 1e-9))
    name, _, rest = agent.partition(":")
    spec = f"{name}:lam={lam!r},beta={beta},dtype={dtype}" + (f",{rest}" if rest else "")
    learner: Any = make_learner(spec, task, 25)
    learner.rng = rng = np.random.default_rng(0)
    for _ in range(25):
        learner.begin_episode()
        state = int(rng.integers(S))
        for h in range(4):
            q = learner.q_values(h, state)
            assert np.isfinite(q).all()
            assert (q <= learner.caps[h] * (1 + 1e-6)).all()
            following = int(rng.integers(S))
            learner.observe(h, state, learner.act(h, state), scale * float(rng.random()), following, False)
            state = following
        learner.end_episode()
    assert np.isfinite(learner.beta_value)


@pytest.mark.parametrize(
    "agent", ["lsvi-ucb:beta=0.1", "lsvi-ucb:storage=centres,beta=0.1", "lsvi-ucb:beta=0.1,stationary=true"]
)
def test_weights_that_are_no_numbers_are_an_error_at_once(agent: str) -> None:
    env: Any = linmdp.make_env("lock")
    learner: Any = linmdp.make_agent(agent, env)
    linmdp.run(env, learner, episodes=3)
    u = learner._planner.ridge.u
    u[...] = np.nan
    with pytest.raises(linmdp.InvalidData, match="are not finite after planning"):
        learner.begin_episode()


@pytest.mark.parametrize("most", [1e60, 1e160, 1e300])
def test_rewards_too_extreme_to_plan_with_stop_the_gaussian_process_in_one_line(most: float) -> None:
    class Pays(gymnasium.Env[Any, Any]):
        observation_space, action_space = spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(2)
        steps = 0

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            super().reset(seed=seed)
            return self.np_random.random(2, dtype=np.float32), {}

        def step(self, action: int) -> Any:
            self.steps += 1
            state = self.np_random.random(2, dtype=np.float32)
            return state, most if self.steps > 40 else 1.0, False, self.steps % 4 == 0, {}

    env = linmdp.GymTask(Pays(), H=4, reward_low=0.0, reward_high=most)
    with (
        np.errstate(all="ignore"),
        pytest.raises(RunStopped, match="weights of lsvi-gp are not finite after planning") as stopped,
    ):
        linmdp.run(env, linmdp.make_agent("lsvi-gp", env), episodes=60)
    assert stopped.value.result is not None
    assert stopped.value.result.episodes >= 10


def test_a_soak_looks_at_what_it_says() -> None:
    program = benchmark("soak")
    for spec in (program.AGENTS[0], *program.MERGING):
        assert program.soak(spec, 300).failures == 0
    env: Any = linmdp.make_env("riverswim:S=4,H=3")
    learner: Any = linmdp.make_agent("lsvi-ucb:beta=0.5", env)
    linmdp.run(env, learner, episodes=5)
    assert program.healthy(learner)
    learner._planner.ridge.Lambda_inv[0, 0, 1] += 1e-3
    assert not program.healthy(learner)


def test_the_drift_of_centres_is_seen_where_lam_is_lost_in_rounding() -> None:
    """After the last episode every regression is behind, and none was looked at."""
    env = linmdp.make_env("synthetic:S=60,A=4,d=10,H=6")
    found = []
    for lam in (1e-12, 1e-2):
        agent = linmdp.make_agent(f"lsvi-ucb:beta=0.1,lam={lam},storage=centres,M=500,stationary=false", env)
        drift = linmdp.run(env, agent, episodes=30).drift
        assert drift is not None
        found.append(drift)
    assert found[0] > 1e-5 > 1e-10 > found[1] > 0


@pytest.mark.parametrize(("lam", "dtype", "said"), [(1e-8, "float32", 1), (1e-8, "float64", 0), (0.1, "float32", 0)])
def test_a_lam_that_single_precision_loses_is_said(lam: float, dtype: str, said: int) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        linmdp.make_agent(f"lsvi-ucb:beta=0.1,lam={lam},dtype={dtype}", linmdp.make_env("lock:H=3"))
    assert sum("lost in single precision" in str(words.message) for words in found) == said
