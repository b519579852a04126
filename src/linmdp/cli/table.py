"""`linmdp table`: a store in the terminal, or as a table for other programs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from linmdp.cli.start import stop_if_damaged
from linmdp.errors import invalid


def table(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of run, compare or sweep")],
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as CSV")] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as Parquet")] = None,
    jsonl: Annotated[Path | None, typer.Option(metavar="FILE", help="write the runs as --json prints them")] = None,
    curves: Annotated[bool, typer.Option("--curves", help="one row per point of a curve, not per run")] = False,
) -> None:
    """Print the results in a folder, or write them as CSV or Parquet."""
    from linmdp.report.comparison import comparison_text
    from linmdp.results import run_folder
    from linmdp.results.run_folder import write_lines
    from linmdp.results.store import existing_store

    if curves and csv is None and parquet is None:
        invalid("table", "curves", "given with --csv or --parquet", curves)
    written = [path for path in (csv, parquet, jsonl) if path is not None]
    damaged: list[str] = []
    with closing(existing_store(folder)) as store:
        if not written:
            print(comparison_text(store.settings(damaged.append)))
        rows = list(run_folder.run_rows(store, damaged.append)) if written and not curves else []
        columns = run_folder.CURVES if curves else run_folder.run_columns(rows)
        for path, write in ((csv, run_folder.write_csv), (parquet, run_folder.write_parquet)):
            if path is not None:
                write(path, columns, run_folder.curve_rows(store, damaged.append) if curves else rows)
        if jsonl is not None:
            write_lines(jsonl, store, damaged=damaged.append)
    if written:
        typer.echo("written: " + ", ".join(map(str, written)), err=True)
    stop_if_damaged(damaged)
