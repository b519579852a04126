"""The C library compiled to WebAssembly by clang, with a loader in JavaScript: for a browser, or any host of .wasm."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from linmdp.agents.base import Agent
from linmdp.errors import InvalidParameter
from linmdp.export.numbers import template
from linmdp.export.write import Exported, export_learner, write_texts
from linmdp.io.files import output_folder, write_atomic

FLAGS = ("--target=wasm32", "-std=c99", "-O2", "-ffreestanding", "-nostdlib", "-nostdlibinc", "-mbulk-memory")
"""No libc: sqrt and floor are instructions, memory is copied by one, and c/wasm/math.c has the rest."""

GLUE = ("math.h", "math.c", "linmdp_wasm.c", "selftest_wasm.c")
SCRIPTS = ("linmdp.mjs", "selftest.mjs")
PAGE = 1 << 16


def export_wasm(
    agent: Agent, env: Any, folder: Path, *, real: str, steps: int, seed: int = 0, run: str = ""
) -> Exported:
    """A learner of the kind of `agent` as linmdp.wasm, its loader, and a self-test of so many steps in `env`."""
    clang = find_clang()
    with tempfile.TemporaryDirectory() as name:
        c = Path(name)
        wrote = export_learner(agent, env, c, real=real, steps=steps, seed=seed, run=run)
        write_texts(c / "wasm", {file: template(f"wasm/{file}") for file in GLUE})
        everything = sorted(c.glob("linmdp*.c"))
        library = [path for path in everything if path.name != "linmdp_policy.c"]
        test = [*everything, c / "selftest.c", c / "selftest_vectors.c"]
        modules = {
            "linmdp.wasm": _compiled(clang, c, [*library, c / "wasm" / "linmdp_wasm.c"], wrote.stack),
            "selftest.wasm": _compiled(clang, c, [*test, c / "wasm" / "selftest_wasm.c"], wrote.stack),
        }
    output_folder(folder)
    for file, data in modules.items():
        write_atomic(folder / file, data)
    scripts = write_texts(folder, {file: template(f"wasm/{file}") for file in SCRIPTS})
    return wrote._replace(files=[*(folder / file for file in modules), *scripts])


def find_clang() -> str:
    """The path of clang, which brings its linker's driver along."""
    clang = shutil.which("clang")
    if clang is None or shutil.which("wasm-ld") is None:
        missing = "clang" if clang is None else "wasm-ld"
        raise InvalidParameter(
            f"The '--wasm' of export must be left out where there is no {missing}: install clang and lld "
            "(apt-get install clang lld; brew install llvm lld)."
        )
    return clang


def _compiled(clang: str, c: Path, sources: list[Path], stack: int) -> bytes:
    """The module. Its stack lies below everything else, so that an overflow is a trap and harms nothing."""
    module = c / "made.wasm"
    pages = (2 * stack // PAGE + 1) * PAGE
    linking = ("-Wl,--no-entry", "-Wl,--stack-first", f"-Wl,-z,stack-size={pages}", "-Wl,--strip-all")
    command = [clang, *FLAGS, *linking, f"-I{c}", f"-I{c / 'wasm'}", "-o", module]
    done = subprocess.run([*map(str, [*command, *sources, c / "wasm" / "math.c"])], capture_output=True, text=True)
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), "no message").strip()
        raise InvalidParameter(f"The '--wasm' of export needs a clang and lld that have the target wasm32. Got: {said}")
    return module.read_bytes()
