"""The site: formulas are what they say, and every public name has a description."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import linmdp

DOCS = Path(__file__).parent.parent / "docs"


def script(name: str) -> Any:
    """A module of the docs, which are no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tex() -> Any:
    pytest.importorskip("docutils")
    return script("pages")


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
        (r"\hat w_h + \bar x", r"\hat{w}{}_h + \bar x"),
    ],
)
def test_an_argument_without_braces_is_one_token(tex: Any, written: str, meant: str) -> None:
    assert tex.braced(written) == meant
    half = re.sub(r"\s", "", tex.mathml(r"\frac12 \sigma"))
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac><mi>σ</mi>" in half


def test_large_brackets_have_a_side(tex: Any) -> None:
    assert (
        tex.sided(r"\big( x \big)^2 \Big\{ y \Big\} \bigcup \bigl(")
        == r"\bigl( x \bigr)^2 \Bigl\{ y \Bigr\} \bigcup \bigl("
    )


def test_every_formula_of_the_pages_can_be_shown(tex: Any) -> None:
    count = 0
    for page in DOCS.glob("*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|(?<![\\$`])\$([^$\n]+?)\$", text, flags=re.DOTALL):
            assert "merror" not in tex.mathml(block or inline)
            count += 1
    assert count > 300


def test_the_first_page_is_readme_with_paths_of_the_site_and_a_menu_of_all_pages() -> None:
    first = script("pages").filled("index", (DOCS / "index.md").read_text())
    shown = (DOCS.parent / "README.md").read_text()
    assert first.startswith(shown.partition("<picture>")[0])
    for target in re.findall(r"\]\(([^)#]+)\)|image\} (\S+)", first):
        assert (DOCS / "".join(target)).is_file()
    listed = set(re.findall(r"^([\w-]+)$", first.partition("```{toctree}")[2], flags=re.MULTILINE))
    assert listed == {page.stem for page in DOCS.glob("*.md")} - {"index"}


def test_the_reference_has_every_public_name_and_refuses_one_without_a_description() -> None:
    pages = script("pages")
    page = "".join(map(pages.api, pages.groups()))
    for name in linmdp.__all__:
        assert f"## `{name}`\n" in page
    assert "- `q_values(h, state)`: What the agent believes each action is worth" in page
    assert "- `beta`: width of the confidence bonus" in page

    class Silent:
        def said(self) -> None:
            """It is."""

        def unsaid(self) -> None: ...

    with pytest.raises(LookupError, match="'Silent' has no description"):
        pages.described("Silent", Silent)
    found = dict(pages.members_of(Silent))
    assert "It is." in pages.member("Silent.said", found["said"])
    with pytest.raises(LookupError, match=r"'Silent.unsaid' has no description"):
        pages.member("Silent.unsaid", found["unsaid"])
