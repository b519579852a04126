"""Many runs on one model at once, on a processor or a GPU: their engine, its kernels, and what is noted of them."""

from linmdp.runner.lockstep.engine import Run
from linmdp.runner.lockstep.run import run_lockstep

__all__ = ["Run", "run_lockstep"]
