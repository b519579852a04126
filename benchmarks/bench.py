"""Speed and memory, each row a ratio measured in one process: `make bench` prints the table and writes it into docs.

One BLAS thread throughout. Machines are noisy: times are the least of several repetitions, and nothing is asserted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import linmdp
from linmdp.envs.guard import Guard
from linmdp.io.units import human_bytes
from linmdp.report.tables import into_pages, markdown
from linmdp.runner.batch import Job, jobs_for, run_jobs, run_unit
from linmdp.runner.loop import play, run
from linmdp.runner.registry import make_learner
from linmdp.types import Array, Task
from reference import ReferenceLSVI

AGENT = "lsvi-ucb:beta=0.05,lam=0.1"
SIZES = {"S": 500, "A": 15, "d": 30, "H": 50}
Row = tuple[str, str, str]


def least(function: Callable[[], Any], *, calls: int, repeats: int = 7) -> float:
    """The least time of one call, over several repetitions of `calls` calls."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - start) / calls)
    return min(found)


def seconds(env: Any, spec: str, episodes: int, eval_every: int = 20) -> float:
    """Wall time of a run, evaluation of regret included."""
    agent = linmdp.make_agent(spec, env, episodes=episodes)
    start = time.perf_counter()
    run(env, agent, episodes=episodes, eval_every=eval_every)
    return time.perf_counter() - start


def spec_of(**changes: int) -> str:
    return "synthetic:" + ",".join(f"{k}={v}" for k, v in (SIZES | changes).items())


def bare_products() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """F @ [w u] with F (S*A, d) as it is written, and the same product in the layout that linmdp keeps."""
    rng = np.random.default_rng(0)
    F, two = rng.random((SIZES["S"] * SIZES["A"], SIZES["d"])), rng.random((SIZES["d"], 2))
    out, columns, rows = np.empty((len(F), 2)), np.ascontiguousarray(F.T), np.empty((2, len(F)))
    flat = np.ascontiguousarray(two.T)
    return lambda: np.matmul(F, two, out=out), lambda: np.matmul(flat, columns, out=rows)


def planning(rounds: int = 9) -> list[Row]:
    """The planning pass and the whole run over the bare product: medians over rounds in which each has its turn.

    All are means over about half a second, one after the other, so that a neighbour's load falls on each alike.
    """
    bare, ours = bare_products()
    env: Any = linmdp.make_env(spec_of())
    agent: Any = linmdp.make_agent(AGENT, env)
    run(env, agent, episodes=30, eval_every=20)
    memory, v, H, K = agent._planner.storage, np.full(SIZES["d"], 1e-9), SIZES["H"], 100
    state = iter(range(10**9))
    turns: dict[str, Callable[[], float]] = {
        "bare": lambda: least(bare, calls=10_000, repeats=1),
        "ours": lambda: least(ours, calls=10_000, repeats=1),
        "sweep": lambda: least(lambda: memory.sweep(next(state) % H, v), calls=8000, repeats=1),
        "run": lambda: seconds(env, AGENT, K) / K / H,
        "float32": lambda: seconds(env, AGENT + ",dtype=float32", K) / K / H,
    }
    took = {name: np.empty(rounds) for name in turns}
    for i in range(rounds):
        for name, turn in turns.items():
            took[name][i] = turn()

    def ratio(name: str, to: str) -> str:
        ratios = took[name] / took[to]
        return f"{np.median(ratios):.2f} x {to} ({ratios.min():.2f} to {ratios.max():.2f}"

    us = {name: f"{np.median(times) * 1e6:.0f} us" for name, times in took.items()}
    return [
        ("bare product F @ [w u]", us["bare"], f"1 (in the layout of linmdp: {us['ours']})"),
        ("planning pass of one step", us["sweep"], ratio("sweep", "bare") + "; target 1.6)"),
        ("whole run, per step", us["run"], ratio("run", "bare") + "; target 2.5)"),
        ("the same, dtype=float32", us["float32"], ratio("float32", "run") + ")"),
    ]


