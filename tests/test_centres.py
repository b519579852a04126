"""Centres do what their page says, and every deterministic step of its proof holds on random data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, InvalidParameter, TableFeatures, Task
from linmdp.agents import LSVIPHE, OptWLSVI
from linmdp.agents.memory.centres import (
    WIDER,
    cover,
    distances_squared,
    least_distance,
    moved_farther,
    moved_outer,
    shared,
)
from linmdp.report.tables import comparison_table
from linmdp.results.run_folder import run_columns, run_rows
from linmdp.results.store import Store
from linmdp.results.summary import by_agent
from linmdp.runner.batch import Job
from linmdp.runner.sweep import run_sweep
from reference import ReferenceCentres, ReferenceEvidence, ReferenceFixed, ReferenceLSVI, ReferencePHE
from test_agents_against_reference import RandomTask, assert_same, common, runs, tasks
from test_storages import Dense, assert_same_on_vectors, continuous_task, waves

many = settings(max_examples=30, deadline=None)


@st.composite
def large_tasks(draw: st.DrawFn) -> Task:
    """More states than there are centres; no two have the same features."""
    S, A, H, d = (draw(st.integers(low, high)) for low, high in ((4, 15), (1, 3), (2, 4), (1, 5)))
    table = np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(S, A, d))
    table /= np.linalg.norm(table, axis=-1, keepdims=True) * np.linspace(1, 3, S)[:, None, None]
    return Task(S=S, A=A, d=d, H=H, reward_range=(0.0, 1.0), features=TableFeatures(table, bound=1.0 + 1e-12))


long_runs = st.fixed_dictionaries(
    {"episodes": st.integers(1, 30), "seed": st.integers(0, 2**16), "end_probability": st.sampled_from((0.0, 0.2))}
)


# the algorithm


@many
@given(
    task=large_tasks(),
    common=common,
    run=long_runs,
    M=st.integers(2, 7),
    stationary=st.booleans(),
    inflate=st.sampled_from((0.0, 0.3, 1.0)),
)
def test_centres_are_what_their_page_says(
    task: Task, common: dict[str, Any], run: dict[str, Any], M: int, stationary: bool, inflate: float
) -> None:
    fast = LSVIUCB(task, storage="centres", M=M, stationary=stationary, inflate=inflate, **common)
    slow = ReferenceCentres(task, M=M, stationary=stationary, inflate=inflate, **common)
    assert_same(fast, slow, task, **run, tolerance=1e-6)
    np.testing.assert_allclose(fast._planner.storage.errors, slow.E, atol=1e-5)


@many
@given(task=tasks(), common=common, run=runs, which=st.integers(0, 1))
def test_centres_work_with_other_schedules_and_explorations(
    task: Task, common: dict[str, Any], run: dict[str, Any], which: int
) -> None:
    K = run["episodes"]
    room: Any = {"storage": "centres", "M": max(2, task.S or 0), "episodes": K, **common}
    if which:
        assert_same(LSVIPHE(task, draws=3, **room), ReferencePHE(task, draws=3, **common), task, **run)
    else:
        slow = ReferenceFixed(task, K=K, rho=0.6, **common)
        assert_same(linmdp.LSVIUCBFixed(task, rho=0.6, **room), slow, task, **run)


@pytest.mark.parametrize("features", [waves(), Dense()])
@pytest.mark.parametrize("stationary", [True, False])
def test_on_continuous_states_ends_are_known(features: Any, stationary: bool) -> None:
    task = continuous_task(features, rewards=(-2.0, 1.5))
    fast = LSVIUCB(task, storage="centres", M=60, stationary=stationary, replan=0)
    slow = ReferenceEvidence(task, stationary=stationary, absorbing=True)
    slow.fits = [(w, inverse, 0.0) for w, inverse, _ in slow.fits]
    assert_same_on_vectors(fast, slow, task, episodes=8, seed=3)
    given = LSVIUCB(task, storage="centres", M=60, stationary=False, beta=0.4, lam=0.3)
    assert_same_on_vectors(given, ReferenceLSVI(task, beta=0.4, lam=0.3, cap="remaining"), task, episodes=8, seed=4)


def test_a_discounted_horizon_has_centres_too() -> None:
    env = linmdp.make_env("synthetic:S=20,A=3,d=5,H=9")
    same = "beta=0.1,lam=0.1,stationary=true,discount=0.9"
    results: list[Any] = [
        linmdp.run(env, linmdp.make_agent(f"lsvi-ucb:{same},storage={s}", env), episodes=25, seed=1).regret
        for s in ("counts", "centres")
    ]
    np.testing.assert_allclose(results[0], results[1], atol=1e-3)


# the certificate


def judged(
    task: Task, seed: int, M: int, episodes: int, source: Any, kind: Any = LSVIUCB, **own: Any
) -> tuple[Any, ReferenceCentres]:
    """A fast agent, and its samples as they truly were, in a transcription that is only used as a book."""
    fast: Any = kind(task, storage="centres", M=M, **own)
    fast.rng = np.random.default_rng(seed)
    book = ReferenceCentres(task, M=M, beta=1.0, lam=1.0, stationary=fast.horizon.shared)
    book.learns = [True] * task.H
    for _ in range(episodes):
        fast.begin_episode()
        for samples in book.samples[: len(fast._plan)]:  # a sample that has faded counts as a shorter phi in z
            samples[:] = [s._replace(phi=getattr(fast.schedule, "eta", 1.0) * s.phi) for s in samples]
        state = source.reset()
        for h in range(task.H):
            action = fast.act(h, state)
            following, reward, over = source.step()
            fast.observe(h, state, action, reward, following, over)
            ReferenceLSVI.observe(book, h, state, action, reward, following, over)
            if over:
                break
            state = following
        fast.end_episode()
    fast.begin_episode()
    return fast, book


class Vectors:
    """Random points of a square, in place of the states of a `RandomTask`."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> Any:
        return self.rng.random(2)

    def step(self) -> tuple[Any, float, bool]:
        return self.reset(), float(self.rng.integers(3)) / 2, bool(self.rng.random() < 0.1)


