"""Long runs: curves of a bounded number of points, whose sums are those of all episodes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import linmdp
from linmdp.results import curves
from linmdp.results.curves import LONG, POINTS, late_return, returns, thinned, whole
from linmdp.results.store import Store
from linmdp.results.tracking import scalars
from linmdp.runner.measured import CurveLog
from linmdp.runner.progress import RECENT
from linmdp.types import RunResult

K = 5000


@pytest.fixture
def long_from_2000(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "LONG", POINTS)


def played(episodes: int = K, agent: str = "random", **options: object) -> RunResult:
    env = linmdp.make_env("lock:H=2,A=2")
    made = linmdp.make_agent(agent, env, episodes)
    return linmdp.run(env, made, episodes=episodes, seed=3, **options)  # type: ignore[arg-type]


def test_a_log_holds_the_same_bytes_however_long_the_run() -> None:
    assert CurveLog(LONG).nbytes == 16 * LONG
    assert {CurveLog(n).nbytes for n in (LONG + 1, 10**7, 10**9)} == {16 * POINTS}


@pytest.mark.parametrize("shape", [(), (3,)])
def test_points_are_sums_over_all_episodes(shape: tuple[int, ...], long_from_2000: None) -> None:
    rng, log = np.random.default_rng(0), CurveLog(K, shape)
    rewards, gaps = rng.normal(size=(2, K, *shape))
    for pair in zip(rewards, gaps, strict=True):
        log.add(*pair)
    at = thinned(K)
    for found, each in zip(log.curves(), (rewards, gaps), strict=True):
        np.testing.assert_allclose(found.cumsum(axis=0), each.cumsum(axis=0)[at], atol=1e-9)
    np.testing.assert_array_equal(log.last()[0], rewards[-RECENT:])


def test_a_long_run_that_stopped_has_the_points_of_a_shorter_one(long_from_2000: None) -> None:
    log = CurveLog(K)
    for k in range(3000):
        log.add(1.0, k)
    rewards, gaps = log.curves()
    assert len(rewards) == len(thinned(3000))
    np.testing.assert_allclose(rewards.cumsum(), thinned(3000) + 1)
    assert gaps.sum() == pytest.approx(2999 * 3000 / 2)


def test_a_long_run_is_the_run_itself_at_fewer_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    every = played()
    monkeypatch.setattr(curves, "LONG", POINTS)
    few, at = played(), thinned(K)
    assert every.regret is not None
    assert few.regret is not None
    assert (len(every.rewards), len(few.rewards), len(few.regret)) == (K, POINTS, POINTS)
    np.testing.assert_allclose(few.regret, every.regret[at], rtol=1e-12)
    np.testing.assert_allclose(np.cumsum(few.rewards), np.cumsum(every.rewards)[at], rtol=1e-12)
    assert few.episodes == K
    assert few.final_regret == pytest.approx(every.final_regret)
    last = at[-1] - at[-POINTS // 10 - 1]
    assert late_return(few) == pytest.approx(every.rewards[-last:].mean())
    assert returns(few)[0] == every.rewards[0]
    assert few.rows()[-1]["episode"] == K
    assert [k for k, _ in scalars(few)][:: len(list(scalars(few))) - 1] == [1, K]
    with closing(Store(tmp_path)) as store:
        store.add([(Store.key({}), few)])
        (back,) = store.results()
    np.testing.assert_allclose(back.rewards.cumsum(), few.rewards.cumsum(), rtol=1e-6)
    assert whole(back) is back


def test_a_long_run_resumes_bit_for_bit(long_from_2000: None, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(record: linmdp.types.EpisodeRecord) -> None:
        if record.episode == 3500:
            raise Stop

    agent = "q-learning"
    with pytest.raises(Stop):
        played(agent=agent, checkpoint=tmp_path, every=1000, on_episode=stop)
    found, straight = played(agent=agent, checkpoint=tmp_path, every=1000), played(agent=agent)
    np.testing.assert_array_equal(found.rewards, straight.rewards)
    np.testing.assert_array_equal(np.array(found.regret), np.array(straight.regret))
