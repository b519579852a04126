"""The paper's tables of the linearized games: every mode, every policy, snapshots of one run, published figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linmdp.experiments.games as command
from linmdp.experiments.games import (
    ADAPTIVE,
    FIXED,
    GAME_SCALES,
    GAMES,
    MODES,
    PUBLISHED,
    REACHABLE,
    GameScale,
    Row,
    comparison,
    env_spec,
    learner_specs,
    reward_table,
    space_table,
    time_table,
    trained_models,
)
from linmdp.experiments.paper import TABLES
from linmdp.experiments.reproduce import reproduce
from linmdp.report.html import write_report
from linmdp.results.store import Store
from linmdp.runner.registry import make_agent, make_env
from linmdp.types import RunResult, cost_points
from test_verdict import result

TINY = GameScale(d=16, seeds=1, snapshots=(2, 3, 4), trial=1, anchors=8)
SMALL = GameScale(d=64, seeds=2, snapshots=(2, 4, 5))


def run_of(seed: int, rewards: list[float], regret: list[float] | None = None) -> RunResult:
    """A run that holds k MiB after k episodes, and has taken 10 k seconds and one a seed."""
    costs = [[k, 2.0**20 * k, 10.0 * k + seed] for k in range(1, len(rewards) + 1)]
    return result(rewards, [], seed=seed, regret=None if regret is None else np.cumsum(regret), costs=costs)


def rows(regret: bool = False) -> list[Row]:
    lost = [0.5, 0.5, 0.5, 0.5, 0.25] if regret else None
    learner = [run_of(seed, [1, 1, 2, 2, 4 + seed], lost) for seed in range(2)]
    constant = [run_of(seed, [3] * 5, lost) for seed in range(2)]
    return [Row("LSVI-UCB, tuned", "lsvi-ucb", learner), Row("constant:action=2, the best", "constant", constant)]


def cells(table: str, line: int) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[line].strip("|").split("|")]


def test_totals_at_the_snapshots_and_the_end_in_points() -> None:
    table = reward_table("Alien", "game", rows(), SMALL, points=20.0)
    assert cells(table, 0)[2:] == [*(f"total reward, {K}" for K in (2, 4, 5)), "points per episode, last 1"]
    assert cells(table, 2) == ["LSVI-UCB, tuned", "2", "2.0", "6.0", "10.5 [10.0, 11.0]", "90.0 [80.0, 100.0]"]
    assert cells(table, 3)[-1] == "60.0"


def test_regret_in_the_model_and_published_figures_in_their_mode() -> None:
    model = reward_table("Alien", "model", rows(regret=True), SMALL, points=20.0)
    assert cells(model, 2)[-2:] == ["0.450", "0.250"]
    published = reward_table("Alien", "published", rows(), SMALL, points=20.0)
    assert cells(published, 2)[-3:] == ["9927.16", "27798.32", "-"]
    assert cells(published, 3)[-3:] == ["-", "-", "-"]


def test_space_and_time_are_of_the_snapshots_and_compare_the_last_published() -> None:
    space = cells(space_table("Alien", rows(), SMALL), 2)
    assert space[2:5] == ["2 MiB", "4 MiB", "5 MiB"]
    assert space[5:] == ["0.988 GiB", "2.390 GiB", "-", f"{5 / (2.39 * 1024):.3f}"]
    time = cells(time_table("Alien", rows(), SMALL), 2)
    assert time[2] == "20.5 [20.0, 21.0]"
    assert time[-1] == f"1/{1.66 * 3600 / 40.5:.0f}"


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ((4, 5), "90.0 [80.0, 100.0] points per episode, above the best constant action (60.0)"),
        ((1, 1), "20.0 points per episode, below the best constant action (60.0)"),
        ((2, 6), "80.0 [40.0, 120.0] points per episode, not distinguishable from the best constant action (60.0)"),
    ],
)
def test_the_comparison_says_who_is_above_whom(last: tuple[float, float], words: str) -> None:
    learner = Row("LSVI-UCB, tuned", "lsvi-ucb", [run_of(s, [1, 1, 1, 1, last[s]]) for s in range(2)])
    assert words in comparison([learner, rows()[1]], SMALL, 20.0)


def test_the_published_figures_are_the_papers() -> None:
    assert {len(figures) for table in PUBLISHED.values() for game in table.values() for figures in game.values()} == {3}
    assert PUBLISHED["table-space"]["Alien"]["lsvi-ucb"][1] == 2.39
    assert PUBLISHED["table-time"]["Phoenix"][FIXED][2] == 1.476
    assert PUBLISHED["table-reward"]["Alien"][ADAPTIVE][1] == 27795.68


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # tau_c = 0.1 cannot be reached
def test_every_learner_of_every_mode_is_valid_and_snapshots_are_noted() -> None:
    for scale in GAME_SCALES.values():
        assert set(scale.snapshots) <= set(cost_points(scale.K))
    assert trained_models(GAME_SCALES["quick"], Path(), print) == {"Alien": "alien", "Phoenix": "phoenix"}
    for mode in MODES:
        env = make_env(env_spec("phoenix", mode, TINY))
        assert {"lsvi-ucb", FIXED, ADAPTIVE, REACHABLE} == {algorithm for _, algorithm in learner_specs(mode).values()}
        for spec in learner_specs(mode):
            make_agent(spec, env, 500)


def test_from_training_to_tables_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One game, a tiny model that is trained first, a few episodes; then all of it again from the store."""
    monkeypatch.setitem(GAME_SCALES, "paper", TINY)
    monkeypatch.delitem(GAMES, "Alien")
    monkeypatch.setattr(command, "STEPS", 20)
    monkeypatch.setattr(command, "TRANSITIONS", 600)
    for name in ("PROBE_EPISODES", "GAME_PROBE_EPISODES"):
        monkeypatch.setattr(f"linmdp.runner.start.{name}", 16)
    said: list[str] = []
    text = reproduce(TABLES, "paper", tmp_path, 1, said.append)
    begins = [words.partition(" ")[0] for words in said]
    assert begins == ["training", "24", "27"]  # 8 actions in 3 modes; 27 policies
    assert (tmp_path / "phoenix16.safetensors").exists()
    figures = ("10061.76", "2.605 GiB", "0.423 h")
    for words in ("DQN, tuned", "PPO, tuned", *figures, "the best learner", "constant:action="):
        assert words in text
    for item in TABLES:
        assert (tmp_path / f"{item}.md").read_text().strip() in text
    stored = len(Store(tmp_path).keys())
    said.clear()
    assert reproduce(TABLES, "paper", tmp_path, 1, said.append) == text
    assert (said, len(Store(tmp_path).keys())) == ([], stored)
    assert "Tables in the folder" in write_report(tmp_path).page.read_text()
