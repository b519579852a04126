"""Pictures that move: an episode with what the agent believes beside it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from linmdp.errors import InvalidParameter, needed
from linmdp.io.files import write_atomic
from linmdp.report.html import asset, data_uri, script_hash
from linmdp.report.plots import NoFigures, drawing
from linmdp.report.section_data import embedded
from linmdp.types import Array

HEIGHT = 3.4
"""Inches of a frame."""
CHOSEN, OTHER, EXTRA = "#2266aa", "#9db8d2", "#f0b46a"
MOST_ACTIONS = 18
COLOURS = 64


class Moment(NamedTuple):
    """One step: the environment as a picture (h, w, 3) or None, words, and Q as estimate and bonus, (A,) each."""

    picture: np.ndarray | None
    words: str
    estimate: Array
    bonus: Array
    action: int


class Film(NamedTuple):
    """Frames, one after the other, with a title and a sentence that says what they show."""

    title: str
    words: str
    frames: list[Any]
    seconds: float


def episode_film(title: str, words: str, moments: Sequence[Moment]) -> Film:
    """The environment on the left, bars of Q on the right; the scale is the same in every frame."""
    total, estimate = np.array([m.estimate + m.bonus for m in moments]), np.array([m.estimate for m in moments])
    low, high = min(0.0, float(estimate.min())), max(float(total.max()), 1e-9)
    drawn, frames = moments[0].picture is not None, list[Any]()
    with drawing(1 + drawn, (3.8 * (1 + drawn), HEIGHT), layout="constrained") as (figure, *panels):
        for moment in moments:
            for axes in panels:
                axes.clear()
            if drawn:
                panels[0].imshow(moment.picture)
                panels[0].axis("off")
            _bars(panels[-1], moment, low, high + 0.35 * (high - low))  # with space for numbers
            frames.append(_frame(figure))
    return Film(title, words, frames, 0.06 if len(frames) > 60 else 0.25)


def _bars(axes: Any, moment: Moment, low: float, high: float) -> None:
    actions, total = np.arange(len(moment.estimate))[:MOST_ACTIONS], moment.estimate + moment.bonus
    estimate, bonus = moment.estimate[actions], moment.bonus[actions]
    gaps = total[actions] - total.max()
    axes.barh(actions, estimate, color=np.where(actions == moment.action, CHOSEN, OTHER))
    ends = axes.barh(actions, bonus, left=estimate, color=EXTRA)
    numbers = [f"{q:.3g}" + (f" ({gap:.2g})" if gap else "") for q, gap in zip(total[actions], gaps, strict=True)]
    axes.bar_label(ends, numbers, padding=3, fontsize=8)
    axes.set(xlim=(low, high), yticks=actions, xlabel="Q of each action: estimate, and bonus")
    axes.set_title(moment.words, fontsize=9)
    axes.invert_yaxis()


def _frame(figure: Any) -> Any:
    """What is drawn, as an image of few colours."""
    image = needed("PIL.Image", "'watch' needs Pillow: pip install 'linmdp[figures]'.", NoFigures)
    figure.canvas.draw()
    return image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3]).quantize(COLOURS)


def write_film(path: Path, title: str, film: Film) -> None:
    """A page with a slider, or, for FILE.gif, a GIF."""
    data = io.BytesIO()
    if path.suffix.lower() == ".gif":
        first, *rest = film.frames
        shown = {"append_images": rest, "duration": round(1000 * film.seconds), "loop": 0}
        first.save(data, format="GIF", save_all=True, **shown)
        write_atomic(path, data.getvalue())
    elif path.suffix.lower() in (".html", ".htm"):
        script = asset("film.js")
        values = {"title": escape(title), "policy": script_hash(script), "style": asset("style.css"), "script": script}
        page = Template(asset("film.html")).substitute(values, films=embedded([_record(film)]))
        write_atomic(path, page.encode())
    else:
        raise InvalidParameter(f"The file of 'watch' must end in .html or .gif. Got '{path}'.")


def _record(film: Film) -> dict[str, Any]:
    """What the page's script makes a player of."""
    wait = round(1000 * film.seconds)
    return {"title": film.title, "words": film.words, "wait": wait, "frames": list(map(_png, film.frames))}


def _png(frame: Any) -> str:
    data = io.BytesIO()
    frame.save(data, format="PNG", optimize=True)
    return data_uri("png", data.getvalue())
