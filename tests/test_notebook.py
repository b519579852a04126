"""Notebooks: results and comparisons show themselves, and every cell of the example runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import linmdp
import notebook

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "examples" / "first-steps.ipynb"
FROM_SB3 = ROOT / "docs" / "from-sb3.ipynb"


def outputs(notebook: dict[str, Any]) -> list[set[str]]:
    """What kinds of output each cell of code has."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [{kind for output in cell["outputs"] for kind in output.get("data", ["stream"])} for cell in cells]


def test_every_cell_runs_and_shows_what_is_stored() -> None:
    matplotlib.use("agg")
    stored = json.loads(NOTEBOOK.read_text())
    again = notebook.executed(json.loads(NOTEBOOK.read_text()))
    assert outputs(again) == outputs(stored)
    html, plain, picture = "text/html", "text/plain", "image/png"
    assert outputs(stored) == [{html, plain}, {plain, picture}, {html, plain}, {plain, picture}, {"stream", plain}]
    assert "learned: 1 an episode" in "".join(stored["cells"][1]["outputs"][0]["data"][html])


def test_every_cell_for_those_who_come_from_stable_baselines3_runs_and_leaves_no_row_of_the_page_out() -> None:
    stored = json.loads(FROM_SB3.read_text())
    again = notebook.executed(json.loads(FROM_SB3.read_text()))
    assert outputs(again) == outputs(stored)
    shown = [cell["outputs"][0]["data"]["text/plain"][0] for cell in again["cells"] if cell["cell_type"] == "code"]
    assert shown[0].startswith("'learned: ")
    assert shown[3] == "(0, 1)"  # masks
    assert shown[5] == "True"  # loaded, and on as before
    told = "".join("".join(cell["source"]) for cell in stored["cells"])
    rows = [line.split("|") for line in FROM_SB3.with_suffix(".md").read_text().splitlines() if line.startswith("| ")]
    named = [set(re.findall(r"`(?:\w+\.)*(\w+)\(|\.(\w+)\b", " ".join(row[1:3]))) for row in rows[1:]]
    assert len(named) >= 10
    for name in (name for found in named for pair in found for name in pair if name):
        assert name in told, f"the notebook lacks {name}"


def test_a_result_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    env = linmdp.make_env("lock:H=3")
    result = linmdp.run(env, linmdp.make_agent("auto", env), episodes=30)
    result.env = "<b>lock</b>"
    shown = result._repr_html_()
    assert result.verdict in shown
    assert "&lt;b&gt;lock" in shown
    rows = result.rows()
    assert [row["episode"] for row in rows] == list(range(1, 31))
    assert sum(row["return"] for row in rows) == pytest.approx(result.reward)
    assert rows[-1]["regret"] == result.final_regret
    matplotlib.use("agg")
    axes = result.plot()
    assert len(axes.lines) == 2
    assert result.plot(axes) is axes
    matplotlib.pyplot.close(axes.figure)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(linmdp.LinMDPError, match=r"linmdp\[pandas\]"):
        result.to_pandas()
