"""Training alone, from a dataset to a model file, where there is torch and NumPy and little else:

python -m linmdp.linearize DATASET MODEL --dim 512 --device cuda
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import fields
from pathlib import Path

from linmdp.errors import LinMDPError
from linmdp.linearize.data import read_dataset
from linmdp.linearize.measure import Linearity, sentences
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, train


def main() -> int:
    """Every field of `Settings` is an option; `--dim` is d."""
    parser = argparse.ArgumentParser(prog="python -m linmdp.linearize", description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("model", type=Path)
    for field in fields(Settings):
        name = "dim" if field.name == "d" else field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(f"--{name}", dest=field.name, action="store_true")
        else:
            parser.add_argument(f"--{name}", dest=field.name, type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    source, target = given.pop("dataset"), given.pop("model")
    try:
        settings, data = Settings(**given), read_dataset(source)
        began = time.perf_counter()
        model = train(data, settings, checkpoint=target.with_name(target.name + ".checkpoint"))
        write_model(target, model)
    except LinMDPError as error:
        print(f"linmdp: {error}", file=sys.stderr)
        return 2
    stopped = model.meta["settings"]["stopped"]
    print(f"{target}: {stopped:,} iterations, {time.perf_counter() - began:.1f} s")
    for line in sentences(Linearity(**model.meta["metrics"])):
        print(f"  {line}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