def against_reference() -> list[Row]:
    """The literal transcription at K episodes, and by a fit a K + b K^2 beyond."""
    env: Any = linmdp.make_env(spec_of())
    slow = ReferenceLSVI(env.task, beta=0.05, lam=0.1, cap="remaining", ties="random")
    took, elapsed = 0.0, {}
    for k in range(1, 301):
        start = time.perf_counter()
        slow.begin_episode()
        state, _ = env.reset(seed=k)
        for _ in play(Guard(env), slow, state, k):  # type: ignore[arg-type]
            pass
        took += time.perf_counter() - start
        elapsed[k] = took
    fast = {K: seconds(env, AGENT, K, eval_every=10**9) for K in (300, 1500)}
    K = np.array([100.0, 200.0, 300.0])
    (a, b), *_ = np.linalg.lstsq(np.stack((K, K**2), axis=1), np.array([elapsed[int(k)] for k in K]))
    at_1500 = a * 1500 + b * 1500**2
    return [
        (
            "literal transcription, K=300",
            f"{elapsed[300]:.0f} s",
            f"{elapsed[300] / fast[300]:.0f} x linmdp (target 50)",
        ),
        (
            "literal transcription, K=1500",
            f"{at_1500:.0f} s (by fit)",
            f"{at_1500 / fast[1500]:.0f} x linmdp ({fast[1500]:.1f} s measured)",
        ),
    ]


def exponents() -> list[Row]:
    """Growth of the time: slope of log time over log size."""
    rows = []
    env: Any = linmdp.make_env(spec_of())
    sizes = (1000, 3000, 8000, 20_000)
    agent: Any = linmdp.make_agent(AGENT, env)
    held, times, done = [], [], 0
    start = time.perf_counter()
    for K in sizes:  # one run, looked at as it passes each K
        for k in range(done, K):
            agent.begin_episode()
            state, _ = env.reset(seed=k)
            for _ in play(Guard(env), agent, state, k):
                pass
        done = K
        times.append(time.perf_counter() - start)
        held.append(agent.nbytes)
    slope = _slope(sizes, times)
    rows.append(
        ("time over K, 1,000 to 20,000", f"{times[0]:.1f} to {times[-1]:.0f} s", f"K^{slope:.2f} (target 1.05)")
    )
    flat = "flat to the byte" if len(set(held)) == 1 else "NOT flat"
    rows.append(("memory over K, 1,000 to 20,000", human_bytes(held[-1]), flat))
    for name, sizes in (
        ("S", (250, 500, 1000, 2000)),
        ("A", (8, 15, 30, 60)),
        ("d", (15, 30, 60, 120)),
        ("H", (12, 25, 50, 100)),
    ):
        times = [seconds(linmdp.make_env(spec_of(**{name: n})), AGENT, 60, eval_every=10**9) for n in sizes]
        label = f"time over {name}, {sizes[0]} to {sizes[-1]}"
        rows.append((label, f"{times[0]:.2f} to {times[-1]:.2f} s", f"{name}^{_slope(sizes, times):.2f}"))
    return rows


