"""Several runs in one process at once."""

from __future__ import annotations

import threading

from threadpoolctl import threadpool_info, threadpool_limits

import linmdp
from linmdp.runner.measured import one_blas_thread


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_runs_in_threads_give_back_the_threads_of_blas_and_have_one_until_then() -> None:
    """They leave in the order in which they came, so that the last to leave was not the first to come."""
    with threadpool_limits(3, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == {3}


def test_four_runs_in_threads_are_the_same_as_alone() -> None:
    with threadpool_limits(3, user_api="blas"):
        found: dict[int, float] = {}

        def one(seed: int) -> None:
            env = linmdp.make_env("synthetic:S=30,A=3,d=6,H=5")
            agent = linmdp.make_agent("lsvi-ucb:beta=0.1,lam=0.1", env)
            found[seed] = linmdp.run(env, agent, episodes=30, seed=seed % 2).reward

        threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == {3}
        assert found[0] == found[2] != found[1] == found[3]
