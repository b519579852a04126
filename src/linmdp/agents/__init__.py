"""Agents: the three algorithms of the paper, and the policies to read them against."""

from linmdp.agents.base import Agent
from linmdp.agents.baselines import ConstantAgent, OptimalAgent, RandomAgent
from linmdp.agents.fold import LSVIUCBFold
from linmdp.agents.lsvi import LSVIUCB, LSVIUCBAdaptive, LSVIUCBFixed
from linmdp.agents.qlearning import QLearning, QLearningGreedy

__all__ = [
    "LSVIUCB",
    "Agent",
    "ConstantAgent",
    "LSVIUCBAdaptive",
    "LSVIUCBFixed",
    "LSVIUCBFold",
    "OptimalAgent",
    "QLearning",
    "QLearningGreedy",
    "RandomAgent",
]
