"""Contracts that third parties can test their own classes against: each check raises AssertionError in one sentence.

from linmdp.testing import check_agent
check_agent(MyAgent)
"""

from linmdp.testing.agents import check_agent
from linmdp.testing.envs import check_env, check_features

__all__ = ["check_agent", "check_env", "check_features"]
