"""The live page: its tasks are those of Python, it learns in a browser, and it needs no network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import chromium
import linmdp
from test_docs_site import script

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "_static" / "live.html"
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")
needs_chromium = pytest.mark.skipif(chromium.find() is None, reason="no Chromium here")


def test_the_page_is_made_of_its_sources_as_they_are() -> None:
    """Whoever changes docs/live or the loader must run docs/live_page.py."""
    text = PAGE.read_text()
    tasks = json.loads(re.findall(r"^const TASKS = (\{.*\});$", text, flags=re.MULTILINE)[0])
    assert script("live_page").page(tasks) == text


def asked(tmp_path: Path, code: str) -> Any:
    script = tmp_path / "asked.mjs"
    script.write_text(f'import {{ CartPole, Sensor }} from "{DOCS}/live/tasks.mjs";\n{code}')
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@needs_node
def test_cartpole_moves_as_in_gymnasium(tmp_path: Path) -> None:
    env: Any = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(0)
    starts, actions, expected = rng.uniform(-0.05, 0.05, (20, 4)), rng.integers(2, size=(20, 60)), []
    for start, plan in zip(starts, actions, strict=True):
        env.reset(seed=0)
        env.state = start
        for action in plan:
            _, reward, terminated, _, _ = env.step(int(action))
            expected.append([*env.state, reward, float(terminated)])
            if terminated:
                break
    found = asked(
        tmp_path,
        f"const found = [], starts = {starts.tolist()}, plans = {actions.tolist()};\n"
        "starts.forEach((start, i) => { const task = new CartPole(); task.state = start;\n"
        "  for (const action of plans[i]) { const { reward, terminated } = task.step(action);\n"
        "    found.push([...task.state, reward, +terminated]); if (terminated) break; } });\n"
        "console.log(JSON.stringify(found));",
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@needs_node
def test_the_sensor_has_the_model_of_python(tmp_path: Path) -> None:
    model = linmdp.make_env("sensor").model
    assert model is not None
    found = asked(
        tmp_path,
        "const found = [];\n"
        "for (let b = 0; b <= 3; b++) for (let q = 0; q <= 2; q++) for (let w = 0; w <= 1; w++)\n"
        "  for (let a = 0; a < 3; a++) {\n"
        "    const { reward, next } = Sensor.outcomes([b, q, w], a), P = Array(24).fill(0);\n"
        "    for (const [chance, state] of next) P[Sensor.encode(state)] += chance; found.push([reward, ...P]); }\n"
        "console.log(JSON.stringify(found));",
    )
    table = model.features.table().reshape(-1, model.d)
    expected = np.hstack((table @ model.theta[0][:, None], table @ model.mu[0]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def shown(browser: chromium.Browser, task: str) -> None:
    """The page with a task, as fast as it can."""
    browser.open(PAGE)
    browser.wait("!!window.live?.run")
    browser.js(f"document.querySelector('nav input[value={task}]').click()")
    browser.wait(f"live.run?.name === '{task}'")
    slide(browser, "speed", 4)


def slide(browser: chromium.Browser, slider: str, value: int) -> None:
    browser.js(
        f"{{ const slider = document.getElementById('{slider}'); slider.value = {value};"
        " for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind)); }"
    )


@needs_chromium
class TestInABrowser:
    @pytest.mark.parametrize(("task", "episodes", "enough"), [("cartpole", 40, 5.0), ("sensor", 60, 2.0)])
    def test_it_learns_from_nothing_and_asks_no_network(
        self, browser: chromium.Browser, task: str, episodes: int, enough: float
    ) -> None:
        before = len(browser.events)
        shown(browser, task)
        browser.wait(f"live.run.returns.length >= {episodes}")
        found = browser.js("({ returns: live.run.returns, random: live.tasks[live.name].random })")
        assert np.mean(found["returns"][-20:]) > enough * found["random"]
        events = browser.events[before:]
        urls = [e["params"]["request"]["url"] for e in events if e.get("method") == "Network.requestWillBeSent"]
        assert urls == [PAGE.as_uri()]
        assert not [e for e in events if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def test_the_controls_do_what_they_say(self, browser: chromium.Browser) -> None:
        shown(browser, "sensor")
        browser.wait("live.run.returns.length > 2")
        slide(browser, "beta", 0)
        assert browser.js("live.run.learner.beta") == 0
        bytes_before = browser.js("live.run.learner.bytes")
        browser.js("window.old = live.run")
        slide(browser, "memory", 0)
        browser.wait("live.run && live.run !== window.old")
        assert browser.js("live.run.learner.bytes") < bytes_before
        assert browser.js("live.run.learner.beta") == 0  # the slider's, not the build's
        browser.js("document.getElementById('play').click()")
        steps = browser.js("live.run.steps")
        browser.js("new Promise((done) => setTimeout(done, 100))")
        assert browser.js("live.run.steps") == steps
        browser.js("window.old = live.run; document.getElementById('reset').click()")
        browser.wait("live.run !== window.old && live.run.steps === 0")

    @pytest.mark.parametrize("width", [390, 1024])
    def test_nothing_is_wider_than_the_window(self, browser: chromium.Browser, width: int) -> None:
        browser.size(width, 800, mobile=width < 500)
        shown(browser, "sensor")
        assert browser.js("document.documentElement.scrollWidth") <= width