def _slope(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def batches() -> list[Row]:
    """Sixteen seeds together against one alone; then the real thing, K=12,000."""
    env: Any = linmdp.make_env(spec_of())
    K = 150
    alone = min(seconds(env, AGENT, K) for _ in range(3))
    rows = [("one run alone, K=150", f"{alone / K * 1e3:.2f} ms per episode", "1")]
    for B in (8, 16):
        jobs = [Job(spec_of(), AGENT, K, seed, 20) for seed in range(B)]
        took = min(least(lambda j=jobs: run_unit(j), calls=1, repeats=3), np.inf) / B  # type: ignore[misc]
        rows.append(
            (
                f"{B} in lockstep, one core, per seed",
                f"{took / K * 1e3:.2f} ms per episode",
                f"{took / alone:.2f} x alone",
            )
        )
    jobs = jobs_for(spec_of(), [AGENT], episodes=K, seeds=16, eval_every=20)
    list(run_jobs(jobs, processes=2))  # starts the processes
    took = least(lambda: list(run_jobs(jobs, processes=2)), calls=1, repeats=3) / 16
    label = "linmdp run --seeds 16 on 2 cores, per seed"
    rows.append((label, f"{took / K * 1e3:.2f} ms per episode", f"{took / alone:.2f} x alone (target 0.5)"))
    K = 12_000
    one = seconds(env, AGENT, K)
    start = time.perf_counter()
    results = list(run_jobs(jobs_for(spec_of(), [AGENT], episodes=K, seeds=16, eval_every=20), processes=2))
    sixteen = time.perf_counter() - start
    ends = np.array([r.final_regret for r in results])
    error = ends.std(ddof=1) / 4
    rows += [
        ("K=12,000, one seed", f"{one:.0f} s", "-"),
        (
            "K=12,000, 16 seeds on 2 cores",
            f"{sixteen:.0f} s",
            f"regret {ends.mean():.0f} +- {error:.0f} (standard error)",
        ),
    ]
    half = list(run_jobs(jobs_for(spec_of(), [AGENT + ",dtype=float32"], episodes=2000, seeds=8), processes=2))
    full = [r.regret[1999] for r in results[:8] if r.regret is not None]
    difference = np.mean([h.final_regret for h in half]) / np.mean(full) - 1
    rows.append(("regret of float32, K=2,000, the same 8 seeds", "-", f"{difference:+.2%} against float64"))
    return rows


def batches_auto(rounds: int = 3) -> list[Row]:
    """No parameter: each run has a width and a lambda of its own. CPU time, the least of several rounds, in turns.

    Sixteen seeds run as `linmdp run --seeds 16` runs them, in two processes side by side. What they take per seed is
    the time of the slower process over all sixteen: CPU time, so that others on the machine do not count as much.
    """
    K, H, d = 150, SIZES["H"], SIZES["d"]
    jobs = jobs_for(spec_of(), ["lsvi-ucb"], episodes=K, seeds=16, eval_every=20)
    list(run_jobs([job._replace(episodes=2) for job in jobs], processes=2))  # starts the processes

    def cpu(work: Callable[[], Any]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    def slower() -> float:
        took = np.array([r.cpu_seconds for r in sorted(run_jobs(jobs, processes=2), key=lambda r: r.seed)])
        return float(max(took[:8].sum(), took[8:].sum()))

    def together(some: list[Job]) -> float:
        return sum(r.cpu_seconds for r in run_unit(some)) / len(some)

    turns = [(together(jobs[:1]), together(jobs[:8]), slower() / 16) for _ in range(rounds)]
    alone, eight, sixteen = np.min(turns, axis=0) / K
    env: Any = linmdp.make_env(spec_of())
    agent: Any = linmdp.make_agent("lsvi-ucb", env)
    planned = run(env, agent, episodes=K, eval_every=K).switches
    large, everything = np.random.default_rng(0).random((1000, 1000)), np.ones(H, dtype=np.bool_)
    product = min(cpu(lambda: large @ large) for _ in range(10)) / 2e9  # seconds per operation
    forms = min(cpu(lambda: agent._planner.storage.refresh(everything)) for _ in range(10))
    speed = H * SIZES["S"] * SIZES["A"] * d * (d + 1) * product / forms
    least_each = H * SIZES["S"] * SIZES["A"] * d * (d + 1) * product * planned / K
    return [
        (f"one run alone, K={K}", f"{alone * 1e3:.2f} ms per episode", "1"),
        (
            "8 in lockstep, one core, per seed",
            f"{eight * 1e3:.2f} ms per episode",
            f"{eight / alone:.2f} x alone",
        ),
        (
            "linmdp run --seeds 16, two processes of 8, per seed",
            f"{sixteen * 1e3:.2f} ms per episode",
            f"{sixteen / alone:.2f} x alone (target 0.3)",
        ),
        (
            "forms of one run alone",
            f"{forms * planned / K * 1e3:.2f} ms per episode",
            f"{speed:.0%} of the speed of a large product",
        ),
        (
            "the same arithmetic at that speed",
            f"{least_each * 1e3:.2f} ms per episode",
            f"{least_each / alone:.2f} x alone",
        ),
    ]


UNITS = (("gym:Taxi-v3", 300), ("gym:FrozenLake-v1", 1000), ("riverswim", 300), ("sensor", 300))


def unit_planning() -> list[Row]:
    """Unit vectors with no parameter: the CPU time of planning, which is all that several seeds could share."""
    rows = []
    for name, K in UNITS:
        env: Any = linmdp.make_env(name)
        agent: Any = linmdp.make_agent("auto", env, episodes=K)
        planning = 0.0

        def timed(begin: Callable[[], None] = agent.begin_episode) -> None:
            nonlocal planning
            start = time.process_time()
            begin()
            planning += time.process_time() - start

        agent.begin_episode = timed
        took = run(env, agent, episodes=K, eval_every=K).cpu_seconds
        gain = f"{1 / (1 - planning / took):.2f} x faster if planning took no time"
        rows.append((f"`{name}`, K={K:,}, {agent.updates // env.task.H} plannings", f"{planning / took:.0%}", gain))
    return rows


def control(rounds: int = 2) -> list[Row]:
    """CartPole with no parameter, 100 episodes: CPU time of a step, planning and the environment included."""
    rows, cpu, steps = [], 0.0, 0.0
    for seed in range(3):
        env: Any = linmdp.make_env("gym:CartPole-v1")
        found = [run(env, linmdp.make_agent("auto", env), episodes=100, seed=seed) for _ in range(rounds)]
        least_cpu, played = min(r.cpu_seconds for r in found), found[0].costs[-1][3]
        plannings = f"{found[0].switches} plannings"
        rows.append(
            (f"CartPole, seed {seed}, {played:,.0f} steps", f"{1e3 * least_cpu / played:.3f} ms a step", plannings)
        )
        cpu, steps = cpu + least_cpu, steps + played
    return [*rows, ("all of them", f"{1e3 * cpu / steps:.3f} ms a step", "target 0.2 ms")]


RARE = AGENT.replace("lsvi-ucb", "lsvi-ucb-rare-switch")


def switching() -> list[Row]:
    """LSVI-UCB-RareSwitch as it is by default beside LSVI-UCB on the paper's MDP, both at lam=0.1."""
    return _switching("alone", range(1))


def switching_together() -> list[Row]:
    """The same with eight seeds in lockstep."""
    return _switching("8 in lockstep", range(8))


def _switching(label: str, seeds: range, K: int = 12_000) -> list[Row]:
    """CPU time (without the evaluation of regret), plannings and regret, both agents in one process."""
    found = [run_unit([Job(spec_of(), one, K, seed, 20) for seed in seeds]) for one in (AGENT, RARE)]
    often, seldom = (sum(r.cpu_seconds for r in results) for results in found)
    each, few = (np.mean([r.switches for r in results]) for results in found)
    exact, rare = (np.array([r.final_regret for r in results]) for results in found)
    ratio, label = f"{(rare / exact).mean():.3f}", f"{label}, K={K:,}"
    if len(seeds) > 1:
        ratio += f" +- {np.std(rare / exact, ddof=1) / len(seeds) ** 0.5:.3f} (standard error)"
    return [
        (f"{label}: CPU time", f"{often:.1f} s, {seldom:.1f} s", f"{often / seldom:.2f} times faster"),
        (f"{label}: plannings", f"{each:,.0f}, {few:,.0f}", f"{each / few:.0f} times fewer"),
        (f"{label}: regret", f"{exact.mean():.0f}, {rare.mean():.0f}", ratio),
    ]


def switching_growth(K: int = 6000) -> list[Row]:
    """What rarer plannings cost, where the default was chosen: another task and other seeds than above."""
    rows, exact, env = [], np.zeros(8), "synthetic:S=100,A=5,d=10,H=20,seed=1"
    for agent in (AGENT, *(f"{RARE},growth={growth}" for growth in (0.02, 0.04, 0.06, 0.1))):
        results = run_unit([Job(env, agent, K, seed, 20) for seed in range(100, 108)])
        ends, few = np.array([r.final_regret for r in results]), np.mean([r.switches for r in results])
        exact = ends if agent == AGENT else exact
        error = np.std(ends / exact, ddof=1) / 8**0.5
        regret = f"regret {ends.mean():.1f}, {few:,.0f} plannings"
        rows.append((f"`{agent}`", regret, f"{(ends / exact).mean():.3f} +- {error:.3f} (standard error)"))
    return rows


class RandomFeatures:
    """A pool of random unit vectors: what they mean does not matter here."""

    A, d, bound = 18, 512, 1.0
    nbytes = 0

    def __init__(self) -> None:
        pool = np.random.default_rng(0).normal(size=(400, self.A, self.d))
        self.pool = pool / (1.0000001 * np.linalg.norm(pool, axis=-1, keepdims=True))

    def phi(self, state: Any) -> Array:
        return np.asarray(self.pool[int(state[0])])

    def batch(self, states: Any) -> Array:
        return np.asarray(self.pool[states[:, 0].astype(int)])


def large_features() -> list[Row]:
    """d=512, A=18, H=50, K=500, storage "features": learning cost over the bare products over the same rows."""
    K, H = 500, 50
    features = RandomFeatures()
    task = Task(S=None, A=features.A, d=features.d, H=H, reward_range=(0.0, 1.0), features=features)
    rows, learning = [], {}
    for name, more in (
        ("lsvi-ucb", ""),
        ("lsvi-ucb-fixed", ",rho=0.75"),
        ("lsvi-ucb-adaptive", ",m=10,rho=0.75,budget=0.5"),
    ):
        agent: Any = make_learner(f"{name}:storage=features{more}", task, K)
        rng, took, bare, checked = np.random.default_rng(1), 0.0, 0.0, 0
        for k in range(K):
            start = time.perf_counter()
            agent.begin_episode()
            took += time.perf_counter() - start
            state = rng.integers(400, size=1)
            for h in range(H):
                action, following = agent.act(h, state), rng.integers(400, size=1)
                start = time.perf_counter()
                agent.observe(h, state, action, rng.random(), following, False)
                took += time.perf_counter() - start
                state = following
            agent.end_episode()
            if name == "lsvi-ucb" and (k + 1) % 25 == 0:
                bare += _block_products(agent) * 25
                checked += 1
        learning[name] = took
        peak = human_bytes(agent.nbytes)
        if name == "lsvi-ucb":
            limit = K * H * features.A * features.d * 8 + 2 * H * features.d**2 * 8
            rows.append(
                ("d=512: LSVI-UCB, K=500", f"{took:.0f} s", f"{took / bare:.2f} x the bare products (target 2)")
            )
            rows.append(
                ("d=512: its peak bytes", peak, f"{agent.nbytes / limit:.3f} x K H A d 8 + 2 H d^2 8 (target 1.1)")
            )
        else:
            share = f"{took / learning['lsvi-ucb']:.2f} x LSVI-UCB (target 0.5)"
            rows.append((f"d=512: {name}, {peak}", f"{took:.0f} s", share))
    return rows


def _block_products(agent: Any) -> float:
    """Time of rows @ [w v] over every block that the agent holds, as one planning of all steps needs it."""
    two = np.random.default_rng(0).random((512, 2))
    steps = agent._planner.storage.blocks[:-1]
    blocks = [block.next[: block.count].reshape(-1, 512) for step in steps for block in step]
    start = time.perf_counter()
    for rows in blocks:
        rows @ two
    return time.perf_counter() - start


TARGETS = {"exact": 40, "rare switching": 20, "grid of 49 settings": 60}
"""Seconds on one H200."""


def gpu() -> list[Row]:
    """From the record of `benchmarks/gpu.py` on a machine that has one."""
    record = json.loads((ROOT / "benchmarks/records/h200.json").read_text())
    found = {r["scenario"]: r for r in record["scenarios"]}
    rows = []
    for name, r in found.items():
        runs = f"{r['agents']} x {r['seeds']} runs" if r["agents"] > 1 else f"{r['seeds']} seeds"
        each = f"{r['microseconds_per_step_and_seed']:.3f} us per step, episode and run"
        share = f"; {r['share_of_floor']:.0%} of the floor" if r["share_of_floor"] > 0.1 else ""
        rare = r["plannings_per_run"] < r["episodes"]
        share = f"; {r['plannings_per_run']:.0f} plannings of each run" if rare else share
        target = f" (target {TARGETS[name]} s)" if name in TARGETS else ""
        regret = "" if r["agents"] > 1 else f"; regret {r['mean_regret']:.1f} +- {r['standard_error']:.1f}"
        seconds = f"{r['seconds']:.1f} s{target}{regret}"
        rows.append((f"{name}: {runs} x K={r['episodes']:,}", seconds, each + share))
    floor = f"{found['exact']['floor_seconds']:.1f} s"
    return [*rows, ("the floor of exact planning", floor, f"{record['copy_bandwidth_GBs']:.0f} GB/s")]


PARTS = {
    f.__name__: f
    for f in (
        *(planning, against_reference, exponents, batches, batches_auto, large_features, gpu),
        *(switching, switching_together, switching_growth, control, unit_planning),
    )
}


def main() -> None:
    """All parts, or those named; where docs have `bench_NAME`, it is written there."""
    for name in sys.argv[1:] or PARTS:
        start = time.perf_counter()
        table = markdown(("what", "measured", "ratio"), PARTS[name]())
        into_pages((ROOT / "docs").glob("*.md"), f"bench_{name}", table)
        print(f"{table}\n({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)


if __name__ == "__main__":
    main()