def assert_certified(fast: Any, book: ReferenceCentres, seed: int) -> None:
    """The regression with centres is no farther from that on the true next states than E_h says, in any direction."""
    storage, horizon, rng = fast._planner.storage, fast.horizon, np.random.default_rng(seed)
    for h in range(horizon.H - 1):
        samples = [s for s in book.samples[h] if s.next_phi is not None]
        q = np.array([fast._exploration.q(h + 1, *_parts(fast, h + 1, s.next_phi)) for s in samples])
        z = np.array([s.phi for s in samples]).reshape(-1, fast.task.d).T @ q.reshape(-1, fast.task.A).max(axis=1)
        g, n = horizon.group(h), int(storage.count[horizon.group(h)])
        rows = storage.points(g)
        V = storage.q_of(h + 1, rows).max(axis=1) if n else np.zeros(0)
        difference = V @ storage.N[g, :n] - z
        inverse = fast._planner.ridge.Lambda_inv[g]
        for x in rng.normal(size=(20, fast.task.d)):
            off, norm = abs(x @ _apply(inverse, difference)), float(x @ _apply(inverse, x)) ** 0.5
            assert off <= storage.errors[h] * norm + 1e-9


def _apply(inverse: Any, x: Any) -> Any:
    return np.concatenate([block @ part for block, part in zip(inverse, x.reshape(len(inverse), -1), strict=True)])


def _parts(fast: Any, h: int, phi: Any) -> tuple[Any, Any]:
    """phi'w and phi' Lambda^-1 phi of every action."""
    explore, inverse = fast._exploration, fast._planner.ridge.Lambda_inv[fast.horizon.group(h)]
    products = np.stack([phi @ vector for vector in explore.vectors(h)])
    return products, np.array([x @ _apply(inverse, x) for x in phi])


@settings(max_examples=80, deadline=None)
@given(
    task=large_tasks(),
    seed=st.integers(0, 2**16),
    M=st.integers(2, 8),
    episodes=st.integers(2, 40),
    own=st.sampled_from(
        (
            {"beta": 0.3, "lam": 1.0},
            {"beta": 2.0, "lam": 0.1, "inflate": 1.0},
            {"beta": 1.0, "lam": 0.5, "stationary": True},
            {},
            {"stationary": True, "inflate": 0.1},
        )
    ),
)
def test_the_certificate_is_never_below_the_true_error(
    task: Task, seed: int, M: int, episodes: int, own: dict[str, Any]
) -> None:
    fast, book = judged(task, seed, M, episodes, RandomTask(task, seed, 0.1), **own)
    assert_certified(fast, book, seed)


