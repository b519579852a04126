"""Pictures that move: an episode with what the agent believes beside it, and maps of what it knows, as they grow."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidParameter, needed
from linmdp.io.files import write_atomic
from linmdp.report.html_elements import text
from linmdp.report.story import stylesheet
from linmdp.report.style import NoFigures
from linmdp.types import Array

HEIGHT, PANEL = 360, 380
"""Pixels: of a frame, and the width of the part that shows beliefs or a map."""
INK, SOFT, CHOSEN, OTHER, EXTRA = "#1c1f24", "#5a616c", "#2266aa", "#9db8d2", "#f0b46a"
MOST_ACTIONS = 18
COLOURS = 64


class Moment(NamedTuple):
    """One step: the environment as a picture (h, w, 3) or None, words, and Q as estimate and bonus, (A,) each."""

    picture: np.ndarray | None
    words: str
    estimate: Array
    bonus: Array
    action: int


class Maps(NamedTuple):
    """After some episodes: the value of each state and how often it was visited, (rows, columns) each."""

    words: str
    values: Array
    visits: Array


class Film(NamedTuple):
    """Frames, one after the other, with a title and a sentence that says what they show."""

    title: str
    words: str
    frames: list[Any]
    seconds: float


def episode_film(title: str, words: str, moments: Sequence[Moment]) -> Film:
    """The environment on the left, bars of Q on the right; the scale is the same in every frame."""
    totals = np.array([m.estimate + m.bonus for m in moments]), np.array([m.estimate for m in moments])
    low, high = min(0.0, float(totals[1].min())), max(float(totals[0].max()), 1e-9)
    frames = []
    for moment in moments:
        parts = [] if moment.picture is None else [_fitted(moment.picture)]
        frames.append(_beside([*parts, _bars(moment, low, high)]))
    return Film(title, words, frames, 0.06 if len(frames) > 60 else 0.25)


def maps_film(title: str, words: str, maps: Sequence[Maps], *, to_scale: bool) -> Film:
    """Values on the left, visits (on a logarithmic scale) on the right; where nobody was yet it is grey.

    The scale is that of the last map: before that, values may lie above it, since what is not known is hoped for.
    """
    last = maps[-1]
    known = last.values[last.visits > 0]
    span, most = (float(known.min()), float(known.max())), float(np.log1p(last.visits).max())
    title_of = f"value, {span[0]:.3g} to {span[1]:.3g}"
    frames = []
    for m in maps:
        values, visits = (np.where(m.visits > 0, x, np.nan) for x in (m.values, np.log1p(m.visits)))
        size = _map_size(m.values.shape, to_scale)
        left = _heat(values, span, title_of, m.words, "viridis", size)
        frames.append(
            _beside([left, _heat(visits, (0.0, most), f"visits, at most {m.visits.max():,.0f}", "", "magma", size)])
        )
    return Film(title, words, frames, 0.4)


def write_film(path: Path, title: str, films: Sequence[Film]) -> None:
    """A page with a slider for each film, or, for FILE.gif, the first of them as a GIF."""
    if path.suffix.lower() == ".gif":
        first, *rest = (frame.quantize(COLOURS) for frame in films[0].frames)
        data = io.BytesIO()
        shown = {"append_images": rest, "duration": round(1000 * films[0].seconds), "loop": 0}
        first.save(data, format="GIF", save_all=True, **shown)
        write_atomic(path, data.getvalue())
    elif path.suffix.lower() in (".html", ".htm"):
        write_atomic(path, _page(title, films).encode())
    else:
        raise InvalidParameter(f"The file of 'watch' must end in .html or .gif. Got '{path}'.")


def _page(title: str, films: Sequence[Film]) -> str:
    script = (resources.files("linmdp.report") / "page" / "film.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    data = json.dumps([[_png(frame) for frame in film.frames] for film in films])
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(title)}</title>\n<style>\n{stylesheet()}</style></head>\n<body>"
        f'<header class="top"><div><p class="kicker">linmdp watch</p><h1>{text(title)}</h1></div></header><main>'
        f"{''.join(_player(i, film) for i, film in enumerate(films))}</main>\n"
        f'<script type="application/json" id="frames">{data}</script>\n<script>{script}</script></body></html>\n'
    )


def _player(number: int, film: Film) -> str:
    last = len(film.frames) - 1
    return (
        f'<section class="film" data-film="{number}" data-wait="{round(1000 * film.seconds)}">'
        f"<h2>{text(film.title)}</h2><p>{text(film.words)}</p>"
        f'<figure><img class="wide" alt="{text(film.title)}" src="{_png(film.frames[0])}"></figure>'
        f'<div class="row"><button type="button">play</button>'
        f'<input type="range" min="0" max="{last}" value="0" aria-label="{text(film.title)}"></div></section>'
    )


def _png(frame: Any) -> str:
    data = io.BytesIO()
    frame.quantize(COLOURS).save(data, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def _pillow(module: str) -> Any:
    return needed(f"PIL.{module}", "'watch' needs Pillow: install linmdp with its extra 'figures'.", NoFigures)


def _fitted(picture: np.ndarray) -> Any:
    """The environment's own picture, as high as a frame."""
    image = _pillow("Image").fromarray(np.ascontiguousarray(picture[..., :3], dtype=np.uint8))
    return image.resize((max(1, round(image.width * HEIGHT / image.height)), HEIGHT))


