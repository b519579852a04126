"""Put the results of `make reproduce` (folder reproduced/) into the docs: the table, the words and the pictures.

With a second folder, the one of `linmdp reproduce bounds`, the exponents, too.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def sections(page: Path) -> dict[str, str]:
    """The parts of a reproduce.md by their headings."""
    parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def main() -> None:
    folder = ROOT / "reproduced"
    found = sections(folder / "reproduce.md")
    regret = found["fig-regret: Regret"]
    learning = regret[regret.index("Learning setting") :]
    (DOCS / "generated/paper.md").write_text(learning + "\n")
    page = "\n\n".join(f"### {name}\n\n{text}" for name, text in found.items() if not name.startswith("bounds"))
    (DOCS / "generated/reproduce.md").write_text(page.replace("](fig-", "](images/fig-") + "\n")
    for picture in folder.glob("fig-*.png"):
        shutil.copy(picture, DOCS / "images" / picture.name)
    if len(sys.argv) > 1:
        text = sections(Path(sys.argv[1]) / "reproduce.md")["bounds: exponents of K"]
        (DOCS / "generated/bounds.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
