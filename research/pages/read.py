"""What commands print, and the small tables of the docs: a few minutes on two cores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import linmdp
from linmdp.agents.widths import confidence_width
from linmdp.envs.planning import policy_value, uniform_policy
from linmdp.io.units import human_bytes
from linmdp.report.tables import HEADER, comparison_rows, markdown
from linmdp.results.summary import by_agent
from linmdp.runner.batch import jobs_for, run_jobs
from linmdp.types import RunResult
from research.study import Study, columns, outcome

SYNTHETIC = "synthetic:S=500,A=15,d=30,H=50"
FAMILIES = ("synthetic", "hypercube", "lock", "riverswim", "sensor", "inventory")


def results(env: str, agents: Sequence[str], *, episodes: int, seeds: int, eval_every: int = 10) -> list[RunResult]:
    """All agents with all seeds, on all cores."""
    return list(run_jobs(jobs_for(env, agents, episodes=episodes, seeds=seeds, eval_every=eval_every)))


def cli(*arguments: str) -> str:
    """A command and what it prints, as a block of a page."""
    program = Path(sys.executable).parent / "linmdp"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return f"```console\n$ linmdp {' '.join(arguments)}\n{done.stderr}{done.stdout}```\n"


def brief(found: list[RunResult]) -> str:
    """What `linmdp compare` shows, with its main columns."""
    names = ("agent", "regret [95% interval]", "of random", "agent memory", "resets")
    return columns(markdown(HEADER, comparison_rows(by_agent(found))), names)


def sweep_table(found: list[RunResult], label: Callable[[str], str], head: str) -> str:
    """One row per agent of a sweep, with the symptoms of a policy that cannot tell actions apart."""
    summaries = by_agent(found)
    random = next(outcome(s) for s in summaries if s.agent == "random")
    rows = []
    for s in summaries:
        lost, tied = outcome(s), np.mean([r.tied for r in found if r.agent == s.agent])
        symptoms = (f"{s.saturated:.0%}", f"{tied:.0%}") if s.agent.startswith("lsvi") else ("-", "-")
        rows.append((label(s.agent), f"{lost:.1f}", f"{lost / s.episodes:.3f}", f"{lost / random:.2f}", *symptoms))
    return markdown((head, "regret", "per episode", "of random", "at cap", "tied"), rows)


def beta(_: Study) -> str:
    """Regret against beta on the synthetic MDP."""
    K, env = 1000, linmdp.make_env(SYNTHETIC)
    forms = ("theory", 5, "published", 0.2, 0.1, 0.05, 0.02, 0.01)
    values = {
        f"lsvi-ucb:beta={form}": confidence_width("lsvi-ucb", form, d=env.task.d, H=env.task.H, K=K) for form in forms
    }
    found = results(SYNTHETIC, [*values, "random", "optimal"], episodes=K, seeds=2)
    names = {agent: agent.partition("=")[2] for agent in values}

    def label(agent: str) -> str:
        if agent not in values:
            return agent
        return f"{names[agent]} ({values[agent]:.4g})" if names[agent].isalpha() else names[agent]

    return sweep_table(found, label, "beta")


def lam(_: Study) -> str:
    """Regret against lambda on the synthetic MDP."""
    agents = [f"lsvi-ucb:beta=0.05,lam={lam}" for lam in (0.0001, 0.001, 0.01, 0.1, 1)]
    found = results(SYNTHETIC, [*agents, "random"], episodes=1000, seeds=2)
    return sweep_table(found, lambda agent: agent.partition("lam=")[2] or agent, "lambda")


def storage(study: Study) -> str:
    """Bytes by agent and storage: measured over 300 episodes, and what `bytes_after` says of more."""
    K, more, env = 300, 12_000, linmdp.make_env(SYNTHETIC)
    specs = [
        f"{name}:storage={storage}{dtype}"
        for name in ("lsvi-ucb", "lsvi-ucb-fixed", "lsvi-ucb-adaptive")
        for storage, dtype in (("features", ""), ("states", ""), ("counts", ""), ("counts", ",dtype=float32"))
    ]
    rows = []
    for r in results(SYNTHETIC, specs, episodes=K, seeds=1, eval_every=K):
        name, _, parameters = r.agent.partition(":")
        now = linmdp.make_agent(r.agent, env, K).bytes_after(K)
        later = linmdp.make_agent(r.agent, env, more).bytes_after(more)
        kept = parameters.removeprefix("storage=").replace(",dtype=", ", ")
        rows.append((name, kept, f"{r.peak_bytes:,}", f"{now:,}", human_bytes(later)))
    header = ("agent", "storage", f"agent_bytes, measured, K={K}", f"forecast, K={K}", f"forecast, K={more:,}")
    note = f"`feature_bytes` is {env.task.features.nbytes:,} ({human_bytes(env.task.features.nbytes)}) in every row."
    return f"{markdown(header, rows)}\n\n{note}"


def window(_: Study) -> str:
    """Bytes of the LEARN condition: m + 1 matrices per step, or one matrix and m vectors."""
    rows = []
    for d, H, m in ((30, 50, 10), (512, 50, 10), (512, 50, 50)):
        matrices, vectors, one = (m + 1) * d * d * H * 8, m * d * H * 8, d * d * H * 8
        cells = (f"{d}, {H}, {m}", *map(human_bytes, (matrices, vectors, one, vectors + one)))
        rows.append(cells)
    header = (
        "d, H, m",
        "m + 1 matrices per step (the paper's)",
        "window of m vectors",
        "the current inverse",
        "window and inverse",
    )
    return markdown(header, rows)


def comparison(_: Study) -> str:
    """The three algorithms at one beta, between the random and the optimal policy."""
    agents = ("lsvi-ucb:beta=0.05", "lsvi-ucb-fixed:beta=0.05", "lsvi-ucb-adaptive:beta=0.05", "random", "optimal")
    return brief(results(SYNTHETIC, agents, episodes=1500, seeds=3))


def lock(_: Study) -> str:
    """Greedy against optimistic on the combination lock."""
    agents = (
        "lsvi-ucb:beta=0,lam=1",
        "lsvi-ucb:beta=1,lam=1",
        "lsvi-ucb-fixed:beta=1,lam=1",
        "lsvi-ucb-adaptive:beta=1,lam=1",
        "lsvi-ucb-adaptive:beta=1,lam=1,tau_rel=0.001",
        "lsvi-ucb-adaptive:beta=1,lam=1,tau_rel=0.001,proxy=phase",
        "lsvi-ucb-adaptive:beta=1,lam=1,tau_rel=0",
        "random",
        "optimal",
    )
    return brief(results("lock:H=10,A=5", agents, episodes=4000, seeds=3, eval_every=1))


def families(_: Study) -> str:
    """The built-in families with their defaults."""
    rows = []
    for name in FAMILIES:
        env = linmdp.make_env(name)
        assert isinstance(env, linmdp.LinearMDPEnv)
        best, model = env.optimum.V[0], env.model
        lost = best - policy_value(model, uniform_policy(model))[0]
        rows.append((name, *map(str, (model.S, model.A, model.d, model.H)), f"{best[0]:.4f}", f"{lost[0]:.4f}"))
    return markdown(("family", "S", "A", "d", "H", "V*(0)", "a random policy loses"), rows)


def verdict(_: Study) -> str:
    """How a run ends."""
    return cli("run", "gym:FrozenLake-v1", "lsvi-ucb", "--episodes", "500")


def errors(_: Study) -> str:
    """Bad input is one line."""
    return cli("run", "synthetic:S=0", "random")


def record(_: Study) -> str:
    """One object of `run --json`, with a short regret."""
    job = jobs_for("lock", ["lsvi-ucb:beta=1,lam=1"], episodes=4, seeds=1)
    found = next(run_jobs(job)).to_json()
    found["regret"] = [round(x, 2) for x in found["regret"]]
    return f"```json\n{json.dumps(found, indent=2)}\n```"


PAGES = (families, verdict, errors, record, window, storage, lock, lam, beta, comparison)
PARTS: dict[str, Callable[[Study], str | None]] = {page.__name__: page for page in PAGES} | {
    "check": lambda _: cli("check", "synthetic", "--agent", "lsvi-ucb:beta=theory", "--episodes", "1000"),
}
