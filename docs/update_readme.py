"""Put the results of `make demo` (folder demo/) into README.md: its table and its picture."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> None:
    table = (ROOT / "demo/table.md").read_text().split("\n\n", 1)[1].strip()
    readme = ROOT / "README.md"
    marked = re.sub(r"(<!-- demo -->\n).*?(<!-- /demo -->)", rf"\1{table}\n\2", readme.read_text(), flags=re.DOTALL)
    readme.write_text(marked)
    (ROOT / "docs/images").mkdir(exist_ok=True)
    shutil.copy(ROOT / "demo/regret.png", ROOT / "docs/images/demo.png")


if __name__ == "__main__":
    main()
