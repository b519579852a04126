"""SysAdmin: its model against its story, and, where pyRDDLGym is installed, against the simulator."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.envs.planning import Model, optimum, policy_value, uniform_policy
from linmdp.envs.rddl import SysAdmin, machine_features


def small(H: int = 6) -> SysAdmin:
    connected = np.zeros((3, 3), dtype=np.bool_)
    connected[0, 1] = connected[2, 1] = connected[1, 2] = True
    return SysAdmin(connected=connected, revival=0.1, penalty=0.75, H=H)


def next_machines(model: SysAdmin, up: np.ndarray, action: int, rng: np.random.Generator) -> list[int]:
    """One step, machine by machine."""
    following = []
    for x in range(model.n):
        depends = [y for y in range(model.n) if model.connected[y, x]]
        chance = 0.45 + 0.5 * (1 + sum(up[y] for y in depends)) / (1 + len(depends)) if up[x] else model.revival
        following.append(1 if action == x + 1 else int(rng.random() < chance))
    return following


def test_backups_agree_with_the_story() -> None:
    model, rng = small(), np.random.default_rng(0)
    V, draws = rng.normal(size=8), 4000
    q = model.q(0, V)
    for s, up in enumerate(model.running):
        for a in range(model.A):
            seen = [V[np.ravel_multi_index(next_machines(model, up, a, rng), (2, 2, 2))] for _ in range(draws)]
            expected = up.sum() - 0.75 * (a > 0) + np.mean(seen)
            assert q[a, s] == pytest.approx(expected, abs=4 * np.std(seen) / np.sqrt(draws) + 1e-9)


def test_rows_are_distributions() -> None:
    P = small().P
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_planning_in_such_a_model_is_consistent() -> None:
    model: Model = small()
    best = optimum(model)
    greedy = policy_value(model, lambda h: best.Q[h].argmax(axis=1))
    np.testing.assert_allclose(greedy, best.V)
    assert (policy_value(model, uniform_policy(model)) <= best.V + 1e-12).all()
    one_hot = policy_value(model, lambda h: np.eye(4)[best.Q[h].argmax(axis=1)])
    np.testing.assert_allclose(one_hot, greedy)


def test_features_are_a_constant_and_the_machines() -> None:
    table = machine_features(small()).table()
    np.testing.assert_allclose(table[:, 0, 0] * 2, 1.0)
    np.testing.assert_allclose(table[:, 0, 1:4] * 2, small().running)
    np.testing.assert_array_equal(table[:, 1, 4:8], table[:, 0, :4])
    assert np.linalg.norm(table, axis=-1).max() <= 1 + 1e-12


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyRDDLGym", None)
    with pytest.raises(linmdp.InvalidParameter, match=r"needs pyRDDLGym, .*pip install 'linmdp\[rddl\]'"):
        linmdp.make_env("rddl:SysAdmin,instance=1")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rddl:Elevators", "There is no RDDL domain 'Elevators'"),
        ("rddl:SysAdmin,instance=11", r"'instance' parameter of rddl must be a whole number in \[1, 10\]"),
        ("rddl:SysAdmin,size=3", "There is no parameter of rddl 'size'"),
    ],
)
def test_bad_specs_are_refused_in_one_line(spec: str, words: str) -> None:
    with pytest.raises(linmdp.LinMDPError, match=words):
        linmdp.make_env(spec)


@pytest.fixture
def env() -> Any:
    for package in ("pyRDDLGym", "rddlrepository"):
        pytest.importorskip(package, reason="the extra 'rddl' is not installed", exc_type=ModuleNotFoundError)
    return linmdp.make_env("rddl:SysAdmin,instance=1")


def test_the_model_is_that_of_the_simulator(env: Any) -> None:
    """Rewards agree in every step; outcomes of each machine lie within four deviations of the model's chances."""
    model, rng = env.model, np.random.default_rng(0)
    assert (env.task.S, env.task.A, env.task.H, env.task.d) == (1024, 11, 40, 121)
    surplus, variance = np.zeros(10), np.zeros(10)
    for episode in range(60):
        state, _ = env.reset(seed=episode)
        assert state == 1023, "all machines run at first"
        for h in range(40):
            action = int(rng.integers(11))
            chance = model.stays_up[state].copy()
            if action:
                chance[action - 1] = 1.0
            paid = model.rewards[action, state]
            state, reward, terminated, truncated, _ = env.step(action)
            assert reward == pytest.approx(paid)
            assert (terminated, truncated) == (False, h == 39)
            surplus += model.running[state] - chance
            variance += chance * (1 - chance)
    assert (np.abs(surplus) <= 4 * np.sqrt(variance)).all()


def test_regret_is_exact_and_the_optimum_has_none(env: Any, capsys: pytest.CaptureFixture[str]) -> None:
    best = linmdp.run(env, linmdp.make_agent("optimal", env), episodes=2)
    random = linmdp.run(env, linmdp.RandomAgent(env.task), episodes=2)
    assert best.final_regret == pytest.approx(0.0, abs=1e-9)
    assert random.final_regret is not None
    assert random.final_regret > 10
    assert capsys.readouterr().out == ""


def test_instances_too_large_to_plan_in_are_refused(env: Any) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=r"at most 10 machines\. Got 3, which has 20"):
        linmdp.make_env("rddl:SysAdmin,instance=3")
