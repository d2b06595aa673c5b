"""Weights as noisy conductances of a crossbar, with gradients that pass through them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.formats.arrays import Single

_CLIP = 2.5
"""Standard deviations of a layer's weights that training clips them to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Memory cells of a crossbar that store a weight as the difference of two conductances.

    Attributes:
        levels: distinct values of a weight, evenly spaced from minus to plus the largest absolute
            weight of the layer; 0 for any value between.
        noise: standard deviation of a stored weight, relative to the largest absolute weight.
    """

    levels: int
    noise: float

    def store(self, weight: Tensor, chance: torch.Generator) -> Tensor:
        """Return a weight tensor as a crossbar has it after programming, of the same shape."""
        top = weight.abs().max()
        stored = weight
        if self.levels and top > 0:
            step = 2 * top / (self.levels - 1)
            stored = ((weight + top) / step).round() * step - top
        if self.noise:
            stored = stored + self.noise * top * torch.randn(weight.shape, generator=chance)
        return stored


class NoisyConductances:
    """Weight tensor that is programmed into cells anew, with other noise, in each training step.

    Weights are clipped, since noise is relative to the largest one.

    Source:
        Joshi et al.: Accurate deep neural network inference using computational phase-change
        memory, 2020 (noise in the forward pass, and clipping to standard deviations);
        Bengio, Leonard, Courville: Estimating or Propagating Gradients Through Stochastic Neurons,
        2013, section 4 (the gradient passes through rounding and noise unchanged).
    """

    def __init__(self, cells: Cells, weight: Single, seed: int) -> None:
        self._cells = cells
        self._chance = torch.Generator().manual_seed(seed)
        self.learnt = {"weight": torch.tensor(weight).requires_grad_()}

    def value(self) -> Tensor:
        weight = self.learnt["weight"]
        return self._cells.store(weight.detach(), self._chance) + (weight - weight.detach())

    def settle(self) -> None:
        """Clip the weights to some of their standard deviations."""
        with torch.no_grad():
            weight = self.learnt["weight"]
            bound = _CLIP * weight.std(unbiased=False)
            weight.clamp_(-bound, bound)

    def record(self) -> Record:
        return dense.Dense("fp32")(self.learnt["weight"].detach().numpy())
