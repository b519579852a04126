"""`linmdp report`: one self-contained page of everything in a folder, and its figures beside it."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

from linmdp.errors import LinMDPError, OutputError, needed
from linmdp.io.files import output_folder, write_atomic
from linmdp.report.figures import Drawn, curves_figure, growth_figure, returns_figure, tradeoff_figure
from linmdp.report.html_elements import spec, text
from linmdp.report.html_sections import growth_block, header, navigation, overview, section_block
from linmdp.report.payload import embedded, growth_payload, section_payload, styles_payload
from linmdp.report.provenance import citation, gallery, provenance, settings, written_tables
from linmdp.report.section_data import Growth, Section, growth_of, sections_of
from linmdp.report.story import stylesheet
from linmdp.report.style import LineStyle, is_baseline, line_styles
from linmdp.results.run_folder import RunFolder, by_name, read_folder
from linmdp.types import RunResult

MOST_SECTIONS = 60
FIGURES = "figures"


class Written(NamedTuple):
    """What `write_report` wrote, how many sections did not go into the page, and which runs are damaged, in words."""

    page: Path
    figures: list[Path]
    left_out: int
    damaged: list[str]


def write_report(folder: Path, page: Path | None = None) -> Written:
    """Read the runs in `folder` and write their page; default: `report.html` in that folder."""
    plotly = plotly_script()
    page = page or folder / "report.html"
    damaged: list[str] = []
    stored = by_name(read_folder(folder, damaged.append))
    if page.is_dir():
        raise OutputError(f"The output file '{page}' must be a file. It is a folder.")
    beside = output_folder(output_folder(page.parent) / FIGURES)
    report = _Report(folder, stored, damaged)
    paths = []
    for name, drawn in report.figures.items():
        for kind, data in (("svg", drawn.svg), ("png", drawn.png)):
            paths.append(beside / f"{name}.{kind}")
            write_atomic(paths[-1], data)
    write_atomic(page, report.html(plotly).encode("utf-8", "xmlcharrefreplace"))
    return Written(page, paths, report.left_out, damaged)


def plotly_script() -> str:
    """plotly.js, which its Python package brings along."""
    words = "'linmdp report' needs plotly, the extra 'report': pip install 'linmdp[report]'."
    return str(needed("plotly.offline", words, LinMDPError).get_plotlyjs())


class _Report:
    """The parts of one page."""

    def __init__(self, folder: Path, stored: RunFolder, damaged: Sequence[str]) -> None:
        # sorted is stable: the agents keep their order, policies that do not learn come last
        stored = stored._replace(results=sorted(stored.results, key=lambda r: is_baseline(r.agent)))
        self.folder, self.stored, self.damaged = folder, stored, damaged
        self.styles: dict[str, LineStyle] = line_styles(_by_presence(stored.results))
        self.sections = sections_of(stored.results, MOST_SECTIONS)
        self.left_out = len({(r.env, r.episodes) for r in stored.results}) - len(self.sections)
        self.growth = {env: grown for env in _envs(self.sections) if (grown := self._growth(env))}
        self.gallery = gallery(folder)
        self.figures: dict[str, Drawn] = {}
        for s in (section.focused() for section in self.sections):
            if s.learners:
                self.figures[f"tradeoff-{s.number}"] = tradeoff_figure(s, self.styles)
            if s.curves:
                self.figures[f"{s.measure}-{s.number}"] = curves_figure(s, self.styles)
            if s.returns:
                self.figures[f"returns-{s.number}"] = returns_figure(s, self.styles)
        for number, (env, grown) in enumerate(self.growth.items(), start=1):
            self.figures[f"growth-{number}"] = growth_figure(env, grown, self.styles)

    def _growth(self, env: str) -> list[Growth]:
        shown = {s.agent for section in self.sections if section.env == env for s in section.summaries}
        return growth_of([r for r in self.stored.results if r.env == env and r.agent in shown])

    def html(self, plotly: str) -> str:
        """The whole page."""
        name = self.folder.resolve().name or "results"
        script, plotly = _asset("page.js"), plotly.replace("\r\n", "\n")
        values = {  # by the policy of the page nothing but these two scripts runs, and nothing is ever fetched
            "scripts": f"{_hash(plotly)} {_hash(script)}",
            "title": text(name),
            "style": stylesheet(),
            "header": header(name, self.stored.results),
            "navigation": navigation(self.sections, list(self.growth), pictures=bool(self.gallery)),
            "main": self._main(),
            "payload": self._payload(),
            "plotly": plotly,
            "script": script,
        }
        return Template(_asset("page.html")).substitute(values)

    def _main(self) -> str:
        parts = [overview(self.sections, self.left_out)]
        alone = len(self.sections) == 1
        for env in _envs(self.sections):
            own = [s for s in self.sections if s.env == env]
            parts.append(f'<section class="env"><h2>{spec(env)}</h2>')
            parts += [section_block(s, self.styles, self.figures, folded=s is not own[0], alone=alone) for s in own]
            if env in self.growth:
                number = 1 + list(self.growth).index(env)
                parts.append(growth_block(number, self.growth[env], self.styles, self.figures))
            parts.append("</section>")
        parts += [
            self.gallery,
            written_tables(self.folder),
            settings(self.stored.results),
            provenance(self.folder, self.stored, self.damaged),
            citation(),
        ]
        return "\n".join(parts)

    def _payload(self) -> str:
        panels = {f"section-{s.number}": section_payload(s, self.styles) for s in self.sections}
        grown = {f"growth-{i}": growth_payload(g, self.styles) for i, g in enumerate(self.growth.values(), start=1)}
        return embedded({"styles": styles_payload(self.styles), "panels": panels | grown})


def _by_presence(results: Sequence[RunResult]) -> list[str]:
    """The agents, first those that are in most sections: a section should not have a colour twice."""
    counts = Counter(agent for _, _, agent in {(r.env, r.episodes, r.agent) for r in results})
    return sorted(dict.fromkeys(r.agent for r in results), key=lambda agent: -counts[agent])


def _envs(sections: Sequence[Section]) -> list[str]:
    return list(dict.fromkeys(s.env for s in sections))


def _asset(name: str) -> str:
    return (resources.files("linmdp.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
