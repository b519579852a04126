"""Run the cells of a notebook, one after the other, and put what they show into it; needs no Jupyter.

.venv/bin/python tests/notebook.py examples/first-steps.ipynb
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with fresh outputs; the first error ends it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"], cell["outputs"] = count, _outputs("".join(cell["source"]), names, count)
    return notebook


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree, value = ast.parse(source), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"execution_count": count, "metadata": {}, "output_type": "execute_result", "data": _shown(value)}
        found.append(data)
    return found


def _shown(value: Any) -> dict[str, Any]:
    """As a notebook shows it: a figure as a picture, HTML where the value has some, and text."""
    shown: dict[str, Any] = {"text/plain": [repr(value)[:200]]}
    if hasattr(value, "_repr_html_"):
        shown["text/html"] = value._repr_html_().splitlines(keepends=True)
    figure = getattr(value, "figure", None)
    if figure is not None:
        import matplotlib.pyplot as plt

        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80)
        plt.close(figure)
        shown["image/png"] = base64.b64encode(picture.getvalue()).decode()
    return shown


def main() -> None:
    """Write the notebook in place."""
    import matplotlib

    matplotlib.use("agg")
    path = Path(sys.argv[1])
    path.write_text(json.dumps(executed(json.loads(path.read_text())), indent=1) + "\n")


if __name__ == "__main__":
    main()
