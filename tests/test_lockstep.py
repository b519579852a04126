"""Runs in lockstep are the runs alone: same actions, same regret to rounding, on NumPy and on torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.backend import NUMPY, Backend, backend_for
from linmdp.runner.batch import Job, jobs_for, run_jobs, run_unit, units
from linmdp.runner.engine import Setting
from linmdp.runner.lockstep import run_lockstep
from linmdp.runner.registry import make_learner, make_model
from linmdp.types import RunResult

ENVS = (
    "synthetic:S=30,A=4,d=5,H=6",
    "synthetic:S=20,A=3,d=4,H=4,start=uniform,concentration=0.3",
    "hypercube:d=4,H=5,start=adversarial",
    "lock:H=5,A=3",
    "riverswim:H=8",
)
SPECS = (
    "lsvi-ucb:beta=0.3",
    "lsvi-ucb:beta=0.1,lam=1.5",
    "lsvi-ucb:beta=0.1,ties=first",
    "lsvi-ucb-fixed:beta=0.3,rho=0.6",
    "lsvi-ucb-fixed:beta=0.3,rho=0.8",
    "lsvi-ucb-adaptive:beta=0.3,rho=0.7,m=4,tau_rel=0.01",
    "lsvi-ucb-adaptive:beta=0.1,rho=0.6,m=2,proxy=phase,budget=6,tau_rel=0.05",
)


def together(
    env: str, specs: list[tuple[str, int]], episodes: int, backend: Backend = NUMPY, dtype: str = "float64"
) -> list[RunResult]:
    model, settings, caps = make_model(env), [], np.zeros(0)
    for spec, seed in specs:
        agent: Any = make_learner(spec, model.task, episodes)
        settings.append(Setting.of(agent, spec, seed))  # which takes no reference to the agent's arrays
        caps = agent.caps
    return run_lockstep(
        model, settings, caps=caps, dtype=dtype, env=env, episodes=episodes, eval_every=2, backend=backend
    )


def assert_same_runs(env_spec: str, backend: Backend) -> None:
    """Different agents, betas, lambdas and schedules in one batch, against each of them alone."""
    episodes = 50
    specs = [(spec, 10 + i) for i, spec in enumerate(SPECS)]
    for (spec, seed), batched in zip(specs, together(env_spec, specs, episodes, backend), strict=True):
        env = linmdp.make_env(env_spec)
        alone = linmdp.run(
            env, linmdp.make_agent(spec, env, episodes=episodes), episodes=episodes, seed=seed, eval_every=2
        )
        np.testing.assert_allclose(batched.rewards, alone.rewards, atol=1e-9, err_msg=spec)
        assert alone.regret is not None
        assert batched.regret is not None
        np.testing.assert_allclose(batched.regret, alone.regret, atol=1e-8, err_msg=spec)
        for field in ("params", "peak_bytes", "feature_bytes", "updates", "resets", "seed", "episodes", "eval_every"):
            assert getattr(batched, field) == getattr(alone, field), (spec, field)
        assert batched.saturated == pytest.approx(alone.saturated)
        assert batched.tied == pytest.approx(alone.tied)
        assert batched.warnings == alone.warnings


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_a_batch_is_its_runs_alone(env: str) -> None:
    assert_same_runs(env, NUMPY)


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_the_same_engine_runs_on_torch(env: str) -> None:
    pytest.importorskip("torch")
    assert_same_runs(env, Backend("torch"))


def test_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for env in ENVS:
        assert_same_runs(env, backend_for("cuda"))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_single_precision_in_lockstep(library: str) -> None:
    """Not the same bits as alone, since products are summed in another order, but the same learning."""
    pytest.importorskip(library)
    backend = Backend(library)
    specs = [("lsvi-ucb:beta=0.3", seed) for seed in range(4)]
    single, double = (together(ENVS[0], specs, 60, backend, dtype) for dtype in ("float32", "float64"))
    ends = [np.mean([run.final_regret for run in runs]) for runs in (single, double)]
    assert ends[0] == pytest.approx(ends[1], rel=0.02)


def test_groups_depend_on_the_jobs_alone() -> None:
    def sizes(n: int, agent: str = "lsvi-ucb:beta=0.1") -> list[int]:
        return [len(unit) for unit in units(jobs_for("lock", [agent], episodes=3, seeds=n))]

    assert [sizes(n) for n in (1, 3, 4, 5, 16, 20)] == [[1], [1] * 3, [2, 2], [2, 3], [8, 8], [6, 7, 7]]
    assert sizes(4, "random") == [1] * 4
    for alone in ("lsvi-ucb:beta=0.1,storage=features", "lsvi-ucb", "lsvi-ucb:beta=0.1,stationary=true"):
        assert sizes(4, alone) == [1] * 4
    names = ["lsvi-ucb:beta=0.1", "lsvi-ucb-fixed:beta=0.1"]
    mixed = jobs_for("lock", names, episodes=3, seeds=4)
    assert [unit[0].agent for unit in units(mixed)] == [names[0]] * 2 + [names[1]] * 2


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = jobs_for("lock:H=4", ["lsvi-ucb", "random"], episodes=5, seeds=5)
    for processes in (1, 2):
        found = [(r.agent, r.seed) for r in run_jobs(jobs, processes=processes)]
        assert found == [(job.agent, job.seed) for job in jobs]


def test_inverses_made_afresh_in_the_middle_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def regret() -> Any:
        return run_unit([Job(ENVS[0], "lsvi-ucb:beta=0.1", 40, seed, 1) for seed in range(3)])[1].regret

    before = regret()
    monkeypatch.setattr("linmdp.agents.regression.REFACTOR_EVERY", 7)
    np.testing.assert_allclose(regret(), before, atol=1e-9)


def test_cuda_without_a_gpu_is_one_line() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(linmdp.InvalidParameter, match="must be 'cpu' where there is no GPU"):
        backend_for("cuda")
