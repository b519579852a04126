"""The public names of linmdp: the one list, for `__all__`, for loading on first use, and for type checkers."""

from linmdp import testing as testing
from linmdp.agents import LMCLSVI as LMCLSVI
from linmdp.agents import LSVIPHE as LSVIPHE
from linmdp.agents import LSVIUCB as LSVIUCB
from linmdp.agents import PSRL as PSRL
from linmdp.agents import RLSVI as RLSVI
from linmdp.agents import UCBVI as UCBVI
from linmdp.agents import UCRL2 as UCRL2
from linmdp.agents import AdaLSVIUCBRestart as AdaLSVIUCBRestart
from linmdp.agents import Agent as Agent
from linmdp.agents import ConstantAgent as ConstantAgent
from linmdp.agents import LSVIUCBAdaptive as LSVIUCBAdaptive
from linmdp.agents import LSVIUCBBatch as LSVIUCBBatch
from linmdp.agents import LSVIUCBFixed as LSVIUCBFixed
from linmdp.agents import LSVIUCBFold as LSVIUCBFold
from linmdp.agents import LSVIUCBPlusPlus as LSVIUCBPlusPlus
from linmdp.agents import LSVIUCBRareSwitch as LSVIUCBRareSwitch
from linmdp.agents import LSVIUCBRestart as LSVIUCBRestart
from linmdp.agents import LSVIUCBSelect as LSVIUCBSelect
from linmdp.agents import OptimalAgent as OptimalAgent
from linmdp.agents import OptRLSVI as OptRLSVI
from linmdp.agents import OptWLSVI as OptWLSVI
from linmdp.agents import QLearning as QLearning
from linmdp.agents import QLearningGreedy as QLearningGreedy
from linmdp.agents import RandomAgent as RandomAgent
from linmdp.api import compare as compare
from linmdp.api import sweep as sweep
from linmdp.envs.adapter import GymTask as GymTask
from linmdp.envs.base import LinearModel as LinearModel
from linmdp.envs.linear import LinearMDPEnv as LinearMDPEnv
from linmdp.envs.mapping import register_features as register_features
from linmdp.envs.planning import optimum as optimum
from linmdp.envs.planning import policy_value as policy_value
from linmdp.errors import InvalidData as InvalidData
from linmdp.errors import InvalidParameter as InvalidParameter
from linmdp.errors import LinMDPError as LinMDPError
from linmdp.errors import LinMDPWarning as LinMDPWarning
from linmdp.errors import UnknownName as UnknownName
from linmdp.features import FeatureMap as FeatureMap
from linmdp.features import TableFeatures as TableFeatures
from linmdp.features import one_hot as one_hot
from linmdp.report.comparison import Comparison as Comparison
from linmdp.runner.loading import load_agent as load_agent
from linmdp.runner.loading import load_policy as load_policy
from linmdp.runner.loop import run as run
from linmdp.runner.registry import make_agent as make_agent
from linmdp.runner.registry import make_env as make_env
from linmdp.runner.registry import register_agent as register_agent
from linmdp.runner.registry import register_env as register_env
from linmdp.types import EpisodeRecord as EpisodeRecord
from linmdp.types import RunResult as RunResult
from linmdp.types import Task as Task
from linmdp.types import Transition as Transition

__all__: list[str]
__version__: str
