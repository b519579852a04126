"""`linmdp table`: a store in the terminal, or as a table for other programs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from linmdp.report.comparison import Comparison
from linmdp.results.run_folder import LINES, read_folder, write_lines
from linmdp.results.store import existing_store
from linmdp.results.table import CURVES, curve_rows, run_columns, run_rows, write_csv, write_parquet


def show_table(folder: Path, csv: Path | None, parquet: Path | None, jsonl: Path | None, curves: bool) -> list[Path]:
    """Write the files that are asked for, and return them; print the comparison if none is."""
    if csv is parquet is jsonl is None and not (folder / "runs.sqlite").exists() and (folder / LINES).exists():
        print(Comparison(read_folder(folder).results).table())  # of an older version
        return []
    with closing(existing_store(folder)) as store:
        if csv is parquet is jsonl is None:
            results = read_folder(folder).results if (folder / LINES).exists() else store.results()
            print(Comparison(results).table())
            return []
        rows = [] if curves else list(run_rows(store))
        columns = CURVES if curves else run_columns(rows)
        for path, write in ((csv, write_csv), (parquet, write_parquet)):
            if path is not None:
                write(path, columns, curve_rows(store) if curves else rows)
        if jsonl is not None:
            write_lines(folder, store, path=jsonl)
        return [path for path in (csv, parquet, jsonl) if path is not None]