@many
@given(task=large_tasks(), seed=st.integers(0, 2**16), M=st.integers(2, 8), W=st.integers(2, 12), wide=st.booleans())
def test_nor_where_samples_fade(task: Task, seed: int, M: int, W: int, wide: bool) -> None:
    own: dict[str, Any] = {"W": W, "beta": 1.0, "lam": 0.2, "stationary": wide}
    fast, book = judged(task, seed, M, 25, RandomTask(task, seed, 0.1), OptWLSVI, **own)
    fast._planner.storage.errors *= fast.schedule.eta  # the samples have faded once more since they were planned with
    for samples in book.samples[: len(fast._plan)]:
        samples[:] = [s._replace(phi=fast.schedule.eta * s.phi) for s in samples]
    assert_certified(fast, book, seed)


@pytest.mark.parametrize("features", [waves(), Dense()])
@pytest.mark.parametrize("own", [{"beta": 0.5, "lam": 0.3, "stationary": False}, {"beta": 0.5, "lam": 1.0}, {}])
def test_nor_on_continuous_states(features: Any, own: dict[str, Any]) -> None:
    task = continuous_task(features)
    for M in (3, 8):
        fast, book = judged(task, 5, M, 15, Vectors(M), **own)
        if not fast.auto:  # there ends count as known samples, which have no error
            assert_certified(fast, book, M)
        assert fast._planner.storage.radius.max() > 0
        assert fast._planner.storage.errors.max() > 0


@many
@given(task=large_tasks(), common=common, run=long_runs, M=st.integers(2, 7), stationary=st.booleans())
def test_the_sums_bound_what_they_stand_for(
    task: Task, common: dict[str, Any], run: dict[str, Any], M: int, stationary: bool
) -> None:
    """S, G and W of the transcription, with which the fast code agrees, against the true displacements."""
    book = ReferenceCentres(task, M=M, stationary=stationary, **common)
    book.rng, source = np.random.default_rng(0), RandomTask(task, run["seed"], run["end_probability"])
    for _ in range(run["episodes"]):
        book.begin_episode()
        state = source.reset()
        for h in range(task.H):
            following, reward, over = source.step()
            book.observe(h, state, int(source.rng.integers(task.A)), reward, following, over)
            if over:
                break
            state = following
    book.begin_episode()
    for g, centres in enumerate(book.centres[: 1 if stationary else task.H - 1]):
        W: Any = np.zeros((task.d, task.d))
        inverse = book.inverse[0 if stationary else g + 1]
        for c in centres:
            weights = np.array(list(c.weights.values()))
            moved = [book.samples[g][i].next_phi - c.phi for i in c.weights]  # type: ignore[operator]
            far = np.array([max(np.linalg.norm(delta, axis=1)) for delta in moved])
            stretched = [max(np.einsum("ad,de,ae->a", delta, inverse, delta)) for delta in moved]
            assert weights @ far**2 <= c.S + 1e-9
            assert weights @ stretched <= c.G + 1e-9
            most = WIDER / (WIDER - 1) * book.tau[g] + 1e-6
            assert max(far) <= most  # a geometric series of radii
            assert most**2 * c.n >= c.S
            W = W + sum(w * delta.T @ delta for w, delta in zip(weights, moved, strict=True))
        assert np.linalg.eigvalsh(book.W[g] - W).min() >= -1e-9
        counted = sum(1 for s in book.samples[g] if s.next_phi is not None)
        assert sum(c.n for c in centres) == pytest.approx(counted)  # the weights of every sample have the sum 1


@given(points=st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=60), M=st.integers(2, 6))
def test_the_radius_is_within_a_factor_of_the_best_cover(points: list[float], M: int) -> None:
    """On a line the least radius of M intervals that cover all points can be computed."""
    table = np.array(points)[:, None, None]
    task = Task(S=len(points), A=1, d=1, H=2, reward_range=(0.0, 1.0), features=TableFeatures(table))
    agent: Any = LSVIUCB(task, storage="centres", M=M, beta=1.0, lam=1.0)
    for s in range(len(points)):
        agent.begin_episode()
        agent.observe(0, 0, 0, 0.0, s, False)
        agent.end_episode()
    x = np.sort(points)
    best = [x[j] - x[0] for j in range(len(x))]  # of the first points, with one interval
    for _ in range(M - 1):
        best = [min(max(best[i - 1], x[j] - x[i]) if i else x[j] - x[0] for i in range(j + 1)) for j in range(len(x))]
    OPT = best[-1] / 2
    assert agent._planner.storage.radius[0] <= 2 * WIDER * OPT + 1e-6
    assert agent._planner.storage.count[0] <= M


