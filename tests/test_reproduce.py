"""The paper's experiments: every item from one command, resumable, with the baselines beside the agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linmdp.errors import LinMDPError
from linmdp.experiments import paper, paper_findings
from linmdp.experiments.paper import (
    BASELINES,
    BETAS,
    FIGURES,
    ITEMS,
    SCALES,
    SETTINGS,
    cost_jobs,
    in_batches,
    longest_first,
    regret_jobs,
    with_setting,
)
from linmdp.experiments.paper_claims import FAILS, HOLDS, OPEN, _indistinguishable
from linmdp.experiments.reproduce import chosen_items, reproduce
from linmdp.results.stats import Interval
from linmdp.results.store import Store
from linmdp.runner.batch import jobs_for, units
from linmdp.runner.registry import make_agent, make_env
from linmdp.runner.start import estimate, in_words
from linmdp.runner.sweep import run_key

TINY = SCALES["quick"]._replace(
    K=(20, 30, 45),
    seeds=2,
    cost_seeds=2,
    stored_to=30,
    eval_every=5,
    rhos=(0.5, 0.75),
    adaptive=((10, 0.5, 0.75), (10, 0.75, 0.75)),
    tuning_K=15,
)
SMALL_ENV = "synthetic:S=12,A=3,d=4,H=5"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", TINY)
    monkeypatch.setattr(paper, "ENV", SMALL_ENV)


@pytest.mark.usefixtures("tiny")
def test_every_item_is_drawn_once_and_resumes_without_running_again(tmp_path: Path) -> None:
    said: list[str] = []
    text = reproduce([*FIGURES, "bounds"], "quick", tmp_path, 1, said.append)
    for item in FIGURES:
        for kind in ("png", "svg"):
            assert (tmp_path / f"{item}.{kind}").stat().st_size > 5000
        assert f"## {item}" in text
    for words in ("of random", "the least mean is at beta", "K^1.75", "storage=counts (ours)", "cannot be told"):
        assert words in text
    assert len(said) == 3  # estimates: to choose beta, for regret, for space and time
    stored = len(Store(tmp_path).keys())
    said.clear()
    again = reproduce([*FIGURES, "bounds"], "quick", tmp_path, 1, said.append)
    assert (again, said, len(Store(tmp_path).keys())) == (text, [], stored)
    assert (tmp_path / "reproduce.md").read_text() == text


@pytest.mark.usefixtures("tiny")
def test_a_store_that_a_gpu_has_filled_is_drawn_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", scale := TINY._replace(storage="counts"))
    with pytest.raises(LinMDPError, match="'device' parameter of linmdp must be 'cpu' where"):
        reproduce(["fig-regret"], "quick", tmp_path, 1, lambda _: None, "cuda")
    text = reproduce(["fig-regret"], "quick", tmp_path, 1, lambda _: None)
    store, beta = Store(tmp_path), float(text.partition("least mean is at beta = ")[2].partition(".\n")[0])
    regret = [job for s in SETTINGS for job in regret_jobs("fig-regret", scale, s, beta, "cuda")]
    for job in {*paper.tuning_jobs(scale, "cuda"), *regret}:
        if job.device == "cuda":  # baselines are run on processors
            (result,) = store.results({run_key(job._replace(device="cpu"))})
            store.add([(run_key(job), result)])
    assert reproduce(["fig-regret"], "quick", tmp_path, 1, lambda _: None, "cuda") == text


@pytest.mark.usefixtures("tiny")
def test_more_seeds_go_on_from_those_that_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "quick", TINY._replace(K=(20,), storage="counts"))
    found, said = list[int](), list[str]()
    for seeds in (1, 3):
        text = reproduce(["fig-regret"], "quick", tmp_path, 1, said.append, seeds=seeds)
        assert f"| LSVI-UCB                               | {seeds} " in text
        found.append(len(Store(tmp_path).keys()))
    drawn = 2 * 3 + len(BASELINES)  # three agents in two settings, and the baselines
    assert found[1] - found[0] == 2 * drawn
    assert said[-1].startswith(f"{2 * drawn} of {3 * drawn} runs for regret")


def test_every_run_of_the_paper_is_a_valid_one() -> None:
    env = make_env(SMALL_ENV)
    for scale in SCALES.values():
        for item in (*FIGURES, "bounds"):
            cost = cost_jobs(item, scale, 0.05)
            regret = [job for s in SETTINGS for job in regret_jobs(item, scale, s, 0.05, "cuda")]
            assert {r.episodes for r in cost + regret} <= set(scale.K)
            for agent in {r.agent for r in cost + regret}:
                make_agent(agent, env, 100)
            assert all(r.device == "cpu" for r in cost), "time is measured on processors"
            there = {r.agent for r in regret if r.device == "cuda"}
            assert there == ({r.agent for r in regret} - {*BASELINES} if scale.storage == "counts" else set())
            assert (
                max((r.episodes for r in cost if r.agent.startswith("lsvi-ucb:") and "features" in r.agent), default=0)
                <= scale.stored_to
            )
            if item in FIGURES and FIGURES[item].metric == "regret":
                assert {"random", "optimal", "constant"} <= {r.agent for r in regret}


def test_runs_that_share_a_gpu_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linmdp.runner.batch.gpu_bytes", lambda: 1 << 40)
    monkeypatch.setattr(paper, "ENV", SMALL_ENV)
    scale = SCALES["paper"]
    every = [job for i in FIGURES for s in SETTINGS for job in regret_jobs(i, scale, s, 0.05, "cuda")]
    batches = units([job for job in dict.fromkeys(in_batches(every)) if job.device == "cuda"])
    assert len(batches) == len(scale.K) * len(SETTINGS) * 2  # Adaptive decides for all of its runs together


def test_the_longest_runs_come_first() -> None:
    planned = longest_first(job for item in FIGURES for job in cost_jobs(item, SCALES["paper"], 0.05))
    assert (planned[0].episodes, planned[-1].episodes) == (12_000, 1_500)


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.97, 1.03, HOLDS), (1.2, 1.3, FAILS), (0.8, 0.9, FAILS), (0.9, 1.2, OPEN)]
)
def test_a_verdict_follows_from_the_interval(low: float, high: float, verdict: str) -> None:
    same = Interval(1.0, 1.0, 1.0)
    assert _indistinguishable([same, Interval((low + high) / 2, low, high)]) == verdict


def test_the_published_setting_is_the_papers() -> None:
    agent = make_agent(with_setting("lsvi-ucb-fixed:rho=0.5", "published", 0.1, "features"), make_env(SMALL_ENV), 100)
    assert agent.get_params() == {
        "beta": "published",
        "lam": 0.1,
        "cap": "H",
        "ties": "first",
        "storage": "features",
        "memory": None,
        "dtype": "float64",
        "episodes": 100,
        "rho": 0.5,
        "stationary": "auto",
        "discount": "auto",
        "lookahead": "auto",
        "max_bytes": None,
        "M": None,
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
        "about 1 second",
        "about 60 seconds",
        "about 10 minutes",
        "about 2.5 hours",
    ]
