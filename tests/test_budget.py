"""max_bytes is kept: by every agent, planning included, as tracemalloc sees it."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import linmdp
from linmdp.agents.backend import imagined
from linmdp.features import HashedFeatures
from linmdp.io.units import parse_bytes
from toys import Toy

EPISODES = 40
TABLES = ("synthetic:S=60,A=4,d=12,H=8", "riverswim:S=8,H=12", "lock:H=6,A=4")
AGENTS = (
    "lsvi-ucb",
    "lsvi-ucb:storage=features",
    "lsvi-ucb:stationary=true",
    "lsvi-ucb-fixed:rho=0.9,storage=features",
    "lsvi-ucb-fixed",
    "lsvi-ucb-adaptive:rho=0.9,budget=0.9,storage=states",
    "lsvi-ucb-adaptive:stationary=true,m=3",
    "lsvi-ucb:beta=0.1",
    "lsvi-ucb:stationary=true,discount=0.9",
    "lsvi-ucb-fixed:storage=centres",
    "lsvi-ucb:storage=centres",
    "lsvi-ucb:storage=centres,beta=0.1,M=12,stationary=true",
    "lsvi-ucb-rare-switch",
    "lsvi-ucb-rare-switch:stationary=true,storage=features",
    "lsvi-ucb-select",
    "lsvi-ucb-select:storage=states,stationary=true",
    "lsvi-ucb-sketch:m=4",
    "lsvi-ucb-sketch:m=6,storage=states,beta=0.1",
    "lsvi-phe",
    "lsvi-phe:storage=features,draws=3",
    "q-learning",
    "q-learning-greedy:stationary=true",
    "random",
    "constant:action=1",
    "optimal",
)
SAMPLED = (
    *("lsvi-ucb", "lsvi-ucb-fixed", "lsvi-ucb:stationary=true"),
    *("lsvi-ucb:storage=centres", "lsvi-ucb:storage=centres,beta=0.1,stationary=true"),
    *("lsvi-ucb-select", "lsvi-ucb-select:stationary=true", "lsvi-ucb-sketch:m=5"),
)
OBJECTS = 64 << 10
"""Python's own objects: the loop, the environment's steps, small arrays on their way."""


class Waves:
    """Features of continuous states."""

    A, d, bound, nbytes = 3, 10, 1.0, 0

    def batch(self, states: Any) -> Any:
        return np.cos(np.asarray(states)[:, :1, None] * np.arange(1, 11) + np.arange(3)[None, :, None]) / np.sqrt(10)

    def phi(self, state: Any) -> Any:
        return self.batch(np.asarray(state)[None])[0]


def play(agent: Any, states: Any, episodes: int) -> None:
    """Random transitions: what an agent holds does not depend on where they come from."""
    rng = np.random.default_rng(0)
    for _ in range(episodes):
        agent.begin_episode()
        state = states(rng)
        for h in range(agent.task.H):
            action, following = agent.act(h, state), states(rng)
            agent.observe(h, state, action, float(rng.random()), following, False)
            state = following
        agent.end_episode()


def peak_of(make: Any, states: Any) -> tuple[int, Any]:
    play(make(), states, 3)  # whatever is loaded or cached once
    gc.collect()
    tracemalloc.start()
    try:
        agent = make()
        play(agent, states, EPISODES)
        return tracemalloc.get_traced_memory()[1], agent
    finally:
        tracemalloc.stop()


def smallest(make: Any) -> int:
    """What the refusal says would fit."""
    with pytest.raises(linmdp.InvalidParameter, match=r"'max_bytes' parameter of .* must be at least") as refusal:
        make(1)
    return int(re.findall(r"at least (\d+)", str(refusal.value))[0])


class Plain:
    """A task whose states are not finite, which nobody plays."""

    model = None

    def __init__(self, features: Any) -> None:
        self.task = linmdp.Task(S=None, A=3, d=features.d, H=6, reward_range=(0.0, 1.0), features=features)

    @property
    def unwrapped(self) -> Any:
        return self


def measured(spec: str, env_spec: str) -> list[tuple[int, int, int, int]]:
    """(limit, peak, bytes of the arrays, bytes said) at the smallest limit and above."""
    env: Any = Plain(UNKNOWN[env_spec]) if env_spec in UNKNOWN else linmdp.make_env(env_spec)
    S = 1 << 40 if env_spec == "names" else env.task.S

    def states(rng: Any) -> Any:
        return rng.random(1) if S is None else int(rng.integers(S))

    def make(limit: Any) -> Any:
        return linmdp.make_agent(f"{spec}{',' if ':' in spec else ':'}max_bytes={limit}", env, episodes=EPISODES)

    found = []
    least = smallest(make)
    for limit in (least, 2 * least, 100 << 20):
        peak, agent = peak_of(lambda limit=limit: make(limit), states)
        found.append((limit, peak, int(agent.nbytes), int(agent.chosen["bytes"])))
    return found


UNKNOWN = {"waves": Waves(), "names": HashedFeatures(3)}
CASES = [(spec, env) for env in TABLES for spec in AGENTS] + [(spec, "waves") for spec in SAMPLED]
CASES += [(spec, "names") for spec in ("lsvi-ucb", "lsvi-ucb:beta=0.1", "lsvi-ucb-restart:W=9")]


@pytest.fixture(scope="module")
def peaks() -> dict[str, list[list[int]]]:
    """Every case, in a process of its own: threads that other tests have left behind allocate, too."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=600)
    found: dict[str, list[list[int]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("spec", "env_spec"), CASES)
def test_no_agent_ever_holds_more_than_it_may(spec: str, env_spec: str, peaks: dict[str, list[list[int]]]) -> None:
    for limit, peak, held, said in peaks[f"{spec} {env_spec}"]:
        assert peak <= limit + OBJECTS
        assert held <= said <= limit


@pytest.mark.parametrize("spec", [spec for spec in AGENTS if spec.startswith(("lsvi-ucb", "lsvi-phe"))])
def test_an_agent_that_is_imagined_has_the_bytes_of_a_real_one(spec: str) -> None:
    env = linmdp.make_env(TABLES[0])
    real: Any = linmdp.make_agent(spec, env, EPISODES)
    with imagined():
        thought: Any = linmdp.make_agent(spec, env, EPISODES)
    assert thought.nbytes == real.nbytes
    assert thought.most_bytes(EPISODES) == real.most_bytes(EPISODES) > real.bytes_after(EPISODES)


def test_with_room_to_spare_nothing_is_given_up() -> None:
    env: Any = linmdp.make_env("synthetic:S=60,A=4,d=12,H=8")
    free: Any = linmdp.make_agent("lsvi-ucb:storage=centres", env)
    bounded: Any = linmdp.make_agent("lsvi-ucb:storage=centres,max_bytes=1GiB", env)
    assert bounded.nbytes == free.nbytes
    assert bounded.chosen["M"] == 60


def test_what_was_chosen_is_played() -> None:
    env: Any = linmdp.make_env("synthetic:S=60,A=4,d=12,H=8")
    agent: Any = linmdp.make_agent("lsvi-ucb-fixed:storage=features,max_bytes=300KiB", env, episodes=500)
    assert agent.chosen["length"] == agent.schedule.length < 500**0.75
    assert 500 ** agent.chosen["rho"] == pytest.approx(agent.chosen["length"], rel=0.01)


@pytest.mark.parametrize(
    ("text", "count"), [("2MiB", 2 << 20), ("256 KiB", 256 << 10), ("1.5kb", 1500), (4096, 4096), ("10", 10)]
)
def test_sizes_are_read_as_people_write_them(text: Any, count: int) -> None:
    assert parse_bytes("x", text) == count


@pytest.mark.parametrize("text", ["", "two", "-3", "2 furlongs", "9" * 400 + "KiB", 0, -1, 1.5, True])
def test_other_sizes_are_refused(text: Any) -> None:
    with pytest.raises(linmdp.InvalidParameter, match="'max_bytes' parameter of x must be a whole number of bytes"):
        parse_bytes("x", text)


@pytest.mark.parametrize("agent", ["lsvi-ucb:stationary=true", "lsvi-ucb-fixed:storage=states", "lsvi-ucb"])
def test_large_observations_count(agent: str) -> None:
    wide = Toy(spaces.Box(-1.0, 1.0, (2000,), np.float64))
    env = linmdp.GymTask(wide, H=5, features="auto", dim=16, reward_low=0.0, reward_high=1.0)
    assert env.task.state_bytes == 16_000
    made: Any = linmdp.make_agent(f"{agent}{',' if ':' in agent else ':'}max_bytes=4MiB", env, episodes=40)
    forecast = made.bytes_after(40)
    result = linmdp.run(env, made, episodes=40, seed=0)
    assert result.peak_bytes <= made.chosen["bytes"] <= 4 << 20
    assert result.peak_bytes <= forecast or agent == "lsvi-ucb-fixed:storage=states"


def test_a_state_larger_than_the_choice_was_made_for_is_refused() -> None:
    task = linmdp.Task(S=None, A=3, d=10, H=6, reward_range=(0.0, 1.0), features=Waves())
    agent = linmdp.LSVIUCB(task, stationary=True, max_bytes="1MiB")
    agent.begin_episode()
    with pytest.raises(linmdp.InvalidData, match="a state must take 512 bytes at most"):
        agent.observe(0, np.zeros(100), 0, 0.5, np.zeros(100), False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({f"{spec} {env}": measured(spec, env) for spec, env in CASES}))
