"""Seeded runs of every agent, in every storage and horizon, give the numbers that version 0.1.0 gave.

`python tests/test_recorded.py` prints them anew, as tests/data/recorded.json holds them.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import linmdp

RECORDED = Path(__file__).parent / "data" / "recorded.json"
ENVS = {
    "synthetic:S=40,A=4,d=8,H=8": 60,
    "riverswim:H=8": 60,
    "sensor:H=12": 30,
    "gym:FrozenLake-v1,H=30": 25,
    "gym:CartPole-v1,H=40,features=fourier,order=2": 15,
}
HORIZONS = ("", ",stationary=true", ",stationary=true,discount=0.9")
SCHEDULES = {
    "lsvi-ucb": "",
    "lsvi-ucb-fixed": ",rho=0.6",
    "lsvi-ucb-adaptive": ",rho=0.7,budget=0.6,m=3",
}


def specs(env: str) -> list[str]:
    """Agents with all their parameters, so that a change of a default changes nothing here."""
    storages = ("features", "states") if "CartPole" in env else ("counts", "features", "states")
    return [
        *(
            f"{agent}:beta={beta},lam=0.1,storage={storage}{horizon}{own}"
            for agent, own in SCHEDULES.items()
            for storage in storages
            for horizon in HORIZONS
            for beta in ("0.1", "auto")
        ),
        "lsvi-ucb:beta=published,lam=1,cap=H,ties=first",
        "lsvi-ucb:beta=theory,lam=1",
        "lsvi-ucb:beta=0.3,lam=0.01,storage=states,dtype=float32",
    ]


def played(env_spec: str, spec: str) -> dict[str, Any]:
    """What is held of one run."""
    env, episodes = linmdp.make_env(env_spec), ENVS[env_spec]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linmdp.LinMDPWarning)
        result = linmdp.run(env, linmdp.make_agent(spec, env, episodes=episodes), episodes=episodes, seed=3)
    return {
        "regret": result.final_regret,
        "reward": result.reward,
        "updates": result.updates,
        "resets": result.resets,
    }


@pytest.mark.parametrize("env", ENVS)
def test_seeded_runs_give_the_recorded_numbers(env: str) -> None:
    recorded = json.loads(RECORDED.read_text())[env]
    assert list(recorded) == specs(env)
    for spec, expected in recorded.items():
        found = {name: value for name, value in played(env, spec).items() if value is not None}
        assert found.keys() == {name for name, value in expected.items() if value is not None}
        for name, value in found.items():
            assert value == pytest.approx(expected[name], rel=1e-10, abs=1e-10), (spec, name)


if __name__ == "__main__":
    json.dump({env: {spec: played(env, spec) for spec in specs(env)} for env in ENVS}, sys.stdout, indent=0)
