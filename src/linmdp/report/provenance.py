"""The parts of a report that say how it was made: figures in the folder, settings, machines, commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from linmdp import __version__
from linmdp.io.units import human_bytes
from linmdp.report.html_elements import Cell, code, data_uri, details, spec, table, text
from linmdp.report.style import short_name
from linmdp.results.run_folder import RunFolder
from linmdp.types import RunResult

LARGEST = 4 * 2**20
"""A picture with more bytes is listed, not shown."""
MOST_PICTURES = 60
PICTURES = {".svg": "svg+xml", ".png": "png", ".gif": "gif"}
"""What is shown, by how the name ends."""


def gallery(folder: Path) -> str:
    """Pictures that lie in the folder, each once, as SVG where there is one."""
    pictures = _pictures(folder)
    if not pictures:
        return ""
    parts = ['<section id="gallery"><h2>Figures in the folder</h2>']
    shown = [_picture(path) for path in pictures[:MOST_PICTURES]]
    parts.append(f'<div class="gallery">{"".join(shown)}</div>')
    if len(pictures) > MOST_PICTURES:
        parts.append(f"<p>{len(pictures) - MOST_PICTURES} more pictures lie in the folder.</p>")
    return "".join([*parts, "</section>"])


def written_tables(folder: Path) -> str:
    """The tables that `linmdp reproduce` wrote into the folder, as they are."""
    paths = [path for path in sorted(folder.glob("table-*.md")) if path.is_file() and path.stat().st_size <= LARGEST]
    if not paths:
        return ""
    shown = [details(code(path.name), f"<pre>{text(path.read_text(errors='replace'))}</pre>") for path in paths]
    return f'<section id="tables"><h2>Tables in the folder</h2>{"".join(shown)}</section>'


def settings(results: Sequence[RunResult]) -> str:
    """Every parameter of every environment and agent."""
    by_env, by_name = dict[str, list[RunResult]](), dict[str, list[RunResult]]()
    for r in results:
        by_env.setdefault(r.env, []).append(r)
        by_name.setdefault(r.agent, []).append(r)
    envs = [_env_row(env, runs) for env, runs in by_env.items()]
    agents = [_agent_row(agent, runs) for agent, runs in by_name.items()]
    head: tuple[str, ...] = ("environment", "K", "seeds", "regret evaluated", "features")
    body = table("Environments", head, envs, text_columns=head)
    title, head = "Every parameter of the agents", ("agent", "given as", "parameters")
    listed = table(title, head, agents, text_columns=head)
    body += details(f"{title} <small>{len(agents)} agents</small>", listed, open_=len(agents) <= 12)
    return f'<section id="settings"><h2>Settings</h2>{body}</section>'


def provenance(folder: Path, stored: RunFolder, damaged: Sequence[str] = ()) -> str:
    """Machines, versions, commands, and what could not be read."""
    parts = ['<section id="made"><h2>How it was made</h2>']
    parts.append("<h3>Commands</h3>")
    if not stored.commands:
        parts.append("<p>The commands were not recorded. These make the same runs, and this page:</p>")
    commands = [*(stored.commands or equivalent(stored.results)), f"linmdp report {shlex.quote(str(folder))}"]
    parts += [f"<pre>{text(command)}</pre>" for command in commands]
    parts.append("<h3>Versions and machines</h3>")
    if stored.machines:
        keys = list(dict.fromkeys(key for m in stored.machines for key in m))
        rows = [
            [Cell(text(key)), *(Cell("–" if m.get(key) is None else text(m[key])) for m in stored.machines)]
            for key in keys
        ]
        head = ("", *(f"machine {i}" for i in range(1, 1 + len(stored.machines))))
        parts.append(table("What the runs ran on", head, rows, text_columns=head, sortable=False))
    else:
        parts.append("<p>results.jsonl does not record them; a sweep's store does.</p>")
    parts.append(f"<p>Read from {code(stored.source)}.</p>")
    parts += [f"<p><b>{text(words)}.</b></p>" for words in damaged]
    parts.append("</section>")
    return "".join(parts)


PAPER = """@misc{efficient-linear-mdps,
  title = {Efficient, Low-Regret, Online Reinforcement Learning for Linear {MDPs}},
  author = {John, Philips George and Bhattacharyya, Arnab and Maniu, Silviu and Myrisiotis, Dimitrios and Wu, Zhenan}
}"""
SOFTWARE = """@software{{linmdp,
  title = {{linmdp: online reinforcement learning with regret guarantees, in memory that you choose}},
  author = {{{{The authors of linmdp}}}},
  version = {{{version}}}
}}"""


def citation() -> str:
    """BibTeX of the software and of the paper."""
    entries = f"<pre>{text(SOFTWARE.format(version=__version__))}</pre><pre>{text(PAPER)}</pre>"
    return f'<section id="cite"><h2>How to cite it</h2><p>The software, and the paper:</p>{entries}</section>'


def _pictures(folder: Path) -> list[Path]:
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        kind = path.suffix.lower()
        if kind not in PICTURES or path.name.startswith(".") or not path.is_file():
            continue
        if path.stem not in found or kind == ".svg":
            found[path.stem] = path
    return list(found.values())


def _picture(path: Path) -> str:
    caption = f"<figcaption>{code(path.name)}</figcaption>"
    try:
        data = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError:
        return f"<figure><p>It cannot be read.</p>{caption}</figure>"
    if not data:
        return f"<figure><p>{text(human_bytes(path.stat().st_size))}: not shown here.</p>{caption}</figure>"
    kind = PICTURES[path.suffix.lower()]
    return f'<figure><img alt="{text(path.stem)}" src="{data_uri(kind, data)}">{caption}</figure>'


def _env_row(env: str, runs: Sequence[RunResult]) -> list[Cell]:
    sizes = sorted({r.episodes for r in runs})
    every = sorted({r.eval_every for r in runs})
    evaluated = "in every episode" if every == [1] else f"in one of every {' or '.join(map(str, every))} episodes"
    return [
        Cell(f"<code>{spec(env)}</code>"),
        Cell(", ".join(f"{K:,}" for K in sizes)),
        Cell(", ".join(str(a) if a == b else f"{a} to {b}" for a, b in _spans(r.seed for r in runs))),
        Cell(evaluated if any(r.regret is not None for r in runs) else "V* is unknown"),
        Cell(human_bytes(max(r.feature_bytes for r in runs))),
    ]


def _agent_row(agent: str, runs: Sequence[RunResult]) -> list[Cell]:
    values: dict[str, dict[str, None]] = {}
    for params in (params for params, _ in groupby(r.params for r in runs)):
        for key, value in params.items():
            values.setdefault(str(key), {})[_written(value)] = None
    parameters = " ".join(f"<code>{text(key)}={text(', '.join(found))}</code>" for key, found in values.items())
    return [
        Cell(text(short_name(agent))),
        Cell(f"<code>{spec(agent)}</code>"),
        Cell(f'<span class="parameters">{parameters or "none"}</span>'),
    ]


def _spans(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """[0, 1, 2, 5] as [(0, 2), (5, 5)]."""
    ordered = np.unique(list(seeds))
    spans = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return [(int(span[0]), int(span[-1])) for span in spans]


def equivalent(results: Sequence[RunResult]) -> list[str]:
    """A command for each environment and K; several where seeds or `eval_every` differ."""
    groups: dict[tuple[str, int, int, int, int], list[str]] = {}
    seeds: dict[tuple[str, int, int, str], list[int]] = {}
    for r in results:
        seeds.setdefault((r.env, r.episodes, r.eval_every, r.agent), []).append(r.seed)
    for (env, K, every, agent), run in seeds.items():
        for first, last in _spans(run):
            groups.setdefault((env, K, every, first, last), []).append(agent)
    commands = []
    for (env, K, every, first, last), agents in groups.items():
        verb = "compare" if len(agents) > 1 else "run"
        command = ["linmdp", verb, env, *agents, "--episodes", str(K), "--seeds", str(last - first + 1)]
        command += ["--seed", str(first)] * (first > 0) + ["--eval-every", str(every)] * (every > 1)
        commands.append(shlex.join(command))
    return commands


def _written(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
