"""phi and mu as torch networks: the same functions as `features.learned` evaluates in NumPy."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from linmdp.features.learned import FLOOR, TINY

MOMENTUM = 0.01
"""How fast the running mean of each measure follows: over about 100 batches."""


class Networks(nn.Module):
    """phi(s, a) and mu(s'): two ReLU networks of two hidden layers each, and theta.

    The action enters phi as one-hot in the second hidden layer, so that for all actions of a state the first is
    computed once. Form "linear": phi is a softmax, hence on the simplex, and mu a softplus, hence >= 0; the density
    ratio is <phi, mu>. Form "energy": phi has norm 1, mu is free, and the ratio is exp(<phi, mu>).
    """

    def __init__(self, inputs: int, A: int, d: int, hidden: int, form: str) -> None:
        super().__init__()
        self.form = form
        sizes = ((inputs, hidden), (hidden, hidden), (hidden, d))
        self.phi = nn.ModuleList(nn.Linear(n, m) for n, m in sizes)
        self.mu = nn.ModuleList(nn.Linear(n, m) for n, m in sizes)
        self.action = nn.Parameter(0.3 * torch.randn(A, hidden))
        self.theta = nn.Parameter(torch.zeros(d))
        self.mass: Any
        self.register_buffer("mass", torch.full((d,), math.log(2)))  # softplus(0): about where it starts

    def features(self, x: Any, action: Any) -> Any:
        """phi, (n, d), from encoded states (n, inputs) and actions (n,)."""
        first, second, last = self.phi
        z = second(functional.relu(first(x))) + self.action[action]
        out = last(functional.relu(z)).float()
        return functional.normalize(out, dim=-1) if self.form == "energy" else functional.softmax(out, dim=-1)

    def measures(self, x: Any) -> Any:
        """mu, (n, d), normalised by the running mean of each measure."""
        return self._normalised(self._raw_measures(x), self.mass)

    def training_measures(self, x: Any) -> Any:
        """The same for a batch of next states, draws from p, which also move the running mean.

        The mean has the running value, with little noise, and the batch's derivative: without it phi would grow in
        dimensions whose measure loses its mass, and would no longer be the weights of a mixture.
        """
        raw = self._raw_measures(x)
        mean = raw.mean(0)
        with torch.no_grad():
            self.mass.lerp_(mean, MOMENTUM)
        return self._normalised(raw, self.mass.detach() * (mean / mean.detach()))

    def _raw_measures(self, x: Any) -> Any:
        first, second, last = self.mu
        out = last(functional.relu(second(functional.relu(first(x))))).float()
        return out if self.form == "energy" else functional.softplus(out) + TINY

    def _normalised(self, raw: Any, mass: Any) -> Any:
        return raw if self.form == "energy" else FLOOR + (1 - FLOOR) * raw / mass

    def logits(self, phi: Any, mu: Any) -> Any:
        """log of the density ratio of every pair, (n, m)."""
        f = phi @ mu.T
        return f if self.form == "energy" else torch.log(f)


def contrastive_loss(nets: Networks, phi: Any, mu: Any) -> Any:
    """InfoNCE: which of the batch's next states is the one that followed? All others are the negatives."""
    return functional.cross_entropy(nets.logits(phi, mu), torch.arange(len(phi), device=phi.device))


def imbalance(phi: Any) -> Any:
    """KL(mean phi, uniform): 0 when all d dimensions are in use alike, log d when one is."""
    mean = phi.mean(0)
    return (mean * torch.log(mean * phi.shape[1] + 1e-9)).sum()
