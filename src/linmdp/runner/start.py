"""Before runs start: what was chosen for them, and what they will take of memory on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linmdp.agents.base import Agent
from linmdp.envs.guard import as_it_is
from linmdp.io.memory import available_memory
from linmdp.io.units import human_bytes
from linmdp.results.summary import chosen_words
from linmdp.runner.batch import Job, default_processes, planned, units
from linmdp.runner.registry import make_env
from linmdp.runner.resources import check_room, footprint, made_for


class Start(NamedTuple):
    """The jobs of a command, with the environment and an agent of each spec that were made to check them."""

    jobs: list[Job]
    env: Any
    agents: dict[str, Agent]

    def chosen(self) -> str:
        """What was chosen for parameters that were left open, in one line; empty where nothing was."""
        said: list[tuple[str, Any, tuple[str, ...]]] = []
        with as_it_is(self.env):
            said.append((self.jobs[0].env, getattr(self.env.unwrapped, "chosen", {}), ()))
        said += [(spec, getattr(agent, "chosen", {}), _learned(agent)) for spec, agent in self.agents.items()]
        return "; ".join(f"{spec}: chosen {_words(chosen, later)}" for spec, chosen, later in said if chosen)

    def check_memory(self, jobs: Sequence[Job], processes: int | None) -> None:
        """Raise if those of the jobs that are to be run would not fit into memory side by side."""
        work = units(jobs)
        of_made = lambda job: footprint(self.agents[job.agent], self.env, job.episodes)  # noqa: E731
        check_room(work, processes or default_processes(len(work)), sizes=of_made)


def _learned(agent: Agent) -> tuple[str, ...]:
    """What follows from the data, so that there is nothing to say of it before there are any."""
    return ("lam", "beta") if getattr(agent, "auto", True) else ("beta",)


def _words(chosen: dict[str, Any], later: Sequence[str]) -> str:
    words = [chosen_words([{name: value for name, value in chosen.items() if name not in later}])]
    if learned := [name for name in later if name in chosen]:
        words.append(f"{' and '.join(learned)} from the data")
    if "bytes" in chosen:
        because = f" ({chosen['reason']})" if "reason" in chosen else ""
        words.append(f"at most {human_bytes(chosen['bytes'])}{because}")
    return ", ".join(filter(None, words))


def prepared(env: str, agents: Sequence[str], *, episodes: int, seeds: int, **options: Any) -> Start:
    """Every agent with every seed, checked by making each once, if memory is enough for that."""
    jobs = planned(env, agents, episodes=episodes, seeds=seeds, **options)
    made = make_env(env)
    return Start(jobs, made, made_for(jobs, made, available_memory()))
