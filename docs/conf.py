"""The documentation site. Formulas become MathML when the site is built, so that a page needs no network."""

from __future__ import annotations

import sys
from pathlib import Path

from docutils.nodes import Element, SkipNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import linmdp

sys.path.insert(0, str(Path(__file__).parent))
from pages import filled, mathml

project = "linmdp"
version = release = linmdp.__version__
copyright = "the authors of linmdp"
html_title = f"linmdp {release}"
html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]


def _inline(translator: HTML5Translator, node: Element) -> None:
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def _block(translator: HTML5Translator, node: Element) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>\n')
    raise SkipNode


def _read(_: Sphinx, name: str, source: list[str]) -> None:
    source[0] = filled(name, source[0])


def setup(app: Sphinx) -> None:
    """Fill pages as they are read, and give Sphinx the renderer of formulas that docutils has."""
    app.connect("source-read", _read)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
