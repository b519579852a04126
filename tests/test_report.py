"""The report: one page that needs no network, shows what is stored, and trusts no name in it."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import chromium
from linmdp.errors import InvalidData, OutputError
from linmdp.report.html import plotly_script, write_report
from linmdp.report.plots import line_styles
from linmdp.report.section_data import MOST_AGENTS, Section, embedded, memory_is_wide, sections_of
from linmdp.results.curves import SHOWN, curve_at
from linmdp.results.run_folder import opened_folder, ran, read_folder
from linmdp.results.store import Store
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import RunResult

ENV = "synthetic:S=12,A=3,d=4,H=5"
FIXED = "lsvi-ucb-fixed:rho=0.5"
AGENTS = ("lsvi-ucb", FIXED, "random", "optimal")
HOSTILE = "x</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>$\\frac{%{x}<b>"
COMMAND = "linmdp sweep <b>spec</b>.toml --out x"


def runs(env: str = ENV, agents: tuple[str, ...] = AGENTS, episodes: int = 60, seeds: int = 3) -> list[RunResult]:
    return list(run_jobs(jobs_for(env, agents, episodes=episodes, seeds=seeds), processes=1))


def stored(folder: Path, results: list[RunResult]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    store.add([(f"run {i}", r) for i, r in enumerate(results)])
    store.note("command", COMMAND)
    store.close()
    return folder


def sections(results: list[RunResult]) -> list[Section]:
    kept = [ran(r, "", place) for place, r in enumerate(results)]
    return sections_of(kept, lambda some: [results[r.place] for r in some])


def report(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"{before}\nfrom linmdp.cli import main; main()", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two environments, three K, a hostile agent, a warning, and a picture beside it; and its report."""
    results = [r for K in (20, 40, 60) for r in runs(episodes=K)] + runs("gym:FrozenLake-v1,H=9", AGENTS[:3])
    hostile = [replace(r, agent=HOSTILE, warnings=[f"it {HOSTILE}"]) for r in results if r.agent == FIXED]
    where = stored(tmp_path_factory.mktemp("report") / "a <b> folder", [*results, *hostile])
    (where / "mine<i>.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    (where / "mine<i>.png").write_bytes(b"\x89PNG not shown, there is an SVG")
    write_report(where)
    return where


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The page without plotly's own code."""
    text = (folder / "report.html").read_text()
    plotly = plotly_script().replace("\r\n", "\n")
    assert text.count(plotly) == 1
    return text.replace(plotly, "")


class Parsed(HTMLParser):
    """What a browser finds in a page: elements, with their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_refers_to_nothing_outside_itself(page: str) -> None:
    for tag, attributes in Parsed(page).elements:
        for name in ("src", "href", "srcset", "action", "poster", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, name)
    code = re.sub(r"data:image/[^\"]+", "", page)
    assert not re.search(
        r"https?://|\burl\(|@import|\bimport\b[ (]|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", code
    )


def test_names_from_files_are_text_and_never_elements(page: str) -> None:
    found = Parsed(page)
    assert not [attributes for _, attributes in found.elements if any(name.startswith("on") for name in attributes)]
    scripts = [attributes for tag, attributes in found.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}, {}]
    assert not [tag for tag, _ in found.elements if tag in ("b", "i")]
    assert HOSTILE in found.text
    assert COMMAND in found.text
    assert "a <b> folder" in found.text


def test_embedded_data_can_not_end_its_element() -> None:
    payload = {"name": "</script><!--&amp;\u2028"}
    words = embedded(payload)
    assert json.loads(words) == payload
    assert not set(words) & set("<>&\u2028")


def test_only_the_two_scripts_of_the_page_may_run(folder: Path) -> None:
    import hashlib

    text = (folder / "report.html").read_text()
    policy = re.search(r'Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 2
    for script in scripts:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy[1]


def test_the_page_says_what_was_found_and_how(page: str) -> None:
    found = Parsed(page)
    for words in (
        "has the least regret",
        "earns the most",
        "x the memory of LSVI-UCB and",
        "runs carry a warning",
        "60 episodes",
        "Q at cap",
        "return at the end",
        "machine 1",
        "numpy",
        "storage=auto",
        "mine<i>.svg",
    ):
        assert words in found.text, words
    assert "mine<i>.png" not in found.text
    anchors = {attributes["href"][1:] for tag, attributes in found.elements if tag == "a"}
    assert anchors <= {attributes.get("id") for _, attributes in found.elements}


def test_the_table_shows_the_stored_numbers(folder: Path, page: str) -> None:
    last = [r.final_regret for r in read_folder(folder).results if (r.env, r.agent, r.episodes) == (ENV, "random", 60)]
    assert len(last) == 3
    assert f" {np.mean(np.array(last, dtype=float)):.1f} " in Parsed(page).text


def test_a_report_can_be_written_again_and_is_the_same(folder: Path, tmp_path: Path) -> None:
    written = write_report(folder, tmp_path / "new" / "page.html")
    assert written.page.read_bytes() == (folder / "report.html").read_bytes()
    assert list(written.page.parent.iterdir()) == [written.page]


def test_a_store_gives_the_points_of_the_curves_that_are_drawn(tmp_path: Path) -> None:
    results = runs(episodes=500)
    with opened_folder(stored(tmp_path, results)) as found:
        drawn = found.read(found.results)
    for r, whole in zip(drawn, results, strict=True):
        assert r.regret is not None
        assert whole.regret is not None
        assert len(r.regret) == len(curve_at(500)) == SHOWN
        np.testing.assert_allclose(r.regret, whole.regret[curve_at(500)], rtol=1e-6, atol=1e-6)
        assert r.reward == pytest.approx(whole.reward, rel=1e-5)


def test_curves_of_many_episodes_are_thin_and_end_at_the_end() -> None:
    for episodes in (1, 2, 199, 200, 201, 2000, 2001, 12_000):
        at = curve_at(episodes)
        assert len(at) <= SHOWN
        assert at[-1] == episodes - 1
        assert np.all(np.diff(at) > 0)


def test_the_front_is_what_nobody_betters_in_both() -> None:
    base = runs(agents=("lsvi-ucb",), seeds=1)[0]
    costs = {
        "a": (10, 5.0),
        "b": (20, 3.0),
        "c": (20, 4.0),
        "d": (30, 3.0),
        "e": (5, 9.0),
        "f": (40, 1.0),
        "g": (20, 3.0),
    }
    results = [
        replace(base, agent=name, peak_bytes=size, regret=np.full(60, regret)) for name, (size, regret) in costs.items()
    ]
    assert [s.agent for s in sections(results)[0].front] == ["e", "a", "b", "g", "f"]
    assert memory_is_wide([1, 30])
    assert not memory_is_wide([0, 30])


def test_too_many_sections_are_left_out_and_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linmdp.report.html.MOST_SECTIONS", 2)
    results = [r for K in (4, 5, 6) for r in runs(agents=("random",), seeds=1, episodes=K)]
    assert write_report(stored(tmp_path, results)).left_out == 1
    words = Parsed((tmp_path / "report.html").read_text()).text
    assert "1 more pair of environment and K is stored and not shown here." in words
    assert "K = 6" in words
    assert "K = 4" not in words


def test_of_many_settings_the_best_of_each_algorithm_comes_first(tmp_path: Path) -> None:
    first, random = runs(agents=("lsvi-ucb", "random"), episodes=20, seeds=1)
    assert first.regret is not None
    many = [
        replace(first, agent=f"{name}:beta={i}", regret=first.regret * (1 + (i - 3) ** 2))
        for name in ("lsvi-ucb", "mine")
        for i in range(6)
    ]
    (section,) = sections([*many, random])
    assert section.main == ["lsvi-ucb:beta=3", "mine:beta=3", "random"]
    assert list(section.focused().curves) == list(section.focused().returns) == section.main
    (few,) = sections([*many[:3], random])
    assert few.main == [s.agent for s in few.summaries]
    text = write_report(stored(tmp_path / "many", [*many, random])).page.read_text()
    boxes = re.findall(r'<input type="checkbox" data-agent="\d+"( checked)?>', text)
    assert (len(boxes), boxes.count(" checked")) == (13, 3)
    assert "5 more of LSVI-UCB" in text
    assert text.index("learned: ") < text.index('<input type="checkbox"'), "verdicts come first"
    assert "All 13 settings" in text
    assert "linmdp compare synthetic:S=12,A=3,d=4,H=5 lsvi-ucb:beta=0" in text
    assert "@software{linmdp," in text
    assert "John, Philips George" in text


def test_too_many_agents_are_cut_to_the_best_and_said_so(tmp_path: Path) -> None:
    base, random = runs(agents=("lsvi-ucb", "random"), seeds=1, episodes=5)
    assert base.regret is not None
    many = [replace(base, agent=f"lsvi-ucb:beta={i}", regret=base.regret + i) for i in range(60)]
    section = sections([*many, random])[0]
    assert len(section.summaries) == MOST_AGENTS
    assert {s.agent for s in section.learners} == {f"lsvi-ucb:beta={i}" for i in range(MOST_AGENTS - 1)}
    write_report(stored(tmp_path, [*many, random]))
    assert f"61 agents have run here; the {MOST_AGENTS} with the best regret" in (tmp_path / "report.html").read_text()


def test_an_agent_looks_the_same_everywhere_and_like_no_other() -> None:
    styles = line_styles([f"lsvi-ucb:beta={i}" for i in range(35)])
    assert len({(style.light, style.dashes) for style in styles.values()}) == 35
    assert len({(style.dark, style.marker) for style in styles.values()}) == 35


def test_agents_of_many_sections_get_their_colours_first(tmp_path: Path) -> None:
    everywhere = [r for K in (4, 5) for r in runs(agents=("lsvi-ucb:beta=9",), seeds=1, episodes=K)]
    once = runs(agents=tuple(f"lsvi-ucb:beta={i}" for i in range(7)), seeds=1, episodes=4)
    text = write_report(stored(tmp_path, [*once, *everywhere])).page.read_text()
    data = re.search(r'id="data">(.*?)</script>', text)
    assert data is not None
    assert json.loads(data[1])["styles"][0]["name"] == "LSVI-UCB (beta=9)"


def test_of_many_runs_no_curves_are_in_memory(tmp_path: Path) -> None:
    (base,) = runs(agents=("lsvi-ucb",), seeds=1)
    where = stored(tmp_path, [replace(base, seed=i) for i in range(2000)])
    tracemalloc.start()
    try:
        found = read_folder(where)
        held = tracemalloc.get_traced_memory()[0] / len(found.results)
    finally:
        tracemalloc.stop()
    assert held < 700


def test_a_run_with_several_eval_every_counts_once(tmp_path: Path) -> None:
    (fine,) = runs(agents=("lsvi-ucb",), seeds=1)
    coarse = replace(fine, eval_every=10)
    for order in ([fine, coarse], [coarse, fine]):
        kept = read_folder(stored(tmp_path / f"{order[0].eval_every}", order)).results
        assert [r.eval_every for r in kept] == [1]


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    results = runs(seeds=1)
    for name, change in (("a", "record = '{'"), ("b", "regret = x'00000000'"), ("c", "record = '{\"x\": 1}'")):
        where = stored(tmp_path / name, results)
        with sqlite3.connect(where / "runs.sqlite") as db:
            db.execute(f"UPDATE runs SET {change} WHERE key = 'run 1'")
        with pytest.raises(InvalidData, match="is damaged"):
            read_folder(where)


def test_bad_input_is_one_line_and_status_2(tmp_path: Path) -> None:
    full = stored(tmp_path / "full", runs(seeds=1))
    (tmp_path / "none").mkdir()
    Store(_made(tmp_path / "empty")).close()
    with sqlite3.connect(stored(tmp_path / "old", runs(seeds=1)) / "runs.sqlite") as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    for arguments, words in (
        (["missing"], "There is no such folder"),
        (["none"], "It does not."),
        (["empty"], "at least one finished run"),
        (["old"], "must be of version"),
        (["full", "-o", "/proc/nowhere/page.html"], "must be writable"),
        (["full", "-o", str(tmp_path)], "It is a folder"),
    ):
        done = report(str(tmp_path / arguments[0]), *arguments[1:])
        assert done.returncode == 2, arguments
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert done.stdout == ""
    assert not (full / "report.html").exists()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_names_the_extra(folder: Path, package: str) -> None:
    done = report(str(folder), before=f"import sys; sys.modules['{package}'] = None")
    assert done.returncode == 2
    assert "linmdp[report]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_says_where_the_page_is(tmp_path: Path) -> None:
    done = report(str(stored(tmp_path, runs(seeds=1, agents=("random",)))), "-o", str(tmp_path / "page.html"))
    assert done.returncode == 0
    assert re.fullmatch(rf"written: {tmp_path}/page\.html \(.* MiB\)\n", done.stderr)


def test_a_folder_that_can_not_take_the_page_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        write_report(folder, tmp_path / "file" / "page.html")


needs_chromium = pytest.mark.skipif(chromium.find() is None, reason="no Chromium here")
SECTION = "#section-1"
"""The largest K of the synthetic environment: not folded, with regret."""
CURVES = f"document.querySelectorAll('{SECTION} [data-plot=curves] .scatterlayer .trace').length"
AXIS = f"document.querySelector('{SECTION} [data-plot=curves]')._fullLayout.yaxis.type"


@pytest.fixture(scope="module")
def browser(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    with chromium.Browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.size(1280, 900)
        opened.media(prefers_color_scheme="light")
        opened.open(folder / "report.html")
        opened.js(f"document.querySelector('{SECTION}').scrollIntoView({{behavior: 'instant'}})")
        opened.wait(f"{CURVES} > 0")
        yield opened


@needs_chromium
class TestInChromium:
    """One browser and one page. After each test: no error, no message, nothing asked for but the page itself."""

    @pytest.fixture(autouse=True)
    def _nothing_goes_wrong(self, browser: chromium.Browser, folder: Path) -> Iterator[None]:
        yield
        browser.js("new Promise(done => setTimeout(done, 50))")
        assert browser.js("window.hacked === undefined")
        methods = [event.get("method") for event in browser.events]
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        assert [browser.events[i] for i, method in enumerate(methods) if method in kinds] == []
        requests = [e["params"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
        asked = {r["request"]["url"].partition("#")[0] for r in requests}
        page = (folder / "report.html").resolve().as_uri()
        assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {page}

    def test_every_agent_has_a_curve_and_a_band(self, browser: chromium.Browser) -> None:
        agents = browser.js(f"document.querySelectorAll('{SECTION} [data-agent]').length")
        assert agents == len(AGENTS) + 1
        assert browser.js(CURVES) == 2 * agents
        paths = (
            f"[...document.querySelectorAll('{SECTION} [data-plot=curves] path.js-line')].map(p => p.getAttribute('d'))"
        )
        drawn = browser.js(paths)
        assert all(re.match(r"M[-\d.,]+[LHV]", d) for d in drawn)  # at least one stroke; a straight line has no more
        assert sum(len(d) > 50 for d in drawn) >= len(AGENTS) - 1

    def test_a_toggle_hides_a_curve_and_shows_it_again(self, browser: chromium.Browser) -> None:
        before = browser.js(CURVES)
        browser.js(f"document.querySelector('{SECTION} [data-agent]').focus()")
        for expected in (before - 2, before):  # the curve and its band
            browser.key(" ", "Space", 32, " ")
            browser.wait(f"{CURVES} === {expected}")
        browser.js(f"document.querySelector('{SECTION} [data-all=\"0\"]').click()")
        browser.wait(f"{CURVES} === 0")
        browser.js(f"document.querySelector('{SECTION} [data-all=\"1\"]').click()")
        browser.wait(f"{CURVES} === {before}")

    def test_bands_can_be_switched_off(self, browser: chromium.Browser) -> None:
        before = browser.js(CURVES)
        browser.js(f"document.querySelector('{SECTION} [data-bands]').click()")
        browser.wait(f"{CURVES} === {before // 2}")
        browser.js(f"document.querySelector('{SECTION} [data-bands]').click()")
        browser.wait(f"{CURVES} === {before}")

    def test_the_axis_is_linear_until_it_is_switched(self, browser: chromium.Browser) -> None:
        assert browser.js(AXIS) == "linear"
        ticks = f"document.querySelector('{SECTION} [data-plot=curves] .yaxislayer-above').textContent"
        linear = browser.js(ticks)
        browser.js(f"document.querySelector('{SECTION} [data-scale=linear]').focus()")
        browser.key("ArrowRight", "ArrowRight", 39)
        browser.wait(f"{AXIS} === 'log'")
        assert browser.js(ticks) != linear
        browser.js(f"document.querySelector('{SECTION} [data-scale=linear]').click()")
        browser.wait(f"{AXIS} === 'linear'")

    def test_the_keyboard_zooms_and_resets(self, browser: chromium.Browser) -> None:
        plot = f"document.querySelector('{SECTION} [data-plot=curves]')"
        span = f"({plot}.layout.xaxis.range[1] - {plot}.layout.xaxis.range[0])"
        whole = browser.js(span)
        browser.js(f"{plot}.focus()")
        browser.key("+", "Equal", 187, "+")
        browser.wait(f"{span} < {0.8 * whole}")
        browser.key("0", "Digit0", 48, "0")
        browser.wait(f"Math.abs({span} - {whole}) < 1e-6")

    def test_the_tradeoff_marks_the_front(self, browser: chromium.Browser) -> None:
        points = browser.js(f"document.querySelector('{SECTION} [data-plot=tradeoff]').data.map(t => t.meta)")
        assert points == ["front", "point", "point", "point"]
        shapes = browser.js(f"document.querySelector('{SECTION} [data-plot=tradeoff]').layout.shapes.length")
        assert shapes == 2  # random and optimal

    def test_dark_colours_follow_the_system_and_the_switch(self, browser: chromium.Browser) -> None:
        ground = "getComputedStyle(document.body).backgroundColor"
        line = f"getComputedStyle(document.querySelector('{SECTION} [data-plot=curves] path.js-line')).stroke"
        paper = f"document.querySelector('{SECTION} [data-plot=curves]').layout.paper_bgcolor"
        light = [browser.js(e) for e in (ground, line, paper)]
        browser.media(prefers_color_scheme="dark")
        browser.wait(f"{ground} !== {json.dumps(light[0])} && {paper} === {ground}")
        assert browser.js(paper) != light[2]
        browser.js("document.querySelector('input[name=theme][value=light]').click()")
        browser.wait(f"{paper} === {json.dumps(light[2])}")
        assert [browser.js(e) for e in (ground, line, paper)] == light
        browser.js("document.querySelector('input[name=theme][value=auto]').click()")
        browser.media(prefers_color_scheme="light")

    def test_a_link_opens_what_is_folded(self, browser: chromium.Browser) -> None:
        assert browser.js("document.querySelector('#section-3').open") is False
        browser.js("document.querySelector('nav a[href=\"#section-3\"]').click()")
        browser.wait("document.querySelector('#section-3').open")
        browser.wait("document.querySelectorAll('#section-3 .scatterlayer .trace').length > 0")

    def test_tables_sort(self, browser: chromium.Browser) -> None:
        table = f"document.querySelector('{SECTION} table')"
        column = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[8].dataset.key))"
        for down in (False, True):
            browser.js(f"{table}.tHead.rows[0].cells[8].firstElementChild.click()")
            values = browser.js(column)
            assert values == sorted(values, reverse=down)

    def test_it_prints_with_everything_unfolded(self, browser: chromium.Browser) -> None:
        folded = "document.querySelectorAll('details:not([open])').length"
        browser.js(f"addEventListener('beforeprint', () => {{ window.folded = {folded}; }})")
        assert browser.pdf().startswith(b"%PDF")
        assert browser.js("window.folded") == 0
        assert browser.js(folded) > 0
        assert browser.js("[...document.querySelectorAll('.plot')].every(p => p.querySelector('.main-svg'))")

    def test_a_phone_needs_no_sideways_scrolling(self, browser: chromium.Browser) -> None:
        browser.size(390, 844, mobile=True)
        browser.js("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        for _ in range(2):  # also once all plots are drawn
            assert browser.js("document.documentElement.scrollWidth") <= 390
            browser.js("document.querySelectorAll('.plot').forEach(p => p.scrollIntoView({behavior: 'instant'}))")
        browser.size(1280, 900)
