"""`linmdp report`: what it says when the page is written."""

from __future__ import annotations

from pathlib import Path

from linmdp.io.units import human_bytes
from linmdp.report.html import write_report


def report_folder(folder: Path, page: Path | None) -> str:
    """Write the page; the line that says where it is."""
    written = write_report(folder, page)
    size = human_bytes(written.page.stat().st_size)
    figures = f"; {len(written.figures)} figures in {written.figures[0].parent}" if written.figures else ""
    more = f"; {written.left_out} further pairs of environment and K are not in it" if written.left_out else ""
    return f"written: {written.page} ({size}){figures}{more}"
