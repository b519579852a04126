"""Agents: LSVI in its variants, tabular baselines, and the policies to compare them with."""

from linmdp.agents.algorithms import LSVIUCB
from linmdp.agents.auto import Auto
from linmdp.agents.base import Agent
from linmdp.agents.baselines import ConstantAgent, OptimalAgent, RandomAgent
from linmdp.agents.exploration.forgetting import OptWLSVI
from linmdp.agents.exploration.langevin import LMCLSVI
from linmdp.agents.exploration.perturbation import LSVIPHE
from linmdp.agents.exploration.randomised import RLSVI, OptRLSVI
from linmdp.agents.insured import Insured
from linmdp.agents.lsvi_gp import LSVIGP
from linmdp.agents.lsvi_scouts import LSVIUCBScouts
from linmdp.agents.neighbours.best_constant import BestConstant
from linmdp.agents.neighbours.fqi_trees import FQITrees
from linmdp.agents.neighbours.kbsf import KBSF
from linmdp.agents.neighbours.kernel_ucbvi import KernelUCBVI
from linmdp.agents.neighbours.lspi import LSPI
from linmdp.agents.neighbours.stream_q import StreamQ
from linmdp.agents.qlearning import QLearning, QLearningGreedy
from linmdp.agents.schedules.ada_restart import AdaLSVIUCBRestart
from linmdp.agents.schedules.adaptive import LSVIUCBAdaptive
from linmdp.agents.schedules.batch import LSVIUCBBatch
from linmdp.agents.schedules.detect import LSVIUCBDetect
from linmdp.agents.schedules.fixed import LSVIUCBFixed
from linmdp.agents.schedules.rare_switch import LSVIUCBRareSwitch
from linmdp.agents.schedules.restart import LSVIUCBRestart
from linmdp.agents.schedules.select import LSVIUCBSelect
from linmdp.agents.sketch import LSVIUCBSketch
from linmdp.agents.tabular.plusplus import LSVIUCBPlusPlus
from linmdp.agents.tabular.psrl import PSRL
from linmdp.agents.tabular.ucbvi import UCBVI
from linmdp.agents.tabular.ucrl2 import UCRL2
from linmdp.agents.tabular.vtr import UCRLVTR

__all__ = [
    "KBSF",
    "LMCLSVI",
    "LSPI",
    "LSVIGP",
    "LSVIPHE",
    "LSVIUCB",
    "PSRL",
    "RLSVI",
    "UCBVI",
    "UCRL2",
    "UCRLVTR",
    "AdaLSVIUCBRestart",
    "Agent",
    "Auto",
    "BestConstant",
    "ConstantAgent",
    "FQITrees",
    "Insured",
    "KernelUCBVI",
    "LSVIUCBAdaptive",
    "LSVIUCBBatch",
    "LSVIUCBDetect",
    "LSVIUCBFixed",
    "LSVIUCBPlusPlus",
    "LSVIUCBRareSwitch",
    "LSVIUCBRestart",
    "LSVIUCBScouts",
    "LSVIUCBSelect",
    "LSVIUCBSketch",
    "OptRLSVI",
    "OptWLSVI",
    "OptimalAgent",
    "QLearning",
    "QLearningGreedy",
    "RandomAgent",
    "StreamQ",
]
