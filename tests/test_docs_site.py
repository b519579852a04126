"""The site: formulas are what they say, and every public name has a description."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import linmdp

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def tex() -> Any:
    pytest.importorskip("docutils")
    spec = importlib.util.spec_from_file_location("tex", DOCS / "tex.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\frac12 \sigma", r"\frac{1}{2} \sigma"),
        (r"\tfrac12\sigma", r"\tfrac{1}{2}\sigma"),
        (r"\frac\sigma2", r"\frac{\sigma}{2}"),
        (r"\frac1{d H}", r"\frac{1}{d H}"),
        (r"\frac{1}2", r"\frac{1}{2}"),
        (r"\frac{e^{a q_l}}{2}", r"\frac{e^{a q_l}}{2}"),
        (r"x^12 + \sqrt23", r"x^{1}2 + \sqrt{2}3"),
    ],
)
def test_an_argument_without_braces_is_one_token(tex: Any, written: str, meant: str) -> None:
    assert tex.braced(written) == meant
    half = re.sub(r"\s", "", tex.mathml(r"\frac12 \sigma"))
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac><mi>σ</mi>" in half


def test_every_formula_of_the_pages_can_be_shown(tex: Any) -> None:
    count = 0
    for page in DOCS.glob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|(?<![\\$`])\$([^$\n]+?)\$", text, flags=re.DOTALL):
            assert "merror" not in tex.mathml(block or inline)
            count += 1
    assert count > 300


def test_every_public_name_says_what_it_is() -> None:
    """As the build of the API pages demands, here for those who do not build the site."""
    for name in linmdp.__all__:
        found = getattr(linmdp, name)
        assert inspect.getdoc(found), name
        for key, member in vars(found).items() if isinstance(found, type) else ():
            if not key.startswith("_") and callable(getattr(member, "__func__", member)):
                assert inspect.getdoc(getattr(found, key)), f"{name}.{key}"
