"""Agents: LSVI in its variants, tabular baselines, and the policies to compare them with."""

from linmdp.agents.algorithms import LSVIUCB, LSVIUCBFold
from linmdp.agents.base import Agent
from linmdp.agents.baselines import ConstantAgent, OptimalAgent, RandomAgent
from linmdp.agents.exploration.perturbation import LSVIPHE
from linmdp.agents.qlearning import QLearning, QLearningGreedy
from linmdp.agents.schedules.adaptive import LSVIUCBAdaptive
from linmdp.agents.schedules.fixed import LSVIUCBFixed
from linmdp.agents.schedules.rare_switch import LSVIUCBRareSwitch

__all__ = [
    "LSVIPHE",
    "LSVIUCB",
    "Agent",
    "ConstantAgent",
    "LSVIUCBAdaptive",
    "LSVIUCBFixed",
    "LSVIUCBFold",
    "LSVIUCBRareSwitch",
    "OptimalAgent",
    "QLearning",
    "QLearningGreedy",
    "RandomAgent",
]
