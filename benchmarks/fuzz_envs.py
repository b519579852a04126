"""Random faults of environments through every loop that plays one: a line with the place, no traceback, nothing lost.

python benchmarks/fuzz_envs.py [TRIALS]          default: 1,500
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent / "tests"), str(Path(__file__).parent)]

from faults import Row
from faulty_env import EPISODES, SPACES, Faulty, H
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import command
import linmdp
from linmdp.envs.games import Game
from linmdp.errors import LinMDPError, described
from linmdp.export.write import export_learner
from linmdp.linearize.collect import random_data
from linmdp.runner.measured import RunStopped

BOUNDS = "reward_low=0,reward_high=1"
AGENTS = ("lsvi-ucb:beta=0.1,lam=0.1", "lsvi-ucb-fixed", "random", "constant", "lsvi-ucb:storage=centres,lam=0.1,M=8")


class Broken(AssertionError):
    """A promise that was not kept."""


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise Broken(words)


def _command(*line: str) -> int:
    """A command: its status is 0, 1 or 2, and a failure is a line."""
    done = command.linmdp(*line)
    _require("Traceback" not in done.err + done.out, done.err)
    _require(done.status in (0, 1, 2), f"status {done.status}")
    said = [words for words in done.err.splitlines() if words.startswith("linmdp: ")]
    _require(done.status != 2 or len(said) == 1, f"{len(said)} lines: {done.err}")
    return done.status


def _spec(rng: random.Random, shows: str, more: str = BOUNDS) -> str:
    return f"gym:Faulty-v0,{more},shows={shows},fault={rng.randrange(10**9)},at={rng.randrange(1, 35)}"


def _shows(rng: random.Random) -> str:
    return rng.choice([*SPACES, "box"])


def python_run(rng: random.Random, folder: Path) -> None:
    """linmdp.run: what was finished before the fault is in the exception."""
    inner = Faulty(_shows(rng), rng.randrange(10**9), rng.randrange(1, 35))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        features = {"features": rng.choice(["auto", "fourier"])} if inner._space is SPACES["box"] else {}
        env = linmdp.GymTask(inner, H=H, reward_low=0.0, reward_high=1.0, **features)
        before, whole = inner.steps, inner.whole
        agent = linmdp.make_agent(rng.choice(AGENTS), env)
        try:
            linmdp.run(env, agent, episodes=EPISODES, verdict=False)
        except RunStopped as stopped:
            kept = 0 if stopped.result is None else stopped.result.episodes
            least = min(EPISODES, inner.whole - whole if before % H == 0 else max(0, inner.whole - whole - 1))
            _require(kept >= least, f"{kept} of {inner.whole} episodes are kept")


def run(rng: random.Random, folder: Path) -> None:
    """`linmdp run --out`."""
    status = _command("run", _spec(rng, _shows(rng)), rng.choice(AGENTS), "-k", str(EPISODES), "--out", str(folder))
    if status == 2 and (folder / "partial.jsonl").exists():
        record = json.loads((folder / "partial.jsonl").read_text())
        _require(0 < record["episodes"] < EPISODES, f"{record['episodes']} episodes are kept")


def compare(rng: random.Random, folder: Path) -> None:
    """`linmdp compare`."""
    agents = [*rng.sample(AGENTS, 2), "-k", str(EPISODES), "--seeds", "1", "-j", "1"]
    _command("compare", _spec(rng, _shows(rng)), *agents, "--out", str(folder))


def sweep(rng: random.Random, folder: Path) -> None:
    """`linmdp sweep`; a healthy environment comes first, and its run must be stored."""
    (folder / "s.toml").write_text(
        f'name = "x"\n[[runs]]\nenv = ["gym:Faulty-v0,{BOUNDS},at=100000", "{_spec(rng, "box")}"]\n'
        f'agents = ["random"]\nepisodes = {EPISODES}\n'
    )
    status = _command("sweep", str(folder / "s.toml"), "--out", str(folder), "-j", "1")
    if status == 2 and (folder / "runs.sqlite").exists():
        stored = command.linmdp("table", str(folder))
        _require("at=100000" in stored.out, "the run before it is lost")


def check(rng: random.Random, folder: Path) -> None:
    """`linmdp check`."""
    _command(
        "check",
        _spec(rng, _shows(rng)),
        "-k",
        "20",
        *rng.choice([[], ["--agent", AGENTS[-1]]]),
    )


def tune(rng: random.Random, folder: Path) -> None:
    """`linmdp tune`."""
    sizes = ["-k", "3", "--budget", "24", "--seeds", "2", "-j", "1", "--out", str(folder)]
    _command("tune", _spec(rng, rng.choice(["box", "discrete"])), "lsvi-ucb", *sizes)


def export(rng: random.Random, folder: Path) -> None:
    """The self-test of an export plays the environment once more."""
    shows = rng.choice(["box", "discrete"])
    kinds = {"features": "fourier", "order": 1} if shows == "box" else {}
    bounds: dict[str, Any] = {"H": H, "reward_low": 0.0, "reward_high": 1.0, **kinds}
    env = linmdp.GymTask(Faulty(shows, at=10**6), **bounds)
    agent = linmdp.make_agent("lsvi-ucb-fixed:beta=0.1,lam=0.1", env, episodes=EPISODES)
    linmdp.run(env, agent, episodes=EPISODES, verdict=False)
    faulty = linmdp.GymTask(Faulty(shows, rng.randrange(10**9), rng.randrange(1, 35)), **bounds)
    export_learner(agent, faulty, folder / "c", real="double", steps=40)


def warm_up(rng: random.Random, folder: Path) -> None:
    """Random play for lengths, rewards and features, when the environment is wrapped."""
    shows = rng.choice(list(SPACES))
    given: list[dict[str, Any]] = [{}, {"H": H}, {"H": H, "reward": "clip"}]
    if shows in ("box", "open"):
        given += [{"H": H, "features": name} for name in ("auto", "fourier")]
    inner = Faulty(shows, rng.randrange(10**9), rng.randrange(1, 200))
    env = linmdp.GymTask(inner, **rng.choice(given))
    linmdp.make_agent("random", env)
    env.task.features  # noqa: B018


def verdict(rng: random.Random, folder: Path) -> None:
    """A fault in the random play of the verdict leaves the run as it is."""
    inner = Faulty("box", rng.randrange(10**9), EPISODES * H + rng.randrange(1, 90))
    env = linmdp.GymTask(inner, H=H, features="fourier", reward_low=0.0, reward_high=1.0)
    found = linmdp.run(env, linmdp.make_agent(rng.choice(AGENTS), env), episodes=EPISODES)
    _require(found.episodes == EPISODES and found.reward == EPISODES * H * 0.5, "the run is not what it was")


def dataset(rng: random.Random, folder: Path) -> None:
    """Transitions of a game for linearization."""
    kinds = {"shows": rng.choice(["box", "discrete", "bytes"]), "fault": rng.randrange(10**9)}
    random_data(Game("Faulty-v0", **kinds, at=rng.randrange(1, 35)), transitions=40, H=H, seed=0)


def other_library(rng: random.Random, folder: Path) -> None:
    """DQN, which plays the environment in a loop of its own."""
    if find_spec("stable_baselines3") is None:
        return
    inner = Faulty("box", rng.randrange(10**9), rng.randrange(1, 35))
    env = linmdp.GymTask(inner, H=H, features="fourier", reward_low=0.0, reward_high=1.0)
    agent = linmdp.make_agent("sb3-dqn:learning_starts=1000", env, episodes=EPISODES)
    try:
        linmdp.run(env, agent, episodes=EPISODES, verdict=False)
    except RunStopped as stopped:
        kept = 0 if stopped.result is None else stopped.result.episodes
        _require(kept >= max(0, inner.whole - 1), f"{kept} of {inner.whole} episodes are kept")


def learner(rng: random.Random, folder: Path) -> None:
    """A learner learns and is evaluated; what it has learned stays."""
    inner = Faulty(_shows(rng), rng.randrange(10**9), rng.randrange(1, 60))
    taught = linmdp.Learner(inner, rng.choice(["auto", *AGENTS]))
    whole = inner.whole
    try:
        taught.learn(EPISODES)
        taught.evaluate(EPISODES)
    except LinMDPError:
        _require(taught.episodes >= min(EPISODES, inner.whole - whole), f"{taught.episodes} of {inner.whole} are kept")
        raise


def streams(rng: random.Random, folder: Path) -> None:
    """Every stream of a vector environment."""
    shows, fault, at = _shows(rng), rng.randrange(10**9), rng.randrange(1, 120)
    mode = rng.choice(list(AutoresetMode))
    made = SyncVectorEnv([lambda: Faulty(shows, fault, at), lambda: Faulty(shows, at=10**6)], autoreset_mode=mode)
    linmdp.Learner(made, rng.choice(AGENTS)).learn(3 * EPISODES)


LOOPS = (
    python_run,
    run,
    compare,
    sweep,
    check,
    tune,
    export,
    warm_up,
    verdict,
    dataset,
    other_library,
    learner,
    streams,
)
SELDOM = {tune: 3, other_library: 3}
"""Loops that take long are tried less often."""


def rows(trials: int = 1500, seed: int = 0) -> Iterator[Row]:
    """One row: every loop, each with faults of its own."""
    failures, tried = list[str](), dict[str, int]()
    for number in range(trials):
        rng = random.Random(f"{seed}-{number}")
        loop = LOOPS[number % len(LOOPS)]
        if number // len(LOOPS) % SELDOM.get(loop, 1):
            loop = (python_run, run, check, warm_up, verdict)[number % 5]
        tried[loop.__name__] = tried.get(loop.__name__, 0) + 1
        folder = Path(tempfile.mkdtemp(prefix="linmdp-fuzz-"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loop(rng, folder)
        except LinMDPError as error:
            if "\n" in str(error):
                failures.append(f"{number} {loop.__name__}: two lines: {error}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(f"{number} {loop.__name__}: {described(error)}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    for words in failures[:20]:
        print(words, file=sys.stderr)
    how = ", ".join(f"{name} {count}" for name, count in tried.items())
    yield Row("a fault of an environment is one line in every loop, and nothing is lost", trials, len(failures), how)


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 1500):
        print(f"{row.promise}: {row.trials} trials, {row.failures} failures ({row.how})", flush=True)
