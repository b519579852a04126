"""`linmdp report`: one self-contained page of everything in a folder."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from linmdp import __version__
from linmdp.errors import LinMDPError, OutputError, needed
from linmdp.io.files import output_folder, write_atomic
from linmdp.io.units import human_bytes
from linmdp.report import narrative
from linmdp.report.plots import is_baseline, line_styles, short_name
from linmdp.report.section_data import (
    ENDS,
    YS,
    embedded,
    environments,
    equivalent,
    parameters,
    section_payload,
    sections_of,
    styles_payload,
)
from linmdp.report.tables import HEADER, comparison_rows
from linmdp.results.run_folder import Ran, opened_folder

MOST_SECTIONS = 60
MOST_ROWS = 1000
SENTENCES = 4
"""More of them are folded away."""

LARGEST = 4 * 2**20
"""A picture or a table with more bytes is not shown."""
MOST_PICTURES = 60
PICTURES = {".svg": "svg+xml", ".png": "png", ".gif": "gif"}
"""What is shown, by how the name ends."""

HELPERS: dict[str, Any] = {name: value for name, value in vars(narrative).items() if not name.startswith("_")} | {
    "bytes": human_bytes,
    "short": short_name,
    "equivalent": equivalent,
    "comparison_rows": comparison_rows,
    "zip": zip,
    "HEADER": HEADER,
    "ENDS": ENDS,
    "YS": YS,
    "few": SENTENCES,
    "most_rows": MOST_ROWS,
    "most_pictures": MOST_PICTURES,
    "memory": HEADER.index("agent memory"),
    "version": __version__,
}
"""What the template calls and names."""


class Written(NamedTuple):
    """What `write_report` wrote, how many sections did not go into the page, and which runs are damaged, in words."""

    page: Path
    left_out: int
    damaged: list[str]


def write_report(folder: Path, page: Path | None = None, about: Mapping[str, tuple[str, str]] | None = None) -> Written:
    """Read the runs in `folder` and write their page; default: `report.html` in that folder.

    `about` gives environments a title and a few words.
    """
    engine, plotly = template_engine(), plotly_script().replace("\r\n", "\n")
    page = page or folder / "report.html"
    damaged: list[str] = []
    with opened_folder(folder, damaged.append) as stored:
        if page.is_dir():
            raise OutputError(f"The output file '{page}' must be a file. It is a folder.")
        output_folder(page.parent)
        # sorted is stable: the agents keep their order, policies that do not learn come last
        results = sorted(stored.results, key=lambda r: is_baseline(r.agent))
        styles, script = line_styles(_by_presence(results)), asset("page.js")
        sections = sections_of(results, stored.read, MOST_SECTIONS)
        panels = {f"section-{s.number}": section_payload(s, styles) for s in sections}
        left_out = len({(r.env, r.episodes) for r in results}) - len(sections)
        text: str = engine.from_string(asset("report.html")).render(
            title="linmdp demo" if about else folder.resolve().name or "results",
            extent=narrative.extent(results),
            hashes=f"{script_hash(plotly)} {script_hash(script)}",  # nothing but these two scripts runs
            style=asset("style.css"),
            styles=styles,
            order=list(styles),
            sections=sections,
            envs=[(env, list(own)) for env, own in groupby(sections, attrgetter("env"))],
            about=about or {},
            alarms=sum(bool(r.warnings) for s in sections for r in s.runs),
            left_out=left_out,
            pictures=_pictures(folder),
            tables=_tables(folder),
            environments=environments(results),
            parameters=parameters(results),
            stored=stored,
            commands=[*(stored.commands or equivalent(results)), f"linmdp report {shlex.quote(str(folder))}"],
            machine_names=[f"machine {i}" for i in range(1, 1 + len(stored.machines))],
            machine_keys=list(dict.fromkeys(key for machine in stored.machines for key in machine)),
            damaged=damaged,
            payload=embedded({"styles": styles_payload(styles), "panels": panels}),
            plotly=plotly,
            script=script,
        )
    write_atomic(page, text.encode("utf-8", "xmlcharrefreplace"))
    return Written(page, left_out, damaged)


def template_engine() -> Any:
    """Jinja: whatever a page shows is escaped, and a name that it does not know is an error."""
    words = "'linmdp report' needs {name}, of the extra 'report': pip install 'linmdp[report]'."
    jinja = needed("jinja2", words, LinMDPError)
    engine = jinja.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined)
    engine.globals |= HELPERS
    return engine


def plotly_script() -> str:
    """plotly.js, which its Python package brings along."""
    words = "'linmdp report' needs plotly, of the extra 'report': pip install 'linmdp[report]'."
    return str(needed("plotly.offline", words, LinMDPError).get_plotlyjs())


def asset(name: str) -> str:
    """A part of a page."""
    return (resources.files("linmdp.report") / "page" / name).read_text(encoding="utf-8")


def script_hash(script: str) -> str:
    """What allows a script in the policy of a page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def data_uri(kind: str, data: bytes) -> str:
    """A picture inside the page."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _by_presence(results: Sequence[Ran]) -> list[str]:
    """The agents, first those that are in most sections: a section should not have a colour twice."""
    counts = Counter(agent for _, _, agent in {(r.env, r.episodes, r.agent) for r in results})
    return sorted(dict.fromkeys(r.agent for r in results), key=lambda agent: -counts[agent])


def _pictures(folder: Path) -> list[tuple[str, str, str]]:
    """Pictures that lie in the folder, each once, as SVG where there is one: name, data, and words where none."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        kind = path.suffix.lower()
        if kind in PICTURES and not path.name.startswith(".") and _is_own_file(path):
            found[path.stem] = path if kind == ".svg" else found.get(path.stem, path)
    return [_picture(path) for path in found.values()]


def _picture(path: Path) -> tuple[str, str, str]:
    try:
        size = path.stat().st_size
        data = path.read_bytes() if 0 < size <= LARGEST else b""
    except OSError:
        return path.name, "", "It cannot be read."
    return path.name, data_uri(PICTURES[path.suffix.lower()], data) if data else "", f"{human_bytes(size)}: not shown."


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _tables(folder: Path) -> list[tuple[str, str]]:
    """The tables that `linmdp reproduce` wrote into the folder, as they are."""
    paths = [
        path for path in sorted(folder.glob("table-*.md")) if _is_own_file(path) and path.stat().st_size <= LARGEST
    ]
    return [(path.name, path.read_text(errors="replace")) for path in paths]
