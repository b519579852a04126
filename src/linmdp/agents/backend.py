"""NumPy or torch: the batched engine is written once, over the functions that both have under the same names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from linmdp.errors import InvalidParameter, check_choice

LARGEST_KERNEL, LARGEST_STATE = 128, 1 << 14
"""Features that fit the fast memory of a GPU's processor, with a tile of states, and numbers that describe a state (its
actions times their features); beyond, the product is what costs."""


_IMAGINED: ContextVar[bool] = ContextVar("imagined", default=False)
imagining = _IMAGINED.get
"""Whether what is made now is imagined: then nobody need fill it."""


@contextmanager
def imagined() -> Iterator[None]:
    """What is made here owns no memory: how much it would take is to be known, and nothing else."""
    before = _IMAGINED.set(True)
    try:
        yield
    finally:
        _IMAGINED.reset(before)


def zeros(shape: int | tuple[int, ...], dtype: Any = "float64", fill: float = 0.0) -> np.ndarray:
    """An array of one number; of what is imagined its shape, its type and its `nbytes`, over a single number."""
    if not imagining():
        return np.full(shape, fill, dtype=dtype) if fill else np.zeros(shape, dtype=dtype)
    whole = (shape,) if isinstance(shape, int) else shape
    return np.lib.stride_tricks.as_strided(np.full((), fill, dtype=dtype), whole, (0,) * len(whole))


@dataclass(frozen=True)
class Backend:
    """A library of array functions, "numpy" or "torch", and where its arrays live.

    It is kept by name, so that whatever holds a backend can be copied and sent to another process.
    """

    library: str = "numpy"
    device: str = "cpu"

    @property
    def xp(self) -> Any:
        """The module."""
        if self.library == "numpy":
            return np
        import torch

        return torch

    @property
    def is_numpy(self) -> bool:
        """Whether arrays are NumPy's: then the host may look at them for free."""
        return self.library == "numpy"

    def zeros(self, shape: tuple[int, ...], dtype: str = "float64") -> Any:
        """An array of zeros."""
        if self.is_numpy:
            return zeros(shape, dtype)
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self.device)

    def array(self, values: Any, dtype: str = "float64") -> Any:
        """`values` as an array of this backend; no copy is made where none is needed."""
        if self.is_numpy:
            return np.asarray(values, dtype=dtype)
        if isinstance(values, np.ndarray) and not (values.flags.writeable and values.flags.c_contiguous):
            # torch wants memory it may write to, which a shared read-only table is not; kernels want it in order
            values = np.array(values, order="C")
        return self.xp.as_tensor(values, dtype=getattr(self.xp, dtype), device=self.device)

    def staged(self, shape: tuple[int, ...]) -> Any:
        """Space on the host, not yet filled, from which numbers go to a GPU while that goes on working."""
        return np.empty(shape) if self.is_numpy else self.xp.empty(shape, dtype=self.xp.float64, pin_memory=self.on_gpu)

    def sent(self, staged: Any) -> Any:
        """What is `staged`, on its way to where the arrays live; it must not be changed any more."""
        return staged if self.is_numpy else staged.to(self.device, non_blocking=True)

    @property
    def on_gpu(self) -> bool:
        """Whether arrays live on a GPU."""
        return self.device == "cuda"

    def cast(self, array: Any, dtype: str) -> Any:
        """`array` in another precision; torch, unlike NumPy, does not do it on assignment to an index."""
        return array.astype(dtype, copy=False) if self.is_numpy else array.to(getattr(self.xp, dtype))

    def fused(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` as one or few kernels on a GPU; elsewhere as it is.

        `fullgraph`: what cannot be compiled is an error, where it would silently be slow. Each call compiles a copy:
        torch counts the variants of a function, and refuses more than a few, across all models of a process.
        """
        if self.device != "cuda":
            return function
        owner, plain = getattr(function, "__self__", None), getattr(function, "__func__", function)
        copy = FunctionType(plain.__code__.replace(), plain.__globals__, plain.__name__, None, plain.__closure__)
        own = copy if owner is None else MethodType(copy, owner)
        compiled: Callable[..., Any] = self.xp.compile(own, dynamic=False, fullgraph=True)
        return compiled

    def kernels(self, d: int, A: int) -> ModuleType | None:
        """Planning as kernels, where they fit: they hold all d features of their rows at once.

        Triton's interpreter (TRITON_INTERPRET=1) runs the same kernels on a CPU, slowly, for tests.
        """
        there = self.device == "cuda" or (not self.is_numpy and os.environ.get("TRITON_INTERPRET") == "1")
        if not there or d > LARGEST_KERNEL or A * d > LARGEST_STATE:
            return None
        from linmdp.agents import kernels

        return kernels

    def host(self, array: Any) -> np.ndarray:
        """`array` as NumPy's; what is decided on the host is so already."""
        values: np.ndarray = array.cpu().numpy() if hasattr(array, "cpu") else array
        return values


NUMPY = Backend()


def backend_for(device: str) -> Backend:
    """NumPy for "cpu"; torch for "cuda", if both are there."""
    if check_choice("linmdp", "device", device, ("cpu", "cuda")) == "cpu":
        return NUMPY
    try:
        import torch
    except ModuleNotFoundError:
        raise InvalidParameter(
            "The 'device' parameter of linmdp must be 'cpu' where torch (extra 'linearize') is not there. Got 'cuda'."
        ) from None
    if not torch.cuda.is_available():
        raise InvalidParameter("The 'device' parameter of linmdp must be 'cpu' where there is no GPU. Got 'cuda'.")
    return Backend("torch", "cuda")
