"""The relatives of LSVI-UCB do what their literal transcriptions do: same Q, same actions."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp import (
    LMCLSVI,
    LSVIUCB,
    RLSVI,
    AdaLSVIUCBRestart,
    LSVIUCBBatch,
    LSVIUCBDetect,
    LSVIUCBRestart,
    LSVIUCBSelect,
    LSVIUCBSketch,
    OptRLSVI,
    OptWLSVI,
    Task,
)
from linmdp.agents.memory.samples import faded_after
from linmdp.agents.schedules import ada_restart, changes
from linmdp.agents.schedules.ada_restart import windows
from linmdp.agents.schedules.batch import grid_of
from linmdp.agents.schedules.detect import Drops
from linmdp.agents.schedules.select import worst_case
from linmdp.agents.sketch import Sketched
from reference import ReferencePHE
from reference_family import (
    ReferenceAdaChanges,
    ReferenceAdaRestart,
    ReferenceBatch,
    ReferenceDetect,
    ReferenceLMC,
    ReferenceOptRLSVI,
    ReferenceOptWLSVI,
    ReferenceRestart,
    ReferenceSelect,
    ReferenceSketch,
)
from test_agents_against_reference import STORAGES, assert_same, common, many, runs, tasks

Parameters = dict[str, Any]


class Pair(NamedTuple):
    """An agent, its literal transcription, and the parameters of both; `K`: they are told the number of episodes."""

    fast: Any
    slow: Any
    own: dict[str, st.SearchStrategy[Any]]
    K: bool = False
    tolerance: float = 1e-8


PAIRS = {
    "restart plans from nothing every W episodes": Pair(LSVIUCBRestart, ReferenceRestart, {"W": st.integers(1, 8)}),
    "ada-restart is EXP3.P over windows": Pair(
        AdaLSVIUCBRestart,
        ReferenceAdaRestart,
        {"c": st.floats(0.1, 1.5), "arms": st.sampled_from((None, 2, 4))},
        K=True,
    ),
    "sketch is LSVI-UCB with frequent directions": Pair(
        LSVIUCBSketch,
        ReferenceSketch,
        {"m": st.integers(2, 5), "inflate": st.sampled_from((0.0, 0.1, 1.0))},
        tolerance=1e-6,
    ),
    "opt-wlsvi is its paper divided by the largest weight": Pair(
        OptWLSVI, ReferenceOptWLSVI, {"W": st.integers(2, 12)}, tolerance=1e-6
    ),
    "batch plans on its grid": Pair(
        LSVIUCBBatch,
        ReferenceBatch,
        {"batches": st.integers(1, 9), "grid": st.sampled_from(("uniform", "geometric"))},
        K=True,
    ),
    "rlsvi acts on one draw": Pair(RLSVI, partial(ReferencePHE, draws=1), {}),
    "opt-rlsvi defaults where it knows nothing": Pair(
        OptRLSVI, ReferenceOptRLSVI, {"threshold": st.floats(0.1, 3.0)}, tolerance=1e-6
    ),
    "lmc is gradient steps with noise": Pair(LMCLSVI, ReferenceLMC, {"steps": st.integers(1, 6)}),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", PAIRS)
@many
@given(data=st.data(), task=tasks(), common=common, run=runs, more=st.integers(0, 9))
def test_it_is_its_paper(
    storage: str, name: str, data: st.DataObject, task: Task, common: Parameters, run: Parameters, more: int
) -> None:
    pair, K = PAIRS[name], run["episodes"] + more * (name.startswith("ada"))
    own = data.draw(st.fixed_dictionaries(pair.own))
    fast = pair.fast(task, storage=storage, **({"episodes": K} if pair.K else {}), **own, **common)
    slow = pair.slow(task, **({"K": K} if pair.K else {}), **own, **common)
    assert_same(fast, slow, task, **run, tolerance=pair.tolerance)
    if pair.fast is LSVIUCBRestart:
        assert fast.resets == (K - 1) // own["W"]
    if pair.fast is LSVIUCBBatch:
        assert fast.policy_version <= own["batches"]


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(
    task=tasks(),
    common=common,
    run=runs,
    errors=st.floats(0.01, 1.5),
    power=st.integers(0, 4),
    slow=st.sampled_from((1, 3, changes.SLOW)),
)
def test_detect_starts_anew_after_a_change(
    storage: str, task: Task, common: Parameters, run: Parameters, errors: float, power: int, slow: int
) -> None:
    run, own = run | {"episodes": run["episodes"] + 8}, {"errors": errors, "false_alarms": 10.0**power}
    with patch.object(changes, "SLOW", slow):
        fast = LSVIUCBDetect(task, storage=storage, **own, **common)
        assert_same(fast, ReferenceDetect(task, slow=slow, **own, **common), task, **run)


def test_detect_restarts_soon_after_the_changes_and_hardly_ever_else() -> None:
    still, changing = (linmdp.make_env(f"drift:base=lock,H=4,A=3,{path}") for path in ("kind=still", "every=60"))
    alone, plain = (linmdp.run(still, cls(still.task), episodes=180, seed=1) for cls in (LSVIUCBDetect, LSVIUCB))
    assert alone.resets == 0
    assert alone.final_regret == plain.final_regret
    ours, ucb = (linmdp.run(changing, cls(changing.task), episodes=180, seed=1) for cls in (LSVIUCBDetect, LSVIUCB))
    assert ours.resets == 2
    assert ours.final_regret < 0.5 * ucb.final_regret  # type: ignore[operator]


def test_detect_plans_as_rarely_as_lsvi_ucb_and_at_once_after_a_change() -> None:
    env = linmdp.make_env("lock:H=4,A=3")
    ours, plain = (linmdp.run(env, cls(env.task), episodes=120, seed=1) for cls in (LSVIUCBDetect, LSVIUCB))
    assert ours.switches == plain.switches < 120
    schedule, decisions = Drops(1, 6.0, 0.5), []
    for earned in [1.0] * 40 + [0.0] * 8:
        decisions.append(schedule.begin_episode())
        if decisions[-1].plan.all():
            schedule.planned()
        schedule.end_episode(earned)
    assert sum(decision.plan.all() for decision in decisions[:40]) < 12
    assert [bool(decision.plan.all()) for decision in decisions if decision.reset] == [True]


def test_detect_notices_pay_that_rises_elsewhere_when_it_falls_here() -> None:
    env = linmdp.make_env("drift:base=riverswim,S=4,H=10,every=60")
    ours, oracle = (
        linmdp.run(env, a, episodes=180, seed=1) for a in (LSVIUCBDetect(env.task), LSVIUCBRestart(env.task, W=60))
    )
    assert ours.resets == 2
    assert ours.final_regret < 4 * oracle.final_regret  # type: ignore[operator]


@given(rows=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4))
def test_the_same_counts_speak_against_a_change(rows: list[tuple[int, int, int]]) -> None:
    counts = np.array(rows, dtype=float)
    wins = counts.sum(axis=1) / 3
    assert (changes.log_factors(counts, wins, counts, wins) <= 1e-9).all()


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(
    task=tasks(),
    common=common,
    run=runs,
    errors=st.floats(0.5, 6.0),
    power=st.integers(-1, 4),
    slow=st.sampled_from((1, 3, changes.SLOW)),
    least=st.integers(2, 4),
)
def test_ada_restart_ends_an_epoch_with_a_change_or_when_half_of_it_was_better(
    storage: str, task: Task, common: Parameters, run: Parameters, errors: float, power: int, slow: int, least: int
) -> None:
    run = run | {"episodes": run["episodes"] + 16}
    own: Parameters = {"errors": errors, "false_alarms": 10.0**power}
    with patch.object(changes, "SLOW", slow), patch.object(ada_restart, "LEAST", least):
        fast = AdaLSVIUCBRestart(task, storage=storage, **own, **common)
        assert_same(fast, ReferenceAdaChanges(task, slow=slow, least=least, **own, **common), task, **run)


def test_ada_restart_drops_what_it_knows_when_the_longer_window_does_not_pay() -> None:
    schedule = ada_restart.DropsAndHalves(1, 1e9)
    earned = [*np.linspace(0, 1, 8), *np.ones(56), *np.linspace(1, 0.2, 64)]  # and returns are not tested
    resets = []
    for k, one in enumerate(earned):
        if schedule.begin_episode().reset:
            resets.append(k)
        schedule.planned()
        schedule.end_episode(float(one))
    assert schedule.begin_episode().reset
    assert resets == []


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(
    task=tasks(),
    common=common,
    run=runs,
    c=st.floats(0.1, 1.5),
    arms=st.sampled_from((None, 2, 4)),
    K=st.integers(0, 9),
)
def test_ada_restart_is_exp3p_over_windows(
    storage: str, task: Task, common: Parameters, run: Parameters, c: float, arms: int | None, K: int
) -> None:
    own: Parameters = {"c": c, "arms": arms}
    blocks = "fixed" if arms == 2 else "auto"  # auto: fixed where they are described
    fast = AdaLSVIUCBRestart(task, blocks=blocks, storage=storage, episodes=run["episodes"] + K, **own, **common)
    assert_same(fast, ReferenceAdaRestart(task, K=run["episodes"] + K, **own, **common), task, **run)


@pytest.mark.parametrize("storage", STORAGES)
@many
@given(task=tasks(), common=common, run=runs, m=st.integers(2, 5), inflate=st.sampled_from((0.0, 0.1, 1.0)))
def test_sketch_is_lsvi_ucb_with_frequent_directions(
    storage: str, task: Task, common: Parameters, run: Parameters, m: int, inflate: float
) -> None:
    fast = LSVIUCBSketch(task, storage=storage, m=m, inflate=inflate, **common)
    slow = ReferenceSketch(task, m=m, inflate=inflate, **common)
    assert_same(fast, slow, task, **run, tolerance=1e-6)


@many
@given(task=tasks(), common=common, run=runs)
def test_a_sketch_with_more_directions_than_features_is_lsvi_ucb(
    task: Task, common: Parameters, run: Parameters
) -> None:
    fast, exact = LSVIUCBSketch(task, m=task.d + 2, **common), LSVIUCB(task, **common)
    assert_same(fast, exact, task, **run, tolerance=1e-6)
    assert fast.diagnostics()["shrinkage"] < 1e-9


@given(d=st.integers(1, 8), m=st.integers(2, 6), n=st.integers(1, 60), seed=st.integers(0, 2**16))
def test_a_sketch_is_between_lambda_and_lambda_with_its_shrinkage(d: int, m: int, n: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(n, d)) * np.geomspace(1, 0.1, d)
    ridge, every = Sketched(1, d, 0.3, m, np.ones(1), 1), np.ones(1, dtype=np.bool_)
    for phi in rows:
        ridge.add(0, phi, 0.0)
        ridge.refactor(every, lambda g: None)
    B, exact, alpha = ridge.B[0, : ridge.rows[0]], rows.T @ rows, ridge.alpha[0]
    slack = 1e-9 * np.trace(exact)
    assert np.linalg.eigvalsh(exact - B.T @ B).min() >= -slack
    assert np.linalg.eigvalsh(B.T @ B + alpha * np.eye(d) - exact).min() >= -slack
    for j in range(min(m, d)):  # what is shrunk is at most the tail of the spectrum
        assert alpha <= np.linalg.eigvalsh(exact)[: d - j].sum() / (m - j) + slack
    np.testing.assert_allclose(
        ridge.inverse(0) @ np.eye(d), np.linalg.inv(B.T @ B + (0.3 + alpha) * np.eye(d)), rtol=0, atol=1e-9
    )


@many
@given(task=tasks(), common=common, run=runs, stationary=st.booleans(), W=st.integers(1, 5))
def test_what_fades_is_the_same_however_it_is_kept(
    task: Task, common: Parameters, run: Parameters, stationary: bool, W: int
) -> None:
    """Long enough that samples are dropped."""
    one, two = (OptWLSVI(task, storage=name, W=W, stationary=stationary, **common) for name in ("counts", "features"))
    assert_same(one, two, task, **run | {"episodes": 4 * run["episodes"]}, tolerance=1e-4)


@pytest.mark.parametrize("storage", STORAGES)
def test_auto_forgets_too(storage: str) -> None:
    """A window far beyond the run is no window."""
    results: list[Any] = []
    for spec in (f"opt-wlsvi:W=1000000000,storage={storage}", f"lsvi-ucb:replan=0,storage={storage}"):
        env = linmdp.make_env("riverswim:H=6")
        results.append(linmdp.run(env, linmdp.make_agent(spec, env), episodes=60, seed=1))
    np.testing.assert_allclose(results[0].regret, results[1].regret, atol=1e-6)


def test_sparse_counts_fade_like_counts() -> None:
    results: list[Any] = []
    for storage in ("counts", "sparse"):
        env = linmdp.make_env("drift:base=riverswim,S=5,H=6,every=20")
        agent = linmdp.make_agent(f"opt-wlsvi:W=9,storage={storage}", env)
        results.append(linmdp.run(env, agent, episodes=60, seed=1))
    np.testing.assert_allclose(results[0].regret, results[1].regret, atol=1e-6)


def test_merged_transitions_fade_like_samples() -> None:
    """While none has been merged, and none has faded away; lambda from the data, 2e-5, multiplies rounding."""
    env = linmdp.make_env("gym:MountainCar-v0,H=12")
    pair = [
        linmdp.make_agent(f"opt-wlsvi:W=6,storage={storage},stationary=true,lookahead=12", env)
        for storage in ("features", "merged")
    ]
    rng, states = np.random.default_rng(0), list[Any]()
    for k in range(12):
        for agent in pair:
            agent.begin_episode()
        state, _ = env.reset(seed=k)
        for h in range(12):
            action = int(rng.integers(3))
            after, reward, *_ = env.step(action)
            for agent in pair:
                agent.observe(h, state, action, float(reward), after, False)
            states.append(state)
            state = after
        for agent in pair:
            agent.end_episode()
    for agent in pair:
        agent.begin_episode()
    for state in states[::10]:
        np.testing.assert_allclose(pair[0].q_values(3, state), pair[1].q_values(3, state), atol=1e-5)


def test_merged_transitions_that_have_faded_make_room() -> None:
    env = linmdp.make_env("gym:MountainCar-v0,H=12")
    agent: Any = linmdp.make_agent("opt-wlsvi:W=1,M=400", env)
    linmdp.run(env, agent, episodes=40, seed=0)
    assert agent._planner.storage.count <= 12
    assert float(agent._planner.storage.radius) == 0


def test_samples_that_have_faded_are_dropped() -> None:
    env = linmdp.make_env("riverswim:H=3")
    agent = linmdp.make_agent("opt-wlsvi:W=2,beta=0.1,lam=0.1,storage=states", env)
    linmdp.run(env, agent, episodes=600, seed=0)
    held = agent.nbytes
    linmdp.run(env, agent, episodes=600, seed=0)
    assert agent.nbytes == held
    assert faded_after(0.5) == 34
    assert 0.5**34 < 1e-10 < 0.5**33


@many
@given(
    storage=st.sampled_from(STORAGES),
    task=tasks(),
    common=common,
    run=runs,
    M=st.integers(1, 6),
    gamma=st.sampled_from(("auto", "theory", 0.0, 0.4, 0.7)),
    stationary=st.booleans(),
)
def test_select_stores_what_is_new(
    storage: str, task: Task, common: Parameters, run: Parameters, M: int, gamma: float | str, stationary: bool
) -> None:
    # away from norms that occur exactly, where rounding would decide
    common = common | {"lam": common["lam"] * (1 + np.pi * 1e-5)}
    own: Parameters = {"M": M, "gamma": gamma, "stationary": stationary}
    fast, slow = LSVIUCBSelect(task, storage=storage, **own, **common), ReferenceSelect(task, **own, **common)
    assert_same(fast, slow, task, **run | {"episodes": 2 * run["episodes"]})
    said = fast.diagnostics()
    assert said["skipped_norms"] == pytest.approx(slow.skipped_norms, abs=1e-9)
    assert said["stored"] == sum(map(len, slow.samples[:1] if stationary else slow.samples))


@given(
    d=st.integers(1, 6),
    lam=st.floats(1e-3, 5.0),
    M=st.integers(1, 12),
    seed=st.integers(0, 2**16),
    spread=st.booleans(),
)
def test_no_more_than_m_samples_reach_the_threshold_of_the_theory(
    d: int, lam: float, M: int, seed: int, spread: bool
) -> None:
    rng, Lambda, stored = np.random.default_rng(seed), lam * np.eye(d), 0
    for i in range(40 * M):
        phi = rng.normal(size=d) if spread else np.eye(d)[i % d]
        phi /= np.linalg.norm(phi)
        if phi @ np.linalg.solve(Lambda, phi) >= worst_case(M, d, lam) * (1 + 1e-9):
            Lambda, stored = Lambda + np.outer(phi, phi), stored + 1
    assert stored <= M


def test_select_reports_its_measured_term_and_stops_planning() -> None:
    env = linmdp.make_env("riverswim:H=6")
    agent: Any = linmdp.make_agent("lsvi-ucb-select:beta=0.1,lam=0.01,gamma=0.3", env)
    assert agent.lockstep() is None  # what is stored is not known when an episode begins
    result = linmdp.run(env, agent, episodes=300, seed=0)
    said = result.to_json()["diagnostics"]
    assert said == agent.diagnostics()
    assert said["stored"] + said["skipped"] == 6 * 300
    assert 0 < said["skipped_norms"] < 0.3 * said["skipped"]
    before = agent.policy_version
    linmdp.run(env, agent, episodes=50, seed=1)
    assert agent.policy_version - before < 25
    assert "diagnostics" not in linmdp.run(env, linmdp.make_agent("random", env), episodes=2, seed=0).to_json()


def test_grids_by_hand() -> None:
    assert sorted(grid_of("uniform", 11, 3)) == [1, 4, 7]
    assert sorted(grid_of("geometric", 1000, 3)) == [1, 10, 100]
    assert sorted(grid_of("geometric", 4, 10)) == [1, 2, 3]
    assert grid_of("uniform", 2, 9) == {1, 2}


def test_windows_by_hand() -> None:
    assert windows(64, 4) == [1, 4, 16, 64]
    assert windows(20, 4) == [1, 1, 5, 20]
    assert windows(100, None) == [1, 2, 6, 15, 39, 100]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("lsvi-ucb-sketch:stationary=true", "'stationary' parameter of lsvi-ucb-sketch must be false"),
        ("lsvi-ucb-sketch:storage=centres", "'storage' parameter of lsvi-ucb-sketch must be 'counts', 'features' or"),
        ("lsvi-ucb-sketch:m=1", "'m' parameter of lsvi-ucb-sketch"),
        ("opt-wlsvi:W=0", "'W' parameter of opt-wlsvi"),
        ("lsvi-ucb-restart:B=0", "'B' parameter of lsvi-ucb-restart"),
        ("ada-lsvi-ucb-restart:arms=1", "'arms' parameter of ada-lsvi-ucb-restart"),
        ("ada-lsvi-ucb-restart:blocks=fixed", "'episodes' parameter of ada-lsvi-ucb-restart must be given"),
        ("ada-lsvi-ucb-restart:blocks=some", "'blocks' parameter of ada-lsvi-ucb-restart must be 'auto', 'fixed' or"),
        ("ada-lsvi-ucb-restart:blocks=changes,c=1", "'c' parameter of ada-lsvi-ucb-restart must be left out where"),
        ("ada-lsvi-ucb-restart:arms=4,errors=1", "'errors' parameter of ada-lsvi-ucb-restart must be left out where"),
        ("lsvi-ucb-select:M=0", "'M' parameter of lsvi-ucb-select"),
        ("lsvi-ucb-select:gamma=-1", "'gamma' parameter of lsvi-ucb-select"),
        ("lsvi-ucb-select:gamma=some", "'gamma' parameter of lsvi-ucb-select must be a number >= 0, 'auto' or"),
        ("lsvi-ucb-select:gamma=theory", "'M' parameter of lsvi-ucb-select must be given where gamma is 'theory'"),
        (
            "lsvi-ucb-select:storage=centres",
            "'storage' parameter of lsvi-ucb-select must be one that holds the samples",
        ),
    ],
)
def test_bad_parameters_are_named(spec: str, words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words):
        linmdp.make_agent(spec, linmdp.make_env("riverswim"), None if "blocks=fixed" in spec else 30)


def test_the_default_window_is_that_of_the_theory() -> None:
    env = linmdp.make_env("riverswim")  # d = 12
    agent: Any = linmdp.make_agent("lsvi-ucb-restart:B=3", env, episodes=900)
    assert agent.schedule.W == 60
    agent = linmdp.make_agent("opt-wlsvi:B=3", env, episodes=900)
    assert agent.schedule.eta == pytest.approx(1 - 1 / 60)


def test_after_a_switch_those_that_forget_lose_less() -> None:
    env = linmdp.make_env("drift:base=lock,H=4,A=3,every=150")
    regret = {}
    for spec in ("lsvi-ucb", "lsvi-ucb-restart:W=150", "opt-wlsvi:W=30"):
        agent = linmdp.make_agent(f"{spec}{',' if ':' in spec else ':'}beta=1,lam=1", env, episodes=600)
        regret[spec] = linmdp.run(env, agent, episodes=600, seed=0).final_regret
    exact, restart, fading = regret.values()
    assert restart is not None
    assert fading is not None
    assert exact is not None
    assert restart < exact / 2
    assert fading < exact
