"""An iteration of training as one recorded CUDA graph.

The networks are small: launched one by one, the hundred kernels of an iteration take ten times as long to start as to
run. Recorded once and replayed, they start together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP = 3
"""Iterations outside the graph before it is recorded: libraries allocate their workspaces in the first ones."""


class RecordedUpdate:
    """`update(rows, balance)` as a graph; the optimizer must be capturable and read its rate from a tensor.

    The graph reads the batch, the learning rate and the weight of the balance from fixed places; a call fills those
    and replays.
    """

    def __init__(self, update: Callable[[Any, Any], None], nets: torch.nn.Module, optimizer: Any, batch: int) -> None:
        device = next(nets.parameters()).device
        self._rows = torch.zeros(batch, dtype=torch.int64, device=device)
        self._balance = torch.zeros((), device=device)
        self._rates = [group["lr"] for group in optimizer.param_groups]
        before = _learned(nets, optimizer)
        saved = {name: tensor.detach().clone() for name, tensor in before.items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                update(self._rows, self._balance)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self._graph):
            update(self._rows, self._balance)
        with torch.no_grad():  # warming up has learned something: undo it in place, where the graph reads
            for name, tensor in _learned(nets, optimizer).items():
                tensor.copy_(saved[name]) if name in saved else tensor.zero_()

    def __call__(self, rows: Any, lr: float, balance: float) -> None:
        self._rows.copy_(rows)
        self._balance.fill_(balance)
        for rate in self._rates:
            rate.fill_(lr)
        self._graph.replay()


def _learned(nets: torch.nn.Module, optimizer: Any) -> dict[str, Any]:
    """Every tensor that an iteration changes: of the networks, and of the optimizer once it has begun."""
    found: dict[str, Any] = dict(nets.state_dict(keep_vars=True))
    for i, state in enumerate(optimizer.state.values()):
        found |= {f"optimizer.{i}.{name}": value for name, value in state.items() if torch.is_tensor(value)}
    return found
