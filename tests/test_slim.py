"""Merged transitions planned in parts: the same values in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmdp
from linmdp.agents.storage import choice
from linmdp.agents.storage.slim import Slim


@pytest.mark.parametrize(
    "own", [{}, {"beta": 0.1, "lam": 0.1, "stationary": True, "discount": 0.95}, {"lam": 0.1}, {"stationary": False}]
)
def test_planned_in_parts_values_are_the_same(own: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=30,dim=12")
    agents = [linmdp.LSVIUCB(env.task, storage="merged", M=150, ties="first", **own)]
    monkeypatch.setattr(choice, "Merged", Slim)
    monkeypatch.setattr(choice, "Imagined", Slim)
    agents.append(linmdp.LSVIUCB(env.task, storage="merged", M=150, ties="first", **own))
    assert [type(agent._planner.storage) is Slim for agent in agents] == [False, True]
    rng = np.random.default_rng(0)
    for agent in agents:
        agent.rng = np.random.default_rng(1)
    for k in range(12):
        state, _ = env.reset(seed=k)
        for agent in agents:
            agent.begin_episode()
        for h in range(30):
            one, two = (agent.q_values(h, state) for agent in agents)
            np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
            action = int(rng.integers(2))
            following, reward, over, cut, _ = env.step(action)
            for agent in agents:
                agent.observe(h, state, action, reward, following, over)
            if over or cut:
                break
            state = following
        for agent in agents:
            agent.end_episode()


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")  # ten episodes are few
def test_a_mebibyte_is_enough_for_cartpole_and_a_quarter_with_few_features() -> None:
    for spec, limit in (("gym:CartPole-v1,H=50", 1 << 20), ("gym:CartPole-v1,H=50,dim=32", 256 << 10)):
        env = linmdp.make_env(spec)
        agent: Any = linmdp.make_agent(f"lsvi-ucb-fold:max_bytes={limit}", env, episodes=10)
        assert agent.chosen["planning"] == "in parts"
        assert agent.chosen["M"] > 200
        assert "would take" in agent.chosen["reason"]
        result = linmdp.run(env, agent, episodes=10, seed=0)
        assert result.peak_bytes <= agent.chosen["bytes"] <= limit


def test_what_is_said_to_fit_does() -> None:
    env = linmdp.make_env("gym:CartPole-v1,H=50")
    with pytest.raises(linmdp.InvalidParameter, match=r"must be at least .* less with fewer features") as refusal:
        linmdp.make_agent("lsvi-ucb-fold:max_bytes=1000", env)
    least = str(refusal.value).split("at least ")[1].split()[0]
    agent: Any = linmdp.make_agent(f"lsvi-ucb-fold:max_bytes={least}", env)
    assert agent.chosen["bytes"] == int(least)
