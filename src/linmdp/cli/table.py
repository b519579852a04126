"""`linmdp table`: a store in the terminal, or as a table for other programs."""

from __future__ import annotations

from pathlib import Path

from linmdp.report.comparison import Comparison
from linmdp.results.store import existing_store
from linmdp.results.table import CURVES, curve_rows, run_columns, run_rows, write_csv, write_parquet


def show_table(folder: Path, csv: Path | None, parquet: Path | None, curves: bool) -> list[Path]:
    """Write the files that are asked for, and return them; print the comparison if none is."""
    store = existing_store(folder)
    try:
        if csv is None and parquet is None:
            print(Comparison(store.results()).table())
            return []
        rows = [] if curves else list(run_rows(store))
        columns = CURVES if curves else run_columns(rows)
        for path, write in ((csv, write_csv), (parquet, write_parquet)):
            if path is not None:
                write(path, columns, curve_rows(store) if curves else rows)
        return [path for path in (csv, parquet) if path is not None]
    finally:
        store.close()
