"""`linmdp watch`: what is shown is what the agent believes, of a folder and of a file, as a page and as a GIF."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chromium
import linmdp
from command import linmdp as command
from linmdp.experiments.watch import bonus
from linmdp.report.html import _pictures

LAKE = "gym:FrozenLake-v1,is_slippery=false,H=8"


@pytest.mark.parametrize("storage", ["features", "states", "counts", "centres"])
def test_the_bonus_is_that_of_the_algorithm(storage: str) -> None:
    env = linmdp.make_env("synthetic:S=8,A=3,d=4,H=3")
    agent = linmdp.make_agent(f"lsvi-ucb:beta=0.03,lam=1,storage={storage}", env)
    seen: list[Any] = []
    observe = agent.observe

    def noted(h: int, state: Any, action: int, *rest: Any) -> None:
        seen.append((h, state, action))
        observe(h, state, action, *rest)

    setattr(agent, "observe", noted)  # noqa: B010
    linmdp.run(env, agent, episodes=6)
    agent.begin_episode()
    features: Any = env.task.features
    table = features.table()
    for h, state in np.ndindex(3, 8):
        Lambda = np.eye(4) + sum(np.outer(table[s, a], table[s, a]) for g, s, a in seen if g == h)
        forms = np.einsum("ai,ij,aj->a", table[state], np.linalg.inv(Lambda), table[state])
        free = agent.q_values(h, state) < agent.caps[h] - 1e-9  # type: ignore[index]
        assert free.any()
        assert bonus(agent, h, state)[free] == pytest.approx(0.03 * np.sqrt(forms)[free])


def test_agents_without_a_bonus_have_none() -> None:
    env = linmdp.make_env("lock:H=3")
    for name in ("random", "rlsvi", "q-learning"):
        agent = linmdp.make_agent(name, env)
        agent.begin_episode()
        assert not bonus(agent, 0, 0).any()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("watched") / "lake"
    assert command("run", LAKE, "auto", "-k", "30", "--out", str(out)).status == 0
    done = command("watch", str(out))
    assert (done.status, done.err) == (0, f"written: {out}/watch.html\n")
    return out


def test_a_page_has_the_episode(folder: Path) -> None:
    text = (folder / "watch.html").read_text()
    frames = re.search(r'id="frames">(.*?)</script>', text, re.DOTALL)
    assert frames is not None
    (episode,) = json.loads(frames[1])
    assert 1 <= len(episode["frames"]) <= 8
    assert episode["title"] == "An episode"
    assert "http" not in text.replace("http-equiv", "")


def test_a_saved_agent_and_a_gif(folder: Path, tmp_path: Path) -> None:
    (saved,) = (folder / "agents").iterdir()
    done = command("watch", str(saved), "-o", str(tmp_path / "a.gif"))
    assert done.status == 0, done.err
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF89a")
    ((name, data, _),) = _pictures(tmp_path)  # of a report of the folder
    assert name == "a.gif"
    assert data.startswith("data:image/gif;base64,R0lGODlh")


def test_without_pygame_the_values_are_shown_and_a_line_says_how_to_get_pictures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)  # as if it were not installed
    done = command("watch", str(folder), "-o", str(tmp_path / "page.html"))
    assert done.status == 0
    assert "is not drawn, only its values" in done.err
    assert "pip install 'linmdp[watch]'" in done.err
    assert "An episode" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "RUN must be a folder of 'run --out', or a saved agent. There is no 'nowhere'."),
        (["FOLDER", "-o", "x.mp4"], "The file of 'watch' must end in .html or .gif. Got 'x.mp4'."),
        (["FOLDER", "--number", "2"], "The 'number' parameter of export must be"),
    ],
)
def test_bad_input_is_one_line(folder: Path, arguments: list[str], words: str) -> None:
    done = command("watch", *(str(folder) if a == "FOLDER" else a for a in arguments))
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert words in done.err


@pytest.mark.skipif(chromium.find() is None, reason="there is no Chromium")
def test_the_slider_changes_the_picture(folder: Path, tmp_path: Path) -> None:
    with chromium.Browser(tmp_path / "profile") as browser:
        browser.open(folder / "watch.html")
        first = browser.js("document.querySelector('img').src")
        browser.js(
            "(() => { const s = document.querySelector('input'); s.value = 1; s.dispatchEvent(new Event('input')) })()"
        )
        assert browser.js("document.querySelector('img').src") != first
        browser.js("document.querySelector('button').click()")
        browser.wait("Number(document.querySelector('input').value) > 1")
        assert not [e for e in browser.events if e.get("method") == "Log.entryAdded"]
