"""Runs in lockstep are the runs alone: same actions, same regret to rounding, on NumPy and on torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.agents.backend import NUMPY, Backend, backend_for
from linmdp.envs.guard import Guard
from linmdp.runner.batch import Job, jobs_for, run_jobs, run_unit, units
from linmdp.runner.lockstep import Run, run_lockstep
from linmdp.runner.loop import play
from linmdp.runner.registry import AGENTS, make_learner, make_model
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
    "lsvi-ucb-rare-switch:beta=0.3",
    "lsvi-ucb-rare-switch:beta=0.1,eta=2",
    "lsvi-ucb:beta=0.2,replan=0.2",
    "lsvi-ucb-batch:beta=0.3,lam=0.1,batches=7",
    "lsvi-ucb-restart:beta=0.3,lam=0.1,W=9",
    "ada-lsvi-ucb-restart:beta=0.3,lam=0.1,c=0.5",
)
ADAPTIVE = (
    "lsvi-ucb-adaptive:beta=0.3,rho=0.7,m=4,tau_rel=0.01",
    "lsvi-ucb-adaptive:beta=0.1,rho=0.6,m=2,proxy=phase,budget=6,tau_rel=0.05",
    "lsvi-ucb-adaptive:beta=0.3,lam=0.5,rho=0.8,m=9,budget=0.5",
)


AUTO = (  # each finds its own width and lambda, and plans in its own time
    "lsvi-ucb:lam=auto",
    "lsvi-ucb:ties=first",
    "lsvi-ucb:replan=0",
    "lsvi-ucb:replan=0.4",
    "lsvi-ucb-fixed:lam=auto,rho=0.6",
    "lsvi-ucb-restart:lam=auto,W=9",
    "lsvi-ucb-rare-switch:lam=auto",
)
STATIONARY = (
    "lsvi-ucb:beta=0.3,stationary=true",
    "lsvi-ucb:beta=0.1,lam=0.2,replan=0.3,stationary=true",
    "lsvi-ucb-fixed:beta=0.3,rho=0.6,stationary=true",
    "lsvi-ucb-rare-switch:beta=0.3,stationary=true",
)


def together(
    env: str, specs: list[tuple[str, int]], episodes: int, backend: Backend = NUMPY, dtype: str = "float64"
) -> list[RunResult]:
    model = make_model(env)
    runs = [
        Run(make_learner(f"{spec},dtype={dtype}", model.task, episodes).lockstep(), spec, seed) for spec, seed in specs
    ]
    return run_lockstep(model, runs, env=env, episodes=episodes, eval_every=2, backend=backend)


def assert_same_runs(
    env_spec: str, backend: Backend, batch: Sequence[str] = SPECS, episodes: int = 50, seed: int = 10
) -> None:
    """Different agents, betas, lambdas and schedules in one batch, against each of them alone."""
    specs = [(spec, seed + i) for i, spec in enumerate(batch)]
    for (spec, seed), batched in zip(specs, together(env_spec, specs, episodes, backend), strict=True):
        env = linmdp.make_env(env_spec)
        alone = linmdp.run(
            env, linmdp.make_agent(spec, env, episodes=episodes), episodes=episodes, seed=seed, eval_every=2
        )
        np.testing.assert_allclose(batched.rewards, alone.rewards, atol=1e-9, err_msg=spec)
        assert alone.regret is not None
        assert batched.regret is not None
        np.testing.assert_allclose(batched.regret, alone.regret, atol=1e-8, err_msg=spec)
        for field in ("params", "chosen", "peak_bytes", "feature_bytes", "updates", "switches", "resets", "seed"):
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


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_adaptive_intervals_of_a_batch_are_decided_together(library: str) -> None:
    pytest.importorskip(library)
    assert_same_runs(ENVS[1], Backend(library), ADAPTIVE)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_adaptive_agent_is_taken_out_of_a_batch_as_it_would_be_alone(library: str) -> None:
    pytest.importorskip(library)
    model, taken = make_model(ENVS[1]), dict[int, Any]()
    runs = [Run(make_learner(spec, model.task, 30).lockstep(), spec, 5) for spec in ADAPTIVE]

    def take(i: int, agent: Any) -> list[str]:
        taken[i] = agent.schedule.state_dict()
        return []

    run_lockstep(model, runs, env=ENVS[1], episodes=30, backend=Backend(library), on_agent=take)
    for i, spec in enumerate(ADAPTIVE):
        env = linmdp.make_env(ENVS[1])
        alone: Any = make_learner(spec, env.task, 30)
        linmdp.run(env, alone, episodes=30, seed=5)
        for name, value in alone.schedule.state_dict().items():
            np.testing.assert_allclose(taken[i][name], value, atol=1e-9, err_msg=f"{spec}: {name}")


@st.composite
def models(draw: st.DrawFn) -> str:
    """Small models whose runs with no parameter count what they see: random ones, and one with absorbing states."""
    H, start = draw(st.integers(1, 6)), draw(st.sampled_from(("fixed", "uniform")))
    noise, seed = draw(st.sampled_from((0, 0.3))), draw(st.integers(0, 9))
    if draw(st.booleans()):
        return f"hypercube:d={draw(st.integers(2, 4))},H={H + 1},noise={noise},seed={seed},start={start}"
    S, A, d = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(2, 6))
    return f"synthetic:S={S},A={A},d={d},H={H},noise={noise},seed={seed},start={start},concentration=0.3"


@settings(max_examples=15, deadline=None)
@given(models(), st.lists(st.sampled_from(AUTO), min_size=2, max_size=4), st.integers(1, 30), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_runs_that_choose_their_own_width_are_the_runs_alone(
    env: str, specs: list[str], episodes: int, seed: int
) -> None:
    assert_same_runs(env, NUMPY, specs, episodes, seed)


@settings(max_examples=12, deadline=None)
@given(models(), st.permutations(STATIONARY), st.integers(1, 25), st.booleans(), st.sampled_from((1, 0.9, 0.6)))
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_runs_with_one_regression_for_all_steps_are_the_runs_alone(
    env: str, specs: list[str], episodes: int, auto: bool, discount: float
) -> None:
    own = [f"lsvi-ucb:replan={replan},stationary=true" for replan in (0, 0.02, 0.4)]
    alike = [f"{spec},discount={discount}" for spec in (own if auto else specs[:3])]
    assert_same_runs(env, NUMPY, alike, episodes)


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_they_do_so_on_torch(stationary: bool) -> None:
    pytest.importorskip("torch")
    one = "lsvi-ucb:stationary=true,discount=0.9"
    specs = [one, f"{one},replan=0.4"] if stationary else AUTO[2:6]
    assert_same_runs(f"{ENVS[1]},stationary={str(stationary).lower()}", Backend("torch"), specs, episodes=15)


def test_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for env in ENVS:
        for specs in (SPECS, ADAPTIVE):
            assert_same_runs(env, backend_for("cuda"), specs)


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
    for alone in ("beta=0.1,storage=features", "lam=0.1", "beta=0.1,stationary=true,lookahead=3"):
        assert sizes(4, f"lsvi-ucb:{alone}") == [1] * 4
    assert sizes(4, "lsvi-ucb:beta=0.1,stationary=true,discount=0.9") == [2, 2]
    names = ["lsvi-ucb:beta=0.1", "lsvi-ucb-fixed:beta=0.1"]
    mixed = jobs_for("lock", names, episodes=3, seeds=4)
    assert [unit[0].agent for unit in units(mixed)] == [names[0]] * 2 + [names[1]] * 2


def test_a_grid_is_one_batch_on_a_gpu_if_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [f"lsvi-ucb:beta={beta},lam={lam}" for beta in (0.1, 0.3) for lam in (0.1, 1.0)]
    jobs = [Job("lock:H=4", agent, 5, seed, 1, "cuda") for agent in agents for seed in range(3)]
    each = linmdp.make_agent(agents[0], linmdp.make_env("lock:H=4"), episodes=5).nbytes
    for room, sizes in ((100 * each, [12]), (5 * each, [4, 4, 4]), (1, [1] * 12)):
        monkeypatch.setattr("linmdp.runner.batch.gpu_bytes", lambda room=room: room)
        cut = units(jobs)
        assert [len(unit) for unit in cut] == sizes
        assert [job for unit in cut for job in unit] == jobs
    other = [job._replace(agent="lsvi-ucb:beta=0.1,dtype=float32") for job in jobs[:2]]
    monkeypatch.setattr("linmdp.runner.batch.gpu_bytes", lambda: 100 * each)
    assert [len(unit) for unit in units(jobs + other)] == [12, 2], "another precision is another batch"
    kinds = [*ADAPTIVE, "lsvi-ucb:beta=0.3", "lsvi-ucb-fixed:beta=0.3"]
    mixed = [Job("lock:H=4", agent, 5, 0, 1, "cuda") for agent in kinds]
    assert [len(unit) for unit in units(mixed)] == [3, 2], "schedules that decide together are a batch of their own"


def test_different_settings_in_one_unit_are_the_runs_alone() -> None:
    specs = ["lsvi-ucb:beta=0.3", "lsvi-ucb:beta=0.1,lam=1.5", "lsvi-ucb-rare-switch:beta=0.3"]
    jobs = [Job("lock:H=4", spec, 20, 3, 1) for spec in specs]
    for job, together in zip(jobs, run_unit(jobs), strict=True):
        np.testing.assert_allclose(together.rewards, run_unit([job])[0].rewards, atol=1e-9)
        assert together.agent == job.agent


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = jobs_for("lock:H=4", ["lsvi-ucb", "random"], episodes=5, seeds=5)
    for processes in (1, 2):
        found = [(r.agent, r.seed) for r in run_jobs(jobs, processes=processes)]
        assert found == [(job.agent, job.seed) for job in jobs]


def test_inverses_made_afresh_in_the_middle_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def regret() -> Any:
        return run_unit([Job(ENVS[0], "lsvi-ucb:beta=0.1", 40, seed, 1) for seed in range(3)])[1].regret

    before = regret()
    monkeypatch.setattr("linmdp.agents.ridge.REFACTOR_EVERY", 7)
    np.testing.assert_allclose(regret(), before, atol=1e-9)


def test_twelve_environments_on_a_gpu_in_one_process() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for i in range(12):
        env = f"synthetic:S={10 + i},A={2 + i % 3},d={3 + i % 4},H={3 + i % 5}"
        specs = [("lsvi-ucb:beta=0.3", 0), ("lsvi-ucb-fixed:beta=0.1,rho=0.6", 1)]
        found = [together(env, specs, 12, backend)[0].rewards for backend in (NUMPY, backend_for("cuda"))]
        np.testing.assert_allclose(found[1], found[0], atol=1e-9, err_msg=env)


def kernel_backend() -> Backend:
    """A GPU or, with TRITON_INTERPRET=1, Triton's interpreter of the same kernels."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return backend_for("cuda")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("no GPU, and TRITON_INTERPRET is not 1")
    return Backend("torch")


