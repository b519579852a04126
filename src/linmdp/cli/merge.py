"""`linmdp merge`: the stores of several folders in one, run by run as they are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linmdp.cli.start import say, stop_if_damaged
from linmdp.errors import invalid

if TYPE_CHECKING:
    from linmdp.results.store import Store


def note_shard(store: Store, shard: str, runs: int) -> None:
    """Note which part of a sweep a store is for, and of how many runs; it may be for one part alone."""
    if there := [each for each in store.notes("shard") if each != shard]:
        rule = f"a folder of its own for each shard: '{store.path.parent}' is that of {there[0]}"
        invalid("sweep", "out", rule, shard)
    store.note("shard", shard)
    store.note("size", f"{runs} runs")


def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="folders of the parts; without --out the first takes the rest"),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="folder of the joined store; it may be there")] = None,
) -> None:
    """Join the parts of a sweep, or other stores, in one. Run it again after a part has gone on."""
    from linmdp.io.files import atomic_file, output_folder
    from linmdp.results.store import existing_store, opened_store
    from linmdp.runner.sweep import parsed_shard

    into, *rest = folders if out is None else [out, *folders]
    parts = [part for part in dict.fromkeys(rest) if part.resolve() != into.resolve()]
    if not parts:
        invalid("merge", "DIR", "one folder or more beside that of --out", " ".join(map(str, folders)))
    for part in parts:  # all of them, before anything is written
        existing_store(part).close()
    damaged, shards = list[str](), dict[int, set[int]]()
    with opened_store(into) as store:
        if store.notes("shard"):
            invalid("merge", "out", "a folder that is not itself one part of a sweep", into)
        for part in parts:
            with closing(existing_store(part)) as other:
                store.take(other, damaged.append)
                for command in other.notes("command"):
                    store.note("command", command)
                for i, n in (parsed_shard("merge", said) for said in other.notes("shard")):
                    shards.setdefault(n, set()).add(i)
                size = f"{len(other.keys())} runs"
                if (planned := other.notes("size")) and size not in planned:
                    say(f"warning: '{part}' is not finished: {size} of {planned[-1]}; run its shard again, then this")
            for agent in part.glob("agents/*.safetensors"):
                with atomic_file(output_folder(into / "agents") / agent.name) as file:
                    file.write(agent.read_bytes())
        for n, there in shards.items():
            if missing := [f"{i}/{n}" for i in range(1, n + 1) if i not in there]:
                say(f"warning: not among these folders: shard {', '.join(missing)}")
        say(f"{len(store.keys())} runs of {len(parts)} folders are in {store.path}")
    stop_if_damaged(damaged)
