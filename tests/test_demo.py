"""`linmdp demo`: four studies, one page; what is there is not run again."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest

from command import linmdp
from linmdp.experiments import demo
from linmdp.runner.batch import jobs_for

SMALL = {"gym:CartPole-v1": "gym:FrozenLake-v1,H=9", "lock": "lock:H=3"}
NUMBERED = list(enumerate(demo.PARTS, start=7))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same studies in smaller environments, for a few episodes."""
    small = [p._replace(env=SMALL.get(p.env, f"synthetic:S={i},A=2,d=3,H=4"), episodes=12) for i, p in NUMBERED]
    monkeypatch.setattr(demo, "PARTS", small)


@pytest.mark.usefixtures("quick")
def test_it_shows_every_part_and_says_where_the_page_is(tmp_path: Path) -> None:
    done = linmdp("demo", "--out", str(tmp_path / "d"), "--jobs", "1")
    assert done.status == 0, done.err
    page = tmp_path / "d" / "demo.html"
    assert done.out.splitlines()[-1] == f"Look at {page}"
    text = page.read_text()
    assert text.count('<section class="panel"') == len(demo.PARTS)
    titles = [text.index(f"<h2>{part.title}") for part in demo.PARTS]
    assert titles == sorted(titles)
    for part in demo.PARTS:
        assert escape(part.words) in text
        assert part.title in done.out
    assert max(len(line) for line in done.out.splitlines() if line.startswith("|")) <= 100
    stored = (tmp_path / "d" / "runs.sqlite").read_bytes()
    again = linmdp("demo", "--out", str(tmp_path / "d"))
    assert again.out.splitlines()[-1] == done.out.splitlines()[-1]
    assert (tmp_path / "d" / "runs.sqlite").read_bytes() == stored


def test_every_run_is_a_valid_one() -> None:
    for part in demo.PARTS:
        jobs_for(part.env, part.agents, episodes=part.episodes, seeds=part.seeds, eval_every=part.eval_every)