@pytest.mark.parametrize(
    "specs",
    [
        ["lsvi-ucb:beta=0.3", "lsvi-ucb:beta=0.1,lam=1.5", "lsvi-ucb:beta=0.1,ties=first"],
        ["lsvi-ucb-rare-switch:beta=0.3"] * 18,  # of which few are planned at a time
        ["lsvi-ucb-fixed:beta=0.3,rho=0.6", "lsvi-ucb-rare-switch:beta=0.1,eta=2", "lsvi-ucb:beta=0.2,replan=0.2"],
        list(ADAPTIVE),
    ],
    ids=["always", "few", "mixed", "adaptive"],
)
@pytest.mark.parametrize("env", ["synthetic:S=20,A=3,d=4,H=4,start=uniform", "riverswim:H=3"])
def test_kernels_are_the_formulas(env: str, specs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning, playing and evaluation stand once for NumPy and torch, and a second time in Triton."""
    backend = kernel_backend()
    monkeypatch.setattr("linmdp.agents.ridge.REFACTOR_EVERY", 3)
    seeded = [(spec, seed) for seed, spec in enumerate(specs)]
    for mine, theirs in zip(together(env, seeded, 7), together(env, seeded, 7, backend), strict=True):
        np.testing.assert_allclose(theirs.rewards, mine.rewards, atol=1e-9)
        assert mine.regret is not None
        assert theirs.regret is not None
        np.testing.assert_allclose(theirs.regret, mine.regret, atol=1e-8)
        for field in ("updates", "resets", "tied", "saturated", "switches"):
            assert getattr(theirs, field) == getattr(mine, field), field


def test_cuda_without_a_gpu_is_one_line() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(linmdp.InvalidParameter, match="must be 'cpu' where there is no GPU"):
        backend_for("cuda")


def test_perturbed_runs_in_lockstep_are_the_runs_alone() -> None:
    jobs = [Job(ENVS[1], "lsvi-phe:beta=0.3,draws=3", 40, seed, 1) for seed in range(4)]
    assert len(units(jobs)) == 2, "it runs in lockstep"
    for job, together in zip(jobs, run_unit(jobs), strict=True):
        alone = run_unit([job])[0]
        np.testing.assert_allclose(together.rewards, alone.rewards, atol=1e-9)
        assert alone.regret is not None
        assert together.regret is not None
        np.testing.assert_allclose(together.regret, alone.regret, atol=1e-8)


class Broken(linmdp.LSVIUCB):
    """Plans and acts in its own way: which fails."""

    name = "broken"

    def begin_episode(self) -> None:
        raise RuntimeError("its own planning")

    def act(self, h: int, state: Any) -> int:
        raise RuntimeError("its own acting")


class Timid(linmdp.LSVIUCB):
    """Acts in its own way."""

    name = "timid"

    def act(self, h: int, state: Any) -> int:
        return 0


class Halved(linmdp.LSVIUCB):
    """Only its exploration is its own."""

    name, in_lockstep = "halved", True

    def make_exploration(self, beta: Any, backend: Backend = NUMPY) -> Any:
        return super().make_exploration(beta / 2, backend)


@pytest.fixture
def subclasses() -> Iterator[None]:
    with AGENTS.temporarily("broken", Broken), AGENTS.temporarily("timid", Timid), AGENTS.temporarily("halved", Halved):
        yield


@pytest.mark.usefixtures("subclasses")
def test_a_subclass_that_plans_or_acts_in_its_own_way_is_never_replaced() -> None:
    jobs = [Job("lock:H=4", "broken:beta=0.3", 10, seed, 1) for seed in range(4)]
    assert units(jobs) == [[job] for job in jobs]
    with pytest.raises(RuntimeError, match="its own planning"):
        list(run_jobs(jobs, processes=1))
    timid = [Job("lock:H=4", "timid:beta=0.3", 30, seed, 1) for seed in range(4)]
    constant = [Job("lock:H=4", "constant:action=0", 30, seed, 1) for seed in range(4)]
    for mine, theirs in zip(run_jobs(timid, processes=1), run_jobs(constant, processes=1), strict=True):
        np.testing.assert_array_equal(mine.rewards, theirs.rewards)
    halved = [Job("lock:H=4", "halved:beta=0.6", 30, seed, 1) for seed in range(4)]
    plain = [job._replace(agent="lsvi-ucb:beta=0.3") for job in halved]
    assert len(units(halved)) == 2, "a new exploration alone is no reason to run one by one"
    for mine, theirs in zip(run_jobs(halved, processes=1), run_jobs(plain, processes=1), strict=True):
        np.testing.assert_array_equal(mine.rewards, theirs.rewards)


@pytest.mark.parametrize(
    "spec",
    [*SPECS, "lsvi-phe:beta=0.3,draws=3", AUTO[0], AUTO[3], STATIONARY[0], "lsvi-ucb:stationary=true,discount=0.9"],
)
def test_an_agent_of_a_run_in_lockstep_is_the_one_of_the_run_alone(spec: str, tmp_path: Path) -> None:
    """Saved at the end, loaded, and played on."""
    jobs = [Job(ENVS[1], spec, 30, seed, 30, save=str(tmp_path / f"{seed}.safetensors")) for seed in range(4)]
    run_unit(jobs)
    for job in jobs[:2]:
        env: Any = linmdp.make_env(job.env)
        alone: Any = linmdp.make_agent(spec, env, episodes=30)
        linmdp.run(env, alone, episodes=30, seed=job.seed)
        loaded: Any = linmdp.load_agent(str(job.save), env)
        assert (loaded.policy_version, loaded.updates, loaded.resets) == (
            alone.policy_version,
            alone.updates,
            alone.resets,
        )
        for k in range(15):
            played = []
            for agent in (alone, loaded):
                agent.begin_episode()
                state, _ = env.reset(seed=k)
                played.append([(t.state, t.action) for t in play(Guard(env), agent, state, k)])
            assert played[0] == played[1]


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_counts_of_unit_vectors_with_a_width_from_the_data_are_the_runs_alone() -> None:
    assert_same_runs("lock:H=4,A=3", NUMPY, ["lsvi-ucb:storage=counts", "lsvi-ucb:storage=counts,replan=0.4"])
