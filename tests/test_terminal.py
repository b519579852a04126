"""What a newcomer sees in a terminal: help, listings, completion, tables that fit."""

from __future__ import annotations

import re

import pytest

from command import linmdp
from linmdp.cli.listing import COMMON, explained
from linmdp.cli.main import GROUPS, app
from linmdp.report.tables import comparison_table
from linmdp.results.summary import by_agent
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.runner.registry import AGENTS, ENVS, agent_parameters, env_parameters


def test_every_parameter_is_explained() -> None:
    for names, parameters in ((AGENTS, agent_parameters), (ENVS, env_parameters)):
        for name in names:
            known = COMMON | explained(names[name])
            assert not [key for key in parameters(name) if not known.get(key)], name


def test_one_agent_or_environment_is_explained_with_an_example() -> None:
    shown = linmdp("agents", "lsvi-ucb-fixed").out
    assert re.search(r"^  rho=0\.75 +\w", shown, re.MULTILINE)
    assert re.search(r"^  beta=auto +width of the confidence bonus", shown, re.MULTILINE)
    assert "example: linmdp compare lock lsvi-ucb-fixed lsvi-ucb-fixed:" in shown
    lock = linmdp("envs", "lock").out
    assert "distractor=0.01  what a wrong action pays at once" in lock
    assert max(map(len, lock.splitlines()[2:])) <= 100
    wrong = linmdp("agents", "lsvi-ucb-fol")
    assert (wrong.status, wrong.err) == (2, "linmdp: There is no agent 'lsvi-ucb-fol'. Did you mean 'lsvi-ucb-fold'?\n")


def test_help_lists_every_command_in_a_group_and_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = linmdp("--help").out
    assert {name for names in GROUPS.values() for name in names} == {
        c.callback.__name__ for c in app.registered_commands if c.callback
    }
    assert [line for line in shown.splitlines() if line.endswith(":")] == ["Options:", *(f"{g}:" for g in GROUPS)]
    assert "  compare    Compare agents on the same seeds, beside random and optimal play\n" in shown
    for name in ("", *(name for names in GROUPS.values() for name in names)):
        lines = linmdp(*name.split(), "--help").out.splitlines()
        assert len(lines) <= 40, name
        assert max(map(len, lines)) <= 80, name


def test_without_a_command_it_shows_the_few_that_matter_and_they_can_be_given() -> None:
    lines = linmdp().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines if line.startswith("linmdp ")] == ["demo", "check", "run", "watch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_is_completed(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LINMDP_COMPLETE", f"source_{shell}")
    assert f"_LINMDP_COMPLETE=complete_{shell}" in linmdp().out


@pytest.mark.parametrize(
    ("typed", "found"), [("run lo", ["lock"]), ("run lock lsvi-ucb-f", ["lsvi-ucb-fixed", "lsvi-ucb-fold"])]
)
def test_names_are_completed(typed: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LINMDP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"linmdp {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    assert linmdp().out.split() == found


def test_a_table_fits_and_has_no_empty_column() -> None:
    agents = ["lsvi-ucb:beta=0.05,lam=0.1,storage=features,ties=first,cap=H", "random"]
    rows = by_agent(list(run_jobs(jobs_for("lock:H=3", agents, episodes=20, seeds=2), processes=1)))
    head, *_ = lines = [line for line in comparison_table(rows).splitlines() if line.startswith("|")]
    assert max(map(len, lines)) == 100
    words = ["agent", "regret [95% interval]", "return at the end", "agent memory"]
    assert [word.strip() for word in head.strip("|").split("|")] == words
    assert "| lsvi-ucb:beta=0.05,lam=0.1,storage=f…" in lines[2]
    known = by_agent(list(run_jobs(jobs_for("gym:FrozenLake-v1,H=4", ["random"], episodes=20, seeds=2), processes=1)))
    columns = comparison_table(known).splitlines()[0]
    assert "regret" not in columns
    assert "resets" not in columns
    assert "return at the end" in columns


def test_what_the_environment_chose_is_said_once() -> None:
    jobs = jobs_for("gym:CartPole-v1,H=5", ["lsvi-ucb", "random"], episodes=3, seeds=1)
    said = comparison_table(by_agent(list(run_jobs(jobs, processes=1)))).splitlines()
    (own,) = [line for line in said if line.startswith("chosen ")]
    assert own.startswith("chosen by lsvi-ucb: features=auto, d=200, ")
    jobs += jobs_for("gym:CartPole-v1,H=5", ["lsvi-ucb:storage=centres,M=20,lam=0.5"], episodes=3, seeds=1)
    said = comparison_table(by_agent(list(run_jobs(jobs, processes=1)))).splitlines()
    everyone, *others = [line for line in said if line.startswith("chosen ")]
    assert everyone.startswith("chosen for all: features=auto, d=200")
    assert all("features" not in line for line in others)
