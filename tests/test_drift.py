"""Environments that change between episodes: linear in each of them, and dynamic regret is exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import command
import linmdp
from linmdp.envs.base import check_linear
from linmdp.envs.drift import KINDS, Place, mixture
from linmdp.envs.drift import Path as ModelPath
from linmdp.types import Array
from test_planning import dense

BASES = {
    "synthetic": "S=12,A=3,d=4,H=5",
    "lock": "H=4,A=3",
    "riverswim": "S=5,H=6",
    "sensor": "H=6",
    "inventory": "H=5,capacity=3",
}


def made(base: str, kind: str, every: int = 7, **more: Any) -> Any:
    words = "".join(f",{name}={value}" for name, value in more.items())
    return linmdp.make_env(f"drift:base={base},kind={kind},every={every},{BASES[base]}{words}")


def best_values(P: Array, r: Array) -> Array:
    V = np.zeros(P.shape[1])
    for h in reversed(range(len(P))):
        V = (r[h] + P[h] @ V).max(axis=1)
    return V


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_episode_is_a_linear_mdp_with_its_own_optimum(base: str, kind: str) -> None:
    env = made(base, kind)
    (r0, P0), (r1, P1) = (dense(model) for model in env.models)
    for k in range(0, 30, 3):
        model, place = env.model_of(k), env.path.place(k)
        assert all(finding.ok for finding in check_linear(model))
        assert model.features is env.task.features
        share = place.parts / 100 if place.one == 0 else 1 - place.parts / 100
        P, r = (1 - share) * P0 + share * P1, (1 - share) * r0 + share * r1
        np.testing.assert_allclose(env.optimum_of(k).V[0], best_values(P, r), atol=1e-12)


@pytest.mark.parametrize("base", BASES)
def test_what_is_best_changes(base: str) -> None:
    """Otherwise there would be nothing to follow."""
    env: Any = linmdp.make_env(f"drift:base={base},every=7")
    other = [env.optimum_of(7).Q[h].argmax(axis=1) for h in range(env.task.H)]
    lost = env.optimum_of(0).V[0] - linmdp.policy_value(env.model_of(0), lambda h: other[h])[0]
    assert lost.max() > 0.01


@settings(deadline=None)
@given(kind=st.sampled_from(KINDS), every=st.integers(1, 40), J=st.integers(2, 4), k=st.integers(0, 3000))
def test_a_place_is_the_position_in_hundredths(kind: str, every: int, J: int, k: int) -> None:
    path = ModelPath(kind, every, J, seed=3)
    place, t = path.place(k), path._position(k)
    weights = np.zeros(J)
    weights[place.one] += 1 - place.parts / 100
    weights[place.two] += place.parts / 100
    exact = np.zeros(J)
    exact[int(np.floor(t)) % J] += 1 - (t - np.floor(t))
    exact[int(np.floor(t) + 1) % J] += t - np.floor(t)
    assert np.abs(weights - exact).max() <= 0.005 + 1e-9
    assert path.place(k) == ModelPath(kind, every, J, seed=3).place(k)


def test_the_kinds_by_hand() -> None:
    switch, drift, season = (ModelPath(kind, 4, 2, 0) for kind in ("switch", "drift", "season"))
    assert [switch.place(k) for k in (0, 3, 4, 8)] == [Place(0, 0, 0), Place(0, 0, 0), Place(1, 1, 0), Place(0, 0, 0)]
    assert [drift.place(k) for k in (0, 1, 4, 6)] == [Place(0, 0, 0), Place(0, 1, 25), Place(1, 1, 0), Place(1, 0, 50)]
    assert [season.place(k) for k in (0, 1, 2, 4)] == [Place(0, 0, 0), Place(0, 1, 50), Place(1, 1, 0), Place(0, 0, 0)]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", ["switch", "drift", "walk"])
def test_dynamic_regret_is_that_of_each_episode(base: str, kind: str) -> None:
    env = made(base, kind)
    result = linmdp.run(env, linmdp.make_agent("constant:action=1", env), episodes=25, seed=1)
    expected = []
    for k in range(25):
        r, P = dense(env.model_of(k))
        V = np.zeros(env.task.S)
        for h in reversed(range(env.task.H)):
            V = r[h, :, 1] + P[h, :, 1] @ V
        expected.append(best_values(P, r)[0] - V[0])
    assert result.regret is not None
    np.testing.assert_allclose(result.regret, np.cumsum(expected), atol=1e-9)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimal_policy_of_each_episode_loses_nothing(base: str, kind: str) -> None:
    env = made(base, kind, start="uniform")
    result = linmdp.run(env, linmdp.make_agent("optimal", env), episodes=25, seed=1)
    assert result.final_regret == pytest.approx(0.0, abs=1e-9)
    assert result.switches == (0 if kind == "still" else len(env.changes(25)))


def test_an_adversary_looks_at_the_model_of_the_episode() -> None:
    env = made("synthetic", "switch", every=1, start="adversarial")
    result = linmdp.run(env, linmdp.make_agent("constant", env), episodes=6, seed=1)
    assert result.regret is not None
    for k, lost in enumerate(np.diff(result.regret, prepend=0.0)):
        values = linmdp.policy_value(env.model_of(k), lambda h: np.zeros(12, dtype=int))[0]
        assert lost == pytest.approx((env.optimum_of(k).V[0] - values).max())


@pytest.mark.parametrize("base", BASES)
def test_without_drift_it_is_its_base(base: str) -> None:
    runs = []
    for spec in (f"{base}:{BASES[base]}", f"drift:base={base},kind=still,{BASES[base]}"):
        env = linmdp.make_env(spec)
        runs.append(linmdp.run(env, linmdp.make_agent("lsvi-ucb:beta=0.1", env), episodes=30, seed=2))
    np.testing.assert_array_equal(runs[0].rewards, runs[1].rewards)
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize("kind", ["switch", "walk"])
@pytest.mark.parametrize("agent", ["lsvi-ucb:beta=0.1", "optimal"])
def test_a_resumed_run_goes_on_in_the_same_episode(tmp_path: Path, kind: str, agent: str) -> None:
    def play(episodes_now: int | None) -> Any:
        env = made("synthetic", kind)
        mine = linmdp.make_agent(agent, env, episodes=40)

        def stop(record: linmdp.EpisodeRecord) -> None:
            if record.episode == episodes_now:
                raise KeyboardInterrupt

        return linmdp.run(env, mine, episodes=40, seed=3, on_episode=stop, checkpoint=tmp_path, every=5)

    with pytest.raises(KeyboardInterrupt):
        play(18)
    resumed, env = play(None), made("synthetic", kind)
    whole = linmdp.run(env, linmdp.make_agent(agent, env, episodes=40), episodes=40, seed=3)
    np.testing.assert_array_equal(resumed.rewards, whole.rewards)
    np.testing.assert_array_equal(resumed.regret, whole.regret)
    assert resumed.switches == whole.switches


def test_a_checkpoint_of_another_path_is_refused(tmp_path: Path) -> None:
    def play(every: int) -> None:
        env = made("lock", "switch", every)
        linmdp.run(env, linmdp.make_agent("random", env), episodes=10, checkpoint=tmp_path, every=5)

    play(7)
    with pytest.raises(linmdp.InvalidData, match="environment="):
        play(6)


def test_variation_is_the_sum_of_all_steps() -> None:
    env = made("inventory", "walk")
    theta = mu = 0.0
    for k in range(1, 40):
        one, two = env.model_of(k - 1), env.model_of(k)
        for h in range(one.H):
            theta += float(np.linalg.norm(two.theta[h] - one.theta[h]))
            mu += float(np.linalg.norm([np.abs(two.mu[h, i] - one.mu[h, i]).sum() for i in range(one.d)]))
    np.testing.assert_allclose(env.variation(40), (theta, mu))
    assert env.changes(40) == [k for k in range(1, 40) if env.path.place(k) != env.path.place(k - 1)]


def test_a_mixture_of_stationary_models_is_stationary() -> None:
    env = made("riverswim", "drift")
    one, two = env.models
    assert mixture(one, two, 0.5).task.stationary
    assert env.task.stationary


def test_reset_with_a_seed_starts_again() -> None:
    env = made("synthetic", "switch", every=2)
    env.reset(seed=0)
    for k in range(5):
        assert env.k == k
        env.reset()
    env.reset(seed=0)
    assert env.k == 0


def test_it_behaves_as_an_environment() -> None:
    for base, sizes in BASES.items():
        linmdp.testing.check_env(f"drift:base={base},kind=still,{sizes}")


def test_seeds_and_processes_give_the_same_runs() -> None:
    spec = "drift:S=12,A=3,d=4,H=5,every=7"
    one, two = (linmdp.compare(spec, ["lsvi-ucb:beta=0.1"], episodes=20, seeds=3, jobs=jobs) for jobs in (1, 2))
    assert {run.agent for run in one} == {"lsvi-ucb:beta=0.1", "random", "optimal"}
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine.regret, theirs.regret)


def test_check_says_how_much_it_changes() -> None:
    done = command.linmdp(
        "check", "drift:base=riverswim,every=500", "--episodes", "2000", "--agent", "lsvi-ucb-restart"
    )
    assert done.status == 0
    assert "It is a linear MDP in every episode." in done.out
    assert "In 2,000 episodes it changes 3 times: B = 84.43 + 0 (theta, mu)" in done.out
    assert "changes 0 times: B = 0 + 0 (theta, mu).\n" in command.linmdp("check", "drift:base=lock,kind=still").out


def test_a_sweep_has_drifting_tasks(tmp_path: Path) -> None:
    spec = tmp_path / "s.toml"
    spec.write_text(
        'name = "s"\n[[runs]]\nenv = "drift:base=lock,H=3,A=2,every=5"\nagents = ["lsvi-ucb-restart:W=5", "optimal"]\n'
        "episodes = 12\nseeds = 2\n"
    )
    runs = list(linmdp.sweep(spec, out=tmp_path / "out", jobs=1))
    assert len(runs) == 4
    assert all(run.final_regret == pytest.approx(0, abs=1e-9) for run in runs if run.agent == "optimal")
