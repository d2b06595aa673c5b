"""Weights that are rounded in the forward pass, with gradients for what is behind them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.training_words import LSQ, TrainedRecipe
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.integers import Integers
from dse_evaluators.formats.layout import BlockLayout
from dse_evaluators.formats.linear import Linear
from dse_evaluators.formats.stored import STORED

_LEAST_STEP = 1e-8


class RoundedWeight(Protocol):
    """Weight tensor of a layer during quantization-aware training."""

    learnt: dict[str, Tensor]
    """Tensors that are trained, by name: ``weight`` and, for LSQ, ``step``."""

    def value(self) -> Tensor:
        """Return the rounded weight for the forward pass, differentiable for training."""
        ...

    def settle(self) -> None:
        """Move the trained tensors back into their range after an update."""
        ...

    def record(self) -> Record:
        """Return the weight in its stored form, which decodes to :meth:`value`."""
        ...


def round_weight(recipe: TrainedRecipe, weight: Single) -> RoundedWeight:
    """Return a layer's weight with rounding in its forward pass, before any training.

    Args:
        recipe: operator and format.
        weight: the weight before training, (outputs, ...).
    """
    form = recipe.form
    return LearnedStep(form, weight) if recipe.operator == LSQ else StraightThrough(form, weight)


class StraightThrough:
    """Weight rounded to any format, whose gradient passes through the rounding unchanged.

    Scales are computed anew from the weights in each step, as the format always does.

    Source:
        Bengio, Leonard, Courville: Estimating or Propagating Gradients Through Stochastic Neurons,
        2013, section 4 (the estimator).
    """

    def __init__(self, form: Format, weight: Single) -> None:
        self._form = form
        self._axis = dense.axis_of(weight.shape)
        self.learnt = {"weight": torch.tensor(weight).requires_grad_()}

    def value(self) -> Tensor:
        weight = self.learnt["weight"]
        rounded = self._form.quantize(weight.detach().numpy(), self._axis)
        return torch.from_numpy(rounded) + (weight - weight.detach())

    def settle(self) -> None:
        """Leave the weights unchanged: every number can be rounded to the format."""

    def record(self) -> Record:
        return dense.Dense(self._form.name)(self.learnt["weight"].detach().numpy())


class LearnedStep:
    """Weight rounded to integers times a step that is learnt for each tensor, channel or group.

    The stored step, in fp16 by default, is what the forward pass uses.

    Source:
        Esser et al.: Learned Step Size Quantization, 2020, section 2: eq. 1 to 5, the gradient
        scale of section 2.2 with N the weights that share a step, and the initial step of 2.1.
    """

    def __init__(self, form: Format, weight: Single) -> None:
        assert isinstance(form.grid, Integers)
        assert isinstance(form.scaling, Linear)
        self._form, self._grid, self._scaling = form, form.grid, form.scaling
        self._axis = dense.axis_of(weight.shape)
        self._layout = BlockLayout.of(weight.shape, self._axis, form.scaling.span, short=form.short)
        blocks = self._layout.table(weight)
        step = 2 * np.abs(blocks).mean(axis=1) / np.sqrt(np.float32(form.grid.high))
        self.learnt = {
            "weight": torch.tensor(weight).requires_grad_(),
            "step": torch.tensor(np.maximum(step, _LEAST_STEP)).requires_grad_(),
        }

    def value(self) -> Tensor:
        layout, weight, step = self._layout, self.learnt["weight"], self.learnt["step"]
        rows = weight.reshape(layout.rows, layout.length)
        padded = functional.pad(rows, (0, -layout.length % layout.block))
        blocks = padded.reshape(-1, layout.block)
        used = torch.from_numpy(self._stored_steps()) + (step - step.detach())
        rounded = round_to_steps(blocks, used[:, None], self._grid.low, self._grid.high)
        return rounded.reshape(layout.rows, -1)[:, : layout.length].reshape(weight.shape)

    def settle(self) -> None:
        with torch.no_grad():
            self.learnt["step"].clamp_(min=_LEAST_STEP)

    def record(self) -> Record:
        kept = STORED[self._scaling.stored].words(self.learnt["step"].detach().numpy())
        sides = {"scale": kept}
        lattice = self._scaling.read(sides, self._grid)
        blocks = self._layout.table(self.learnt["weight"].detach().numpy())
        assert lattice.back is not None
        whole = np.clip(np.rint(blocks / lattice.back), self._grid.low, self._grid.high)
        codes = self._layout.cut(self._grid.codes(whole.astype(np.float32))).ravel()
        shape = self._layout.shape
        encoded = Encoded(shape=shape, axis=self._axis, codes=codes, sides=sides)
        return dense.of_codes(self._form, encoded)

    def _stored_steps(self) -> Single:
        """Return the steps as they are stored, (blocks,)."""
        stored = STORED[self._scaling.stored]
        return stored.scales(stored.words(self.learnt["step"].detach().numpy()))


def round_to_steps(blocks: Tensor, step: Tensor, low: int, high: int) -> Tensor:
    """Round numbers to integers from ``low`` to ``high`` times a step, with LSQ's gradients.

    The gradient passes unchanged to numbers from ``low`` to ``high`` steps, and not to numbers
    beyond. The gradient of the step is the one of LSQ, multiplied by 1 / sqrt(N high).

    Args:
        blocks: the numbers, (b, g).
        step: the step of each block, (b, 1).
        low: lowest integer, -Q_N.
        high: highest integer, Q_P.
    """
    share = 1 / np.sqrt(blocks.shape[1] * high)
    scaled = step * share
    slow = step.detach() + (scaled - scaled.detach())  # the step, with a share of its gradient
    clipped = (blocks / slow).clamp(low, high)
    return (clipped.detach().round() + (clipped - clipped.detach())) * slow
