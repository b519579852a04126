"""The paper's figures and bounds as data: which runs they need, what they show, what the paper says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linmdp.experiments import study
from linmdp.runner.batch import Job

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
    """

    K: tuple[int, ...]
    seeds: int
    cost_seeds: int
    storage: str
    eval_every: int
    rhos: tuple[float, ...]
    adaptive: tuple[tuple[int, float, float], ...]  # m, and the exponents of Budget and of the phase
    tuning_K: int
    tuning_seeds: int


BOUNDS_K = (625, 1250, 2500, 5000)
BOUNDS_SEEDS = 3


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
ITEMS = (*FIGURES, "bounds", *TABLES, "tasks")


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


def tuning_jobs(scale: Scale) -> list[Job]:
    """The small sweep that chooses one beta for all: every beta with each of the three algorithms."""
    learners = [with_setting(a, "learning", beta) for beta in BETAS for a in agents("algorithms", scale)]
    return _jobs(learners, [scale.tuning_K], scale.tuning_seeds, scale)


def jobs_of(item: str, scale: Scale, setting: str, beta: float) -> list[Job]:
    """What a figure or the bounds need in one setting."""
    if item == "bounds":
        return _bounds_jobs(scale, setting, beta)
    figure = FIGURES[item]
    storage = scale.storage if figure.metric == "regret" else "features"
    seeds = scale.seeds if storage == scale.storage else scale.cost_seeds
    learners = [with_setting(a, setting, beta, storage) for a in agents(figure.family, scale)]
    if figure.metric != "regret" and figure.family == "algorithms":  # what storage does to space and time
        learners.append(with_setting("lsvi-ucb", setting, beta, "counts"))
    lines = BASELINES if figure.metric == "regret" else ()  # drawn for the largest K only
    return _jobs(learners, scale.K, seeds, scale) + _jobs(lines, scale.K[-1:], scale.seeds, scale)


def _bounds_jobs(scale: Scale, setting: str, beta: float) -> list[Job]:
    """What the exponents need: time and space as the paper stores its samples, and ours beside them.

    Neither depends on beta, so in the published setting only regret is measured, the fast way.
    """
    learners = [with_setting(b.agent, setting, beta) for b in BOUNDS]
    if setting == "learning":
        learners = [learners[0], *(with_setting(b.agent, setting, beta, "features") for b in BOUNDS)]
    return _jobs(learners, BOUNDS_K, BOUNDS_SEEDS, scale)


def _jobs(agents: Sequence[str], sizes: Sequence[int], seeds: int, scale: Scale) -> list[Job]:
    return [Job(ENV, agent, K, seed, scale.eval_every) for agent in agents for K in sizes for seed in range(seeds)]
