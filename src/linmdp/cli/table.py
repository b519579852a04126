"""`linmdp table`: a store in the terminal, or as a table for other programs."""

from __future__ import annotations

from pathlib import Path

from linmdp.report.narrative import paired_comparisons
from linmdp.report.tables import comparison_table
from linmdp.results.store import Store, existing_store
from linmdp.results.summary import Summary, by_agent
from linmdp.results.table import CURVES, curve_rows, run_columns, run_rows, write_csv, write_parquet


def show_table(folder: Path, csv: Path | None, parquet: Path | None, curves: bool) -> list[Path]:
    """Write the files that are asked for, and return them; print the comparison if none is."""
    store = existing_store(folder)
    try:
        if csv is None and parquet is None:
            print(_comparisons(store))
            return []
        rows = [] if curves else list(run_rows(store))
        columns = CURVES if curves else run_columns(rows)
        for path, write in ((csv, write_csv), (parquet, write_parquet)):
            if path is not None:
                write(path, columns, curve_rows(store) if curves else rows)
        return [path for path in (csv, parquet) if path is not None]
    finally:
        store.close()


def _comparisons(store: Store) -> str:
    """One table for each environment and number of episodes, and what it says in words."""
    groups: dict[tuple[str, int], list[Summary]] = {}
    for summary in by_agent(list(store.results())):
        groups.setdefault((summary.env, summary.episodes), []).append(summary)
    parts = []
    for (env, episodes), alike in groups.items():
        parts.append(
            "\n\n".join([f"{env}: {episodes:,} episodes", comparison_table(alike), *paired_comparisons(alike)])
        )
    return "\n\n".join(parts) or "The store holds no runs yet."
