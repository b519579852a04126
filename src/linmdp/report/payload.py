"""What the page's script draws, as JSON: curves and points, with no more digits than can be seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from linmdp.io.units import memory_unit
from linmdp.report.plots import Curve
from linmdp.report.section_data import ENDS, YS, Section, memory_is_wide
from linmdp.report.style import MARKERS, LineStyle
from linmdp.results.stats import Interval

SHARE = "share of runs that are better"


def embedded(payload: Any) -> str:
    """JSON that can stand in a script element: no text in it can end the element or start another."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def styles_payload(styles: dict[str, LineStyle]) -> list[dict[str, Any]]:
    """How each agent is drawn; panels name agents by their index in this list."""
    return [
        {
            "name": style.name,
            "light": style.light,
            "dark": style.dark,
            "dash": ",".join(f"{2 * d:g}px" for d in style.dashes) or "solid",
            "symbol": MARKERS[style.marker][1],
            "baseline": style.baseline,
        }
        for style in styles.values()
    ]


def section_payload(section: Section, styles: dict[str, LineStyle]) -> dict[str, Any]:
    """The two plots of a section."""
    index = {agent: i for i, agent in enumerate(styles)}
    amounts = [s.agent_bytes for s in section.learners]
    unit, size = memory_unit(max(amounts, default=1))
    return {
        "kind": "section",
        "y": {"curves": YS[section.measure], "returns": "return of an episode", "profile": SHARE},
        "end": ENDS[section.measure],
        "less": section.measure == "regret",
        "bands": section.seeds > 1,
        "unit": unit,
        "wide": memory_is_wide(amounts),
        "curves": _curves(section.curves, index, styles),
        "returns": _curves(section.returns, index, styles),
        "profile": _curves(section.profiles, index, styles),
        "points": [
            {"agent": index[s.agent], "x": _digits(s.agent_bytes / size), "y": _interval(section.level(s))}
            for s in section.summaries
        ],
    }


def _curves(
    curves: Mapping[str, Curve], index: Mapping[str, int], styles: Mapping[str, LineStyle]
) -> list[dict[str, Any]]:
    return [
        {
            "agent": index[agent],
            "width": round(styles[agent].width(i), 2),
            "x": [int(x) if x == int(x) else _digits(x) for x in curve.episode.tolist()],
            **{name: [_digits(float(y)) for y in getattr(curve, name)] for name in ("mean", "low", "high")},
        }
        for i, (agent, curve) in enumerate(curves.items())
    ]


def _interval(i: Interval) -> list[float]:
    return [_digits(value) for value in i]


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