def _beside(parts: Sequence[Any]) -> Any:
    whole = _pillow("Image").new("RGB", (sum(part.width for part in parts), HEIGHT), "white")
    x = 0
    for part in parts:
        whole.paste(part, (x, 0))
        x += part.width
    return whole


def _sheet(title: str, size: int = 15) -> tuple[Any, Any, Any]:
    """An empty panel with a line of words at its top: image, pencil, font."""
    image = _pillow("Image").new("RGB", (PANEL, HEIGHT), "white")
    pencil, font = _pillow("ImageDraw").Draw(image), _pillow("ImageFont").load_default(size)
    pencil.text((16, 12), title, fill=INK, font=font)
    return image, pencil, font


def _bars(moment: Moment, low: float, high: float) -> Any:
    image, pencil, _ = _sheet(moment.words)
    small = _pillow("ImageFont").load_default(12)
    pencil.text((16, 34), "Q: estimate", fill=CHOSEN, font=small)
    pencil.text((88, 34), "and bonus", fill="#b0661a", font=small)
    A, best = min(len(moment.estimate), MOST_ACTIONS), float((moment.estimate + moment.bonus).max())
    top, each = 58, (HEIGHT - 70) / A
    left, right = 44, PANEL - 104

    def x(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    for a in range(A):
        y, estimate, extra = top + each * a, float(moment.estimate[a]), float(moment.bonus[a])
        thick = min(34.0, 0.72 * each)
        chosen = a == moment.action
        pencil.text((16, y + thick / 2 - 7), str(a), fill=INK if chosen else SOFT, font=small)
        ends = sorted((x(0.0), x(estimate)))
        pencil.rectangle((ends[0], y, ends[1], y + thick), fill=CHOSEN if chosen else OTHER)
        pencil.rectangle((x(estimate), y, max(x(estimate), x(estimate + extra)), y + thick), fill=EXTRA)
        total = estimate + extra
        words = f"{total:.3g}" + ("" if total == best else f" ({total - best:.2g})")
        pencil.text((max(x(estimate + extra), ends[1]) + 6, y + thick / 2 - 7), words, fill=INK, font=small)
    return image


def _map_size(shape: tuple[int, ...], to_scale: bool) -> tuple[int, int]:
    """Pixels of a map of that many rows and columns."""
    width, height = PANEL - 32, HEIGHT - 76
    scale = min(width / shape[1], height / shape[0])
    return (max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))) if to_scale else (width, height)


def _heat(values: Array, span: tuple[float, float], title: str, words: str, colours: str, size: tuple[int, int]) -> Any:
    image, pencil, font = _sheet(title)
    library = needed("matplotlib", "'watch' needs matplotlib: install linmdp with its extra 'figures'.", NoFigures)
    shades = library.colormaps[colours].with_extremes(bad="#e3e3df")
    low, high = span
    shown = shades((values - low) / ((high - low) or 1.0))[..., :3]
    map_ = _pillow("Image").fromarray((255 * shown).astype(np.uint8))
    image.paste(map_.resize(size, _pillow("Image").Resampling.NEAREST), (16, 40))
    pencil.text((16, HEIGHT - 28), words, fill=SOFT, font=font)
    return image
