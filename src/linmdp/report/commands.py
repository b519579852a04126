"""How runs were made: their settings, and commands that make them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from linmdp.io.units import human_bytes
from linmdp.results.run_folder import Ran


def environments(results: Sequence[Ran]) -> list[tuple[str, ...]]:
    """Every environment with its K, its seeds, where regret was evaluated, and the bytes of its features."""
    by_env: dict[str, list[Ran]] = {}
    for r in results:
        by_env.setdefault(r.env, []).append(r)
    rows = list[tuple[str, ...]]()
    for env, runs in by_env.items():
        every = sorted({r.eval_every for r in runs})
        evaluated = "in every episode" if every == [1] else f"in one of every {' or '.join(map(str, every))} episodes"
        rows.append(
            (
                env,
                ", ".join(f"{K:,}" for K in sorted({r.episodes for r in runs})),
                ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in _spans(r.seed for r in runs)),
                evaluated if any(r.final_regret is not None for r in runs) else "V* is unknown",
                human_bytes(max(r.feature_bytes for r in runs)),
            )
        )
    return rows


def parameters(results: Sequence[Ran]) -> dict[str, dict[str, list[str]]]:
    """The values of each parameter of each agent."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for agent, params in ((agent, params) for (agent, params), _ in groupby((r.agent, r.params) for r in results)):
        values = found.setdefault(agent, {})
        for key, value in params.items():
            text = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            values.setdefault(str(key), {})[text] = None
    return {agent: {key: list(texts) for key, texts in values.items()} for agent, values in found.items()}


def equivalent(results: Sequence[Ran]) -> list[str]:
    """A command for each environment and K; several where seeds or `eval_every` differ."""
    groups: dict[tuple[str, int, int, int, int], list[str]] = {}
    seeds: dict[tuple[str, int, int, str], list[int]] = {}
    for r in results:
        seeds.setdefault((r.env, r.episodes, r.eval_every, r.agent), []).append(r.seed)
    for (env, K, every, agent), run in seeds.items():
        for first, last in _spans(run):
            groups.setdefault((env, K, every, first, last), []).append(agent)
    commands = []
    for (env, K, every, first, last), agents in groups.items():
        verb = "compare" if len(agents) > 1 else "run"
        command = ["linmdp", verb, env, *agents, "--episodes", str(K), "--seeds", str(last - first + 1)]
        command += ["--seed", str(first)] * (first > 0) + ["--eval-every", str(every)] * (every > 1)
        commands.append(shlex.join(command))
    return commands


def _spans(seeds: Iterable[int]) -> list[tuple[int, int]]:
    """[0, 1, 2, 5] as [(0, 2), (5, 5)]."""
    ordered = np.unique(list(seeds))
    spans = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    return [(int(span[0]), int(span[-1])) for span in spans]
