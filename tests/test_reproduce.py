"""The paper's experiments: every item from one command, resumable, with the baselines beside the agents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linmdp.errors import LinMDPError
from linmdp.experiments import paper, paper_findings
from linmdp.experiments.paper import BETAS, FIGURES, ITEMS, SCALES, SETTINGS, jobs_of, with_setting
from linmdp.experiments.reproduce import chosen_items, reproduce
from linmdp.results.store import Store
from linmdp.runner.batch import jobs_for
from linmdp.runner.estimate import estimate, in_words
from linmdp.runner.registry import make_agent, make_env

TINY = SCALES["quick"]._replace(
    K=(20, 30), seeds=2, cost_seeds=2, eval_every=5, rhos=(0.5, 0.75), adaptive=((10, 0.5, 0.75),), tuning_K=15
)
SMALL_ENV = "synthetic:S=12,A=3,d=4,H=5"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", TINY)
    monkeypatch.setattr(paper, "ENV", SMALL_ENV)
    monkeypatch.setattr(paper, "BOUNDS_K", (8, 16, 32))


@pytest.mark.usefixtures("tiny")
def test_every_item_is_drawn_once_and_resumes_without_running_again(tmp_path: Path) -> None:
    said: list[str] = []
    text = reproduce([*FIGURES, "bounds"], "quick", tmp_path, 1, said.append)
    for item in FIGURES:
        for kind in ("png", "svg"):
            assert (tmp_path / f"{item}.{kind}").stat().st_size > 5000
        assert f"## {item}" in text
    for words in ("random policy's regret", "the least mean is at beta", "K^1.75", "storage=counts (ours)"):
        assert words in text
    assert len(said) == 2  # the two estimates
    stored = len(Store(tmp_path).keys())
    said.clear()
    again = reproduce([*FIGURES, "bounds"], "quick", tmp_path, 1, said.append)
    assert (again, said, len(Store(tmp_path).keys())) == (text, [], stored)
    assert (tmp_path / "reproduce.md").read_text() == text


def test_every_run_of_the_paper_is_a_valid_one() -> None:
    env = make_env(SMALL_ENV)
    for scale in SCALES.values():
        for item in FIGURES:
            for setting in SETTINGS:
                runs = jobs_of(item, scale, setting, 0.05)
                assert {r.episodes for r in runs} <= set(scale.K)
                for agent in {r.agent for r in runs}:
                    make_agent(agent, env, 100)
                if FIGURES[item].metric == "regret":
                    assert {"random", "optimal", "constant"} <= {r.agent for r in runs}


def test_the_published_setting_is_the_papers() -> None:
    agent = make_agent(with_setting("lsvi-ucb-fixed:rho=0.5", "published", 0.1, "features"), make_env(SMALL_ENV), 100)
    assert agent.get_params() == {
        "beta": "published",
        "lam": 0.1,
        "cap": "H",
        "ties": "first",
        "storage": "features",
        "dtype": "float64",
        "episodes": 100,
        "rho": 0.5,
        "stationary": "auto",
        "discount": "auto",
        "lookahead": "auto",
        "max_bytes": None,
        "M": None,
        "probes": "reservoir",
        "correction": "slope",
        "inflate": 0.0,
    }


def test_items() -> None:
    assert chosen_items([]) == list(FIGURES)
    assert chosen_items(["bounds", "fig-time", "bounds"]) == ["bounds", "fig-time"]
    assert chosen_items(["all"]) == list(ITEMS)
    assert chosen_items(["table-time", "bounds"]) == ["table-time", "bounds"]
    with pytest.raises(LinMDPError, match=r"no item 'fig-regrets'. Did you mean 'fig-regret'"):
        chosen_items(["fig-regrets"])


def test_the_chosen_beta_has_the_least_mean_regret() -> None:
    agents, K = ["lsvi-ucb", "lsvi-ucb-fixed:rho=0.75"], 50

    class Fake:
        def __init__(self, regret: float) -> None:
            self.curve = np.array([[0.0, regret]])

    found = {
        (with_setting(a, "learning", beta), K): Fake(abs(i - 2) + j)
        for i, beta in enumerate(BETAS)
        for j, a in enumerate(agents)
    }
    beta, table = paper_findings.choose_beta(found, agents, K)  # type: ignore[arg-type]
    assert beta == BETAS[2]
    assert len(table.splitlines()) == 2 + len(BETAS)


def test_an_estimate_grows_with_the_work() -> None:
    few = jobs_for(SMALL_ENV, ["lsvi-ucb:storage=features"], episodes=50, seeds=1)
    many = jobs_for(SMALL_ENV, ["lsvi-ucb:storage=features"], episodes=5000, seeds=2)
    assert 0 == estimate([]) < estimate(few, processes=1) < estimate(many, processes=1)
    assert [in_words(s) for s in (0.2, 60, 600, 9000)] == [
        "about 1 seconds",
        "about 60 seconds",
        "about 10 minutes",
        "about 2.5 hours",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig-regrets"], "Did you mean 'fig-regret'"),
        (["--scale", "huge"], "'scale' parameter"),
        (["fig-space", "--jobs", "0"], "'jobs' parameter"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path, arguments: list[str], words: str) -> None:
    out = tmp_path / "out"
    call = [sys.executable, "-c", "from linmdp.cli import main; main()", "reproduce", *arguments, "--out", str(out)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