# its parts


@given(
    seed=st.integers(0, 2**16), n=st.integers(2, 60), A=st.integers(1, 3), d=st.integers(1, 4), radius=st.floats(0, 2)
)
def test_a_cover_is_one(seed: int, n: int, A: int, d: int, radius: float) -> None:
    points = np.random.default_rng(seed).normal(size=(n, A, d))
    exact = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1).max(-1))
    np.testing.assert_allclose(np.sqrt(distances_squared(points, points)), exact, atol=1e-6)
    others = exact + np.diag(np.full(n, np.inf))
    assert least_distance(points) == pytest.approx(others.min())
    stays = cover(points, radius)
    for i in range(n):
        assert bool(stays[i]) == bool(exact[i, np.flatnonzero(stays[:i])].min(initial=np.inf) > radius)


@given(seed=st.integers(0, 2**16), n=st.integers(1, 30), d=st.integers(1, 4), reach=st.floats(0, 3))
def test_shares_are_a_mean_of_points_within_reach(seed: int, n: int, d: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    points, point = rng.normal(size=(n, 2, d)), rng.normal(size=(2, d))
    into, weights, moved, nearest = shared(point, points, reach)
    distances = np.linalg.norm(points - point, axis=-1).max(axis=-1)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    assert nearest == pytest.approx(distances.min() ** 2)
    assert distances[into].max() <= max(reach * (1 + 1e-6), distances.min() + 1e-12)
    np.testing.assert_allclose(moved, point - points[into])
    np.testing.assert_array_equal(shared(points[0], points, reach).weights, [1.0])


def test_between_two_points_shares_are_those_of_the_line() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]])
    into, weights, *_ = shared(np.array([0.25, 0.0]), points, 2.0)
    assert into.tolist() == [0, 1]
    np.testing.assert_allclose(weights, [0.75, 0.25], atol=1e-4)


