"""Planning, written once: for one agent, or for B runs in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linmdp.agents.backend import NUMPY, Backend
from linmdp.agents.base import StateDict, load_array, prefixed, under
from linmdp.agents.memory import Memory
from linmdp.agents.regression import Optimism, Ridge
from linmdp.types import BoolArray, State

MakeMemory = Callable[[Ridge, Any, Optimism], Memory]


class Core:
    """The regression, the memory and the weights of every step, and the order in which they are renewed.

    Attributes
    ----------
    ridge, memory : see there
    w : (H, *batch, d)
    restarting : (H, *batch) steps whose samples are dropped but whose old Q still acts, until they are planned again
    """

    def __init__(
        self,
        H: int,
        d: int,
        *,
        lam: Any,
        optimism: Optimism,
        make_memory: MakeMemory,
        batch: tuple[int, ...] = (),
        backend: Backend = NUMPY,
        keep_Lambda: bool = True,
    ) -> None:
        self.H, self.backend = H, backend
        self.ridge = Ridge(H, d, lam, batch=batch, backend=backend, keep_Lambda=keep_Lambda)
        self.w = backend.zeros((H, *batch, d))
        self.memory = make_memory(self.ridge, self.w, optimism)
        self.restarting = np.zeros((H, *batch), dtype=np.bool_)

    def drop_samples(self, runs: Any = ...) -> None:
        """Delete the working space (of some runs). The old Q acts on."""
        self.memory.clear(runs)
        self.restarting[:, runs] = True

    def prepare(self, learn: BoolArray, there: Any, *, whole: bool) -> None:
        """What happens before planning and outside any recorded graph: restarts and fresh inverses, both seldom.

        `there` is `learn` as an array of the backend, `whole` says that it holds everywhere.
        """
        mask = self.restarting & learn
        if mask.any():
            self.ridge.restart(mask)
            self.memory.restart(mask)
            self.restarting &= ~mask
        if self.ridge.stale:
            self.ridge.refactor(self._rebuild)
            self.memory.refresh()
        self.ridge.keep(there, whole=whole)

    def plan(self, learn: Any, *, whole: bool) -> None:
        """Lines 4 to 11 of Algorithm 1 for the steps (and runs) in `learn`, (H, *batch); `whole`: all of them."""
        ridge, memory, w = self.ridge, self.memory, self.w
        skip = not whole and self.backend.is_numpy
        v = ridge.absorb(learn, whole=whole)  # line 5
        v *= memory.optimism.beta[..., None]
        for h in reversed(range(self.H)):
            if skip and not learn[h].any():
                continue
            z = memory.target(h)  # lines 7 and 8
            new = ridge.solve(h, z)  # line 9
            w[h] = new if whole else self.backend.xp.where(learn[h][..., None], new, w[h])
            memory.sweep(h, v[h])  # lines 10 and 11; changes nothing where neither w nor Lambda changed

    def change_beta(self, beta: float) -> None:
        """Another beta, for one agent, from the next planning of all steps on."""
        self.memory.rescale(self.memory.optimism.change(beta))

    def greedy(self) -> Any:
        """Weights planned from the samples without a bonus, (H, d), for one agent."""
        w = np.zeros_like(self.w)
        for h in reversed(range(self.H)):
            z = self.memory.greedy_target(h, w[h + 1]) if h < self.H - 1 else 0.0
            w[h] = self.ridge.solve(h, z)
        return w

    def add(self, h: int, phi: Any, reward: Any, next_state: State, terminated: bool = False) -> None:
        """One sample of step h in each run; where nothing is learned phi is zero."""
        phi = self.memory.kept(phi)
        self.ridge.add(h, phi, reward)
        self.memory.add(h, phi, next_state, terminated)

    def drift(self) -> Any:
        """max |Lambda Lambda^-1 - I| over all steps, (*batch)."""
        return self.ridge.drift(self._rebuild)

    def _rebuild(self, h: int) -> Any:
        """Lambda_h from the samples; the pending one, if there is one, is not in it yet."""
        gram = None if self.restarting[h] else self.memory.gram(h)
        if gram is None:
            return None
        phi = self.ridge.pending[h]
        return self.ridge.lam * np.eye(len(phi)) + gram - phi[:, None] * phi

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.ridge.nbytes + self.memory.nbytes + self.w.nbytes + self.restarting.nbytes)

    def state_dict(self) -> StateDict:
        """A copy of everything learned."""
        own = {"w": self.w.copy(), "restarting": self.restarting.copy()}
        return own | prefixed("ridge", self.ridge.state_dict()) | prefixed("memory", self.memory.state_dict())

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Become what `state_dict` saved."""
        load_array(self.w, state, "w")
        load_array(self.restarting, state, "restarting")
        self.ridge.load_state_dict(under("ridge", state))
        self.memory.load_state_dict(under("memory", state))
