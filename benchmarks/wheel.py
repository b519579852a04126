"""Build the wheel and try it in an empty environment with core dependencies only.

    python benchmarks/wheel.py [FOLDER]      wheel and sdist into FOLDER (dist/); needs an index of packages

What fails says so and ends with status 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPTIONAL = {"matplotlib", "torch", "plotly", "scipy", "dask", "pandas", "stable-baselines3", "ale-py"}
NEEDED = ("py.typed", "__init__.pyi", "export/c/linmdp.h", "export/c/wasm/linmdp.mjs", "experiments/paper.toml")
SNIPPET = """
import linmdp
env = linmdp.make_env("lock:H=5")
agent = linmdp.make_agent("lsvi-ucb", env)
print(linmdp.run(env, agent, episodes=100, seed=0).verdict)
"""


def called(*command: object, folder: Path) -> str:
    """What a command prints; its failure is ours."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(out: Path, scratch: Path) -> Path:
    """The wheel, by `python -m build` in an environment of its own."""
    venv.create(scratch / "build", with_pip=True)
    python = scratch / "build" / "bin" / "python"
    called(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", "build", folder=scratch)
    called(python, "-m", "build", "--outdir", out, ROOT, folder=scratch)
    return max(out.glob("linmdp-*.whl"), key=lambda path: path.stat().st_mtime)


def check_contents(wheel: Path) -> None:
    """What is no Python is in the wheel, too."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in NEEDED if f"linmdp/{name}" not in names]
    if missing:
        raise SystemExit(f"{wheel.name} has no {', '.join(missing)}")


def check_install(wheel: Path, scratch: Path) -> str:
    """Install it alone and use it, away from the sources; the version that it says."""
    venv.create(scratch / "core", with_pip=True)
    python, linmdp = scratch / "core" / "bin" / "python", scratch / "core" / "bin" / "linmdp"
    called(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, folder=scratch)
    called(python, "-m", "pip", "check", folder=scratch)
    listed = json.loads(called(python, "-m", "pip", "list", "--format", "json", folder=scratch))
    extra = OPTIONAL & {package["name"].lower() for package in listed}
    if extra:
        raise SystemExit(f"a core install brought {', '.join(extra)}")
    print(called(python, "-W", "error", "-c", SNIPPET, folder=scratch).strip())
    result = json.loads(
        called(linmdp, "run", "lock:H=5", "lsvi-ucb:storage=centres,beta=0.5", "-k", 50, "--json", folder=scratch)
    )
    assert result["agent_bytes"] > 0
    for command in ("run gym:CartPole-v1 auto -k 5", "envs", "agents", "check lock --agent lsvi-ucb"):
        called(linmdp, *command.split(), folder=scratch)
    called(
        linmdp,
        "run",
        "sensor",
        "lsvi-ucb:storage=centres,lam=0.1,stationary=true",
        "-k",
        20,
        "--out",
        "run",
        folder=scratch,
    )
    called(linmdp, "export", "run", "--c", "firmware", "--steps", 50, folder=scratch)
    return called(linmdp, "--version", folder=scratch).strip()


def main() -> None:
    """Build, look inside, install, use."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    with tempfile.TemporaryDirectory() as name:
        wheel = built(out, Path(name))
        check_contents(wheel)
        version = check_install(wheel, Path(name))
    if f"-{version}-" not in wheel.name:
        raise SystemExit(f"{wheel.name} says that it is {version}")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, works in an empty environment")


if __name__ == "__main__":
    main()
