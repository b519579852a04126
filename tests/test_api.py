"""Comparisons and sweeps in Python: the same runs as on the command line, and four ways to look at them."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.plugins import REGISTERED
from linmdp.types import RunResult

ENV = "lock:H=4,A=3"
LEARNER = "lsvi-ucb:beta=1,lam=1"
SWEEP = {
    "name": "two",
    "runs": [{"env": [ENV, "riverswim:H=3"], "agents": [LEARNER, "random"], "episodes": 12, "seeds": 2}],
}


class Stubborn(linmdp.ConstantAgent):
    """An agent that nobody has registered."""

    name = "stubborn"


@pytest.fixture(scope="module")
def compared() -> linmdp.Comparison:
    return linmdp.compare(ENV, [LEARNER, Stubborn], episodes=20, seeds=3, jobs=1)


def curves(results: Any) -> list[Any]:
    return [(r.agent, r.seed, r.rewards.tolist(), None if r.regret is None else r.regret.tolist()) for r in results]


def test_it_is_what_the_command_line_computes() -> None:
    done = command("compare", ENV, LEARNER, "-k", "20", "--seed", "5", "--json", "--jobs", "1")
    theirs = [json.loads(line) for line in done.out.splitlines()]
    mine = linmdp.compare(ENV, LEARNER, episodes=20, seed=5, jobs=1)
    assert [(r.env, r.agent, r.seed, list(r.regret)) for r in mine if r.regret is not None] == [
        (r["env"], r["agent"], r["seed"], r["regret"]) for r in theirs
    ]
    assert {r.agent for r in mine} == {LEARNER, "random", "optimal"}
    assert {r.agent for r in linmdp.compare(ENV, LEARNER, episodes=2, jobs=1, baselines=False)} == {LEARNER}


def test_agents_may_be_classes_with_parameters(compared: linmdp.Comparison) -> None:
    agents: list[Any] = [
        Stubborn,
        (Stubborn, {"action": 1}),
        partial(Stubborn, action=2),
        (linmdp.LSVIUCB, {"beta": 0.5, "ties": "first", "max_bytes": None, "stationary": True}),
    ]
    found = linmdp.compare(ENV, agents, episodes=5, seeds=2, jobs=2)
    names = ["stubborn", "stubborn:action=1", "stubborn:action=2"]
    names += ["lsvi-ucb:beta=0.5,ties=first,max_bytes=none,stationary=true", "random", "optimal"]
    assert [r.agent for r in found] == [name for name in names for _ in range(2)]
    assert found[2].params["action"] == 1
    assert REGISTERED.get("linmdp.agents", {}) == {}, "it was lent, not kept"
    with pytest.raises(linmdp.UnknownName):
        linmdp.make_agent("stubborn", linmdp.make_env(ENV))


class Nameless(linmdp.LSVIUCB):
    """It has the name of another class."""


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ([Nameless], "The name of a new agent must be free. Got 'lsvi-ucb'"),
        ([3], "must be a spec, a class"),
        ([(Stubborn, {"action": [1]})], "The 'action' parameter of stubborn must be a number"),
        ([(Stubborn, {"action": "a,b"})], "The 'action' parameter of stubborn must be a number"),
        ([(Stubborn, {"actoin": 1})], "Did you mean 'action'"),
        ([partial(Stubborn, None)], "must be a spec, a class"),  # type: ignore[arg-type]
        ([LEARNER, LEARNER], "Each agent of a comparison must be given once"),
        ([linmdp.Agent], "must define act, policy, q_values"),
    ],
)
def test_bad_agents_are_one_line(agents: Any, words: str) -> None:
    with pytest.raises(linmdp.LinMDPError, match=words):
        linmdp.compare(ENV, agents, episodes=2, jobs=1)
    assert REGISTERED.get("linmdp.agents", {}) == {}


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_environment_may_be_an_object(jobs: int) -> None:
    env: Any = linmdp.make_env(ENV)
    expected = curves(linmdp.compare(ENV, LEARNER, episodes=10, seeds=4, jobs=1))
    for given in (env, env.model):
        found = linmdp.compare(given, LEARNER, episodes=10, seeds=4, jobs=jobs)
        assert curves(found) == expected
        assert {r.env for r in found} == {"lock"}
    lake = linmdp.compare(linmdp.GymTask("FrozenLake-v1", H=5), "random", episodes=4, jobs=jobs)
    assert curves(lake) == curves(linmdp.compare("gym:FrozenLake-v1,H=5", "random", episodes=4, jobs=1))
    with pytest.raises(linmdp.InvalidData, match="must return a Gymnasium environment"):
        linmdp.compare(3, "random", episodes=4, jobs=jobs)


def test_two_environments_one_after_the_other_are_not_mixed_up() -> None:
    """They go by names of their own, also where models are kept from one run to the next."""
    short, long = (linmdp.compare(linmdp.make_env(f"lock:H={H}"), LEARNER, episodes=3, jobs=1) for H in (3, 6))
    assert short[0].updates < long[0].updates


def test_a_sweep_is_that_of_the_file_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = linmdp.sweep(SWEEP, jobs=1)
    assert len(direct) == 8
    stored = linmdp.sweep(SWEEP, out=tmp_path / "out", jobs=1)
    assert [(r.env, r.agent, r.seed) for r in stored] == [(r.env, r.agent, r.seed) for r in direct]
    np.testing.assert_allclose([r.reward for r in stored], [r.reward for r in direct], rtol=1e-5)
    file = tmp_path / "sweep.toml"
    file.write_text(f'name = "two"\n[[runs]]\nenv = "{ENV}"\nagents = ["{LEARNER}"]\nepisodes = 12\nseeds = 2\n')
    monkeypatch.setattr("linmdp.runner.sweep.run_units", None)  # nothing is left to run
    again = linmdp.sweep(file, out=tmp_path / "out", jobs=1)
    assert curves(again) == curves(stored[:2])
    with pytest.raises(linmdp.InvalidParameter, match=r"runs\.0\.agents"):
        linmdp.sweep({"name": "x", "runs": [{"env": ENV, "agents": [], "episodes": 3}]})


def test_it_is_a_sequence(compared: linmdp.Comparison) -> None:
    assert len(compared) == 12
    assert isinstance(compared[0], RunResult)
    assert isinstance(compared[:3], linmdp.Comparison)
    assert {r.agent for r in compared[:3]} == {LEARNER}
    assert {r.agent for r in compared.select(agent="stubborn", seed=1)} == {"stubborn"}
    assert len(compared.select(agent="stubborn", seed=1)) == 1


def test_its_table_is_that_of_the_command_line(compared: linmdp.Comparison, tmp_path: Path) -> None:
    linmdp.sweep(SWEEP, out=tmp_path, jobs=1)
    shown = command("table", str(tmp_path)).out
    assert shown.startswith(f"{ENV}: 12 episodes\n\n| agent")
    assert shown == linmdp.sweep(SWEEP, out=tmp_path).table() + "\n"
    assert "| stubborn " in str(compared)
    assert linmdp.Comparison([]).table() == "There are no runs yet."


def test_html_has_a_row_per_agent_and_is_escaped(compared: linmdp.Comparison) -> None:
    html = compared._repr_html_()
    assert html.count("<tr>") == 1 + 4
    best = compared.select(agent="optimal")
    assert "<td>optimal</td><td>3</td><td>0.0</td><td>1</td>" in best._repr_html_()
    named = linmdp.compare(linmdp.GymTask("FrozenLake-v1", H=5), "random", episodes=2, seeds=1, jobs=1)
    named[0].env = "<script>"
    assert "&lt;script&gt;" in named._repr_html_()
    assert "<script>" not in named._repr_html_()
    assert "<td>random</td><td>1</td><td>-</td><td>0</td>" in named._repr_html_()


def test_rows_hold_everything_but_the_curve(compared: linmdp.Comparison) -> None:
    rows = compared.rows()
    assert [row["final_regret"] for row in rows] == [r.final_regret for r in compared]
    assert rows[0]["param.beta"] == 1
    assert "regret" not in rows[0]
    points = compared.rows(curves=True)
    assert len(points) == 12 * 20
    assert points[19]["episode"] == 19
    assert points[19]["regret"] == compared[0].final_regret
    assert points[19]["reward"] == pytest.approx(compared[0].reward)


def test_a_data_frame_has_the_rows(compared: linmdp.Comparison) -> None:
    pandas = pytest.importorskip("pandas")
    frame = compared.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["final_regret"]) == [r.final_regret for r in compared]
    assert len(compared.to_pandas(curves=True)) == 12 * 20


@pytest.mark.parametrize(
    ("module", "call", "extra"), [("pandas", "to_pandas", "pandas"), ("matplotlib.pyplot", "plot", "figures")]
)
def test_what_is_not_installed_is_named(
    compared: linmdp.Comparison, monkeypatch: pytest.MonkeyPatch, module: str, call: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(linmdp.LinMDPError, match=rf"pip install 'linmdp\[{extra}\]'"):
        getattr(compared, call)()


def test_the_figure_shows_every_agent(compared: linmdp.Comparison) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, found = plt.subplots()
    axes: Any = found
    assert id(compared.plot(axes)) == id(axes)
    assert len(axes.lines) == 4
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["LSVI-UCB (beta=1, lam=1)", "stubborn", "random", "optimal"]
    last = axes.lines[0].get_ydata()[-1]
    assert last == pytest.approx(np.mean([r.final_regret for r in compared[:3]]))
    plt.close(figure)
    lake = linmdp.compare("gym:FrozenLake-v1,H=5", "constant", episodes=100, jobs=1)
    own: Any = lake.plot()
    assert own.get_ylabel() == "return of an episode"
    assert len(own.lines[0].get_ydata()) == 60
    plt.close(own.figure)
    with pytest.raises(linmdp.InvalidParameter, match=r"use select\(env=..., episodes=...\). Got 2 of them"):
        linmdp.sweep(SWEEP, jobs=1).plot()


def test_python_m_linmdp_and_completion(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    monkeypatch.setattr(sys, "argv", ["linmdp", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("linmdp", run_name="__main__")
    assert capsys.readouterr().out.strip() == linmdp.__version__
    for name, value in {"_LINMDP_COMPLETE": "complete_bash", "COMP_WORDS": "linmdp swe", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    done = command()
    assert done.out.split() == ["sweep"]
