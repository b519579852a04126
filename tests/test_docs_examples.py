"""The examples of the documentation run as they stand, in order, in a process of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["extending.md", "python.md"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    script = tmp_path / "example.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
