"""The paper's figures and bounds as data: which runs they need, what they show, what the paper says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from linmdp.experiments import study
from linmdp.runner.batch import Job
from linmdp.runner.registry import make_agent, make_env

PAPER = study("paper")
ENV = "synthetic:S=500,A=15,d=30,H=50"
LAMBDA = 0.1
BETAS = (0.01, 0.02, 0.05, 0.1, 0.2)
BASELINES = ("random", "optimal", "constant")
SETTINGS = ("published", "learning")


class Scale(NamedTuple):
    """How much is run: K values, seeds, and the parameters that are tried.

    `cost_seeds` is for space and time, which hardly depend on the seed. Where `storage` is "features" the same runs
    serve regret, space and time; else regret comes from "counts", which plays the same actions and is much faster.
    `stored_to` is the largest K at which LSVI-UCB is run as the paper stores its samples: its time is quadratic in K.
    """

    K: tuple[int, ...]
    seeds: int
    cost_seeds: int
    stored_to: int
    storage: str
    eval_every: int
    rhos: tuple[float, ...]
    adaptive: tuple[tuple[int, float, float], ...]  # m, and the exponents of Budget and of the phase
    tuning_K: int
    tuning_seeds: int


class Figure(NamedTuple):
    """One figure: what it measures of which agents, and the sentence of the paper that goes with it."""

    metric: str  # "regret", "space" or "time"
    family: str  # "algorithms", "fixed" or "adaptive"
    title: str
    claim: str


class Bound(NamedTuple):
    """The exponents of K that the paper proves for one agent (None: it proves none)."""

    agent: str
    source: str
    time: float
    space: float
    regret: float | None = None


SCALES = {name: Scale(**scale) for name, scale in PAPER["scales"].items()}
FIGURES = {name: Figure(**figure) for name, figure in PAPER["figures"].items()}
BOUNDS = tuple(Bound(**bound) for bound in PAPER["bounds"])
TABLES = ("table-reward", "table-space", "table-time")
ITEMS = (*FIGURES, "bounds", *TABLES)


def with_setting(agent: str, setting: str, beta: float, storage: str = "counts") -> str:
    """The agent in the published setting, or with a beta at which it learns."""
    if agent in BASELINES:
        return agent
    width = "beta=published,cap=H,ties=first" if setting == "published" else f"beta={beta:g}"
    return agent + (":" if ":" not in agent else ",") + f"{width},lam={LAMBDA:g},storage={storage}"


def agents(family: str, scale: Scale) -> list[str]:
    """The learners of a figure."""
    if family == "fixed":
        return [f"lsvi-ucb-fixed:rho={rho:g}" for rho in scale.rhos]
    if family == "adaptive":
        return [f"lsvi-ucb-adaptive:m={m},budget={budget:g},rho={rho:g}" for m, budget, rho in scale.adaptive]
    return ["lsvi-ucb", "lsvi-ucb-fixed:rho=0.75", "lsvi-ucb-adaptive:m=10,budget=0.75,rho=0.75"]


def tuning_jobs(scale: Scale, device: str = "cpu") -> list[Job]:
    """The small sweep that chooses one beta for all: every beta with each of the three algorithms."""
    learners = [with_setting(a, "learning", beta) for beta in BETAS for a in agents("algorithms", scale)]
    return _jobs(learners, [scale.tuning_K], scale.tuning_seeds, scale, device)


def learners_of(item: str, scale: Scale) -> list[str]:
    """The agents that a figure or the bounds are about."""
    return [b.agent for b in BOUNDS] if item == "bounds" else agents(FIGURES[item].family, scale)


def regret_jobs(item: str, scale: Scale, setting: str, beta: float, device: str = "cpu") -> list[Job]:
    """The runs whose regret a figure or the bounds show in one setting; learners with counts can go to a GPU."""
    if item != "bounds" and FIGURES[item].metric != "regret":
        return []
    learners = [with_setting(a, setting, beta, scale.storage) for a in learners_of(item, scale)]
    lines = () if item == "bounds" else BASELINES  # drawn for the largest K only
    found = _jobs(learners, scale.K, scale.seeds, scale, device if scale.storage == "counts" else "cpu")
    return found + _jobs(lines, scale.K[-1:], scale.seeds, scale)


def cost_jobs(item: str, scale: Scale, beta: float) -> list[Job]:
    """The runs whose space and time a figure or the bounds show: always on a CPU, and as the paper stores samples.

    In the setting where the agents learn: neither depends on beta. LSVI-UCB with counts stands beside the others.
    """
    if item != "bounds" and FIGURES[item].metric == "regret":
        return []
    found = []
    for agent in learners_of(item, scale):
        sizes = [K for K in scale.K if agent != "lsvi-ucb" or scale.stored_to >= K]
        found += _jobs([with_setting(agent, "learning", beta, "features")], sizes, scale.cost_seeds, scale)
    if "lsvi-ucb" in learners_of(item, scale):
        found += _jobs([with_setting("lsvi-ucb", "learning", beta)], scale.K, scale.cost_seeds, scale)
    return found


def bytes_of(agent: str, K: int) -> int:
    """What an agent holds after K episodes, which is known without a run."""
    return make_agent(agent, make_env(ENV), K).bytes_after(K)


def in_batches(jobs: Iterable[Job]) -> list[Job]:
    """The jobs such that those which a GPU takes together follow each other."""
    return sorted(jobs, key=lambda job: (-job.episodes, "adaptive" in job.agent, "published" in job.agent))


def longest_first(jobs: Iterable[Job]) -> list[Job]:
    """The jobs such that none of the long ones is left over at the end."""
    return sorted(jobs, key=lambda job: -job.episodes)


def _jobs(agents: Sequence[str], sizes: Sequence[int], seeds: int, scale: Scale, device: str = "cpu") -> list[Job]:
    every = scale.eval_every
    return [Job(ENV, agent, K, seed, every, device) for K in sizes for agent in agents for seed in range(seeds)]