@given(seed=st.integers(0, 2**16), n=st.integers(1, 20), d=st.integers(1, 5), size=st.sampled_from((0.0, 1e-3, 1.0)))
def test_moving_farther_is_bounded(seed: int, n: int, d: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    x, y, D = rng.normal(size=(n, d)), size * rng.normal(size=(n, d)), float(rng.random())
    moved = moved_outer(x.T @ x, y.T @ y) - (x + y).T @ (x + y)
    assert size == 0 or np.linalg.eigvalsh(moved).min() >= -1e-9
    lengths = np.linalg.norm(x, axis=1)
    bound = moved_farther(float(lengths @ lengths), n, np.array([D]))
    assert ((lengths + D) ** 2).sum() <= bound[0] + 1e-9


# an agent like any other


def test_resets_drop_the_centres_and_their_errors() -> None:
    env = linmdp.make_env("synthetic:S=40,A=3,d=5,H=4")
    agent: Any = linmdp.make_agent("lsvi-ucb-fixed:storage=centres,M=5,rho=0.5,beta=0.1", env, episodes=100)
    result = linmdp.run(env, agent, episodes=100, seed=0)
    assert result.resets == 10
    storage = agent._planner.storage
    assert storage.sums[:, 0].sum() <= 10 * env.task.H
    assert agent.certificate() > 0


def test_faded_centres_count_as_faded_samples_do() -> None:
    results: list[Any] = []
    for storage in ("counts", "centres"):
        env = linmdp.make_env("drift:base=synthetic,S=12,A=3,d=4,H=5,every=20")
        agent = linmdp.make_agent(f"opt-wlsvi:W=9,storage={storage}", env)
        results.append(linmdp.run(env, agent, episodes=60, seed=1).regret)
    np.testing.assert_allclose(results[0], results[1], atol=1e-6)


def test_a_table_for_which_there_is_no_space_has_centres() -> None:
    env = linmdp.make_env("synthetic:S=500,A=3,d=5,H=4")
    for spec in ("lsvi-ucb", "lsvi-ucb:beta=0.1"):
        agent: Any = linmdp.make_agent(f"{spec}{',' if ':' in spec else ':'}max_bytes=150KiB", env)
        assert agent.chosen["storage"] == "centres"
        assert agent.chosen["M"] < 500
        asked = f"{spec}{',' if ':' in spec else ':'}storage=centres,M={agent.chosen['M']}"
        pair = [linmdp.run(env, a, episodes=60, seed=0) for a in (agent, linmdp.make_agent(asked, env))]
        np.testing.assert_array_equal(pair[0].rewards, pair[1].rewards)
        assert agent.nbytes <= agent.chosen["bytes"] <= 150 << 10


def test_what_does_not_go_together_is_refused() -> None:
    env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    for spec, words in (
        ("lsvi-ucb:inflate=1", "'inflate' parameter of lsvi-ucb must be 0 unless storage is 'centres'"),
        ("lsvi-ucb:inflate=2,storage=centres", "'inflate' parameter"),
        ("lsvi-phe:inflate=1,storage=centres", "'inflate' parameter of lsvi-phe must be 0 without a bonus"),
        ("lsvi-ucb:inflate=1,storage=centres,stationary=true,discount=0.9,beta=1", "'inflate' parameter"),
        ("lsvi-ucb:storage=centres,M=1", "'M' parameter"),
        ("opt-rlsvi:storage=centres,beta=1", "'storage' parameter"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            linmdp.make_agent(spec, env)
    with pytest.raises(InvalidParameter, match="'storage' parameter of lsvi-ucb must be 'sparse'"):
        linmdp.make_agent("lsvi-ucb:storage=centres", linmdp.make_env("gym:Taxi-v3"))


CENTRES = "lsvi-ucb:storage=centres,M=4,beta=0.1"


def test_results_carry_the_certificate_where_there_is_one() -> None:
    env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    records = list[linmdp.EpisodeRecord]()
    agent = linmdp.make_agent(CENTRES, env)
    result = linmdp.run(env, agent, episodes=50, seed=0, on_episode=records.append)
    total = sum(record.certificate or 0.0 for record in records)
    assert total > 0
    assert result.certificate == pytest.approx(total / 50) == result.to_json()["certificate"]
    assert len(result.certificates) == 25
    assert result.certificates[-1] == pytest.approx(total)
    again = linmdp.run(env, agent, episodes=10, seed=1)
    assert again.certificates[-1] == pytest.approx((agent.certificate() or 0.0) - total)
    exact = linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=0.1", env), episodes=5, seed=0)
    assert exact.certificate is None
    assert "certificate" not in exact.to_json()


def test_tables_and_reports_show_it(tmp_path: Path) -> None:
    runs = [Job("lock:H=4", agent, 20, 0, 1) for agent in (CENTRES, "random")]
    run_sweep(runs, store := Store(tmp_path), processes=1)
    rows = list(run_rows(store))
    assert [row["certificate"] is None for row in rows] == [False, True]
    assert "certificate" in run_columns(rows)
    assert "certificate" not in run_columns(rows[1:])
    stored = list(store.results())
    assert stored[0].certificates[-1] == pytest.approx(20 * (stored[0].certificate or 0.0))
    table = comparison_table(by_agent(stored))
    assert "certificate" in table.splitlines()[0]
    assert "certificate" not in comparison_table(by_agent(stored[1:]))
    store.close()
    done = subprocess.run([sys.executable, "-c", "from linmdp.cli import main; main()", "report", str(tmp_path)])
    assert done.returncode == 0
    assert "Certificate of" in (tmp_path / "report.html").read_text()


def test_a_checkpoint_keeps_the_certificate(tmp_path: Path) -> None:
    def play(stop: int) -> Any:
        def halt(record: linmdp.EpisodeRecord) -> None:
            if record.episode == stop:
                raise KeyboardInterrupt

        env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
        agent = linmdp.make_agent(CENTRES, env)
        return linmdp.run(env, agent, episodes=30, seed=0, checkpoint=tmp_path, every=10, on_episode=halt)

    with pytest.raises(KeyboardInterrupt):
        play(17)
    resumed, env = play(-1), linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    whole = linmdp.run(env, linmdp.make_agent(CENTRES, env), episodes=30, seed=0)
    assert (resumed.certificate, resumed.certificates) == (whole.certificate, whole.certificates)


def test_a_saved_agent_must_have_centres_that_can_be() -> None:
    env = linmdp.make_env("synthetic:S=12,A=3,d=4,H=5")
    agent = linmdp.make_agent("lsvi-ucb:storage=centres,M=4,beta=0.1", env)
    linmdp.run(env, agent, episodes=20, seed=0)
    for name, value in (("count", 5), ("centre", 12), ("radius", -1), ("errors", np.nan), ("sums", -1), ("W", -1)):
        damaged = agent.state_dict()
        damaged[f"planner.storage.{name}"][...] = value
        with pytest.raises(linmdp.InvalidData, match=name):
            agent.load_state_dict(damaged)
