"""Optimizers of a training run; the one that PyTorch lacks is here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dse_evaluators.scaling.recipes.learning_rates import TrainingRecipe

_MOMENTUM = 0.9


def make_optimizer(
    recipe: TrainingRecipe, weights: Sequence[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return a training recipe's optimizer for given parameters, with the usual constants.

    Source:
        Kingma, Ba, 2015 (Adam); Loshchilov, Hutter, 2019 (AdamW); Dozat, 2016 (NAdam); Sutskever
        et al., 2013 (momentum); Chen et al., 2023 (Lion).
    """
    rate, decay = recipe.learning_rate, recipe.weight_decay
    match recipe.optimizer:
        case "sgd":
            return torch.optim.SGD(weights, lr=rate, weight_decay=decay)
        case "momentum" | "nesterov" as method:
            nesterov = method == "nesterov"
            return torch.optim.SGD(
                weights, lr=rate, momentum=_MOMENTUM, nesterov=nesterov, weight_decay=decay
            )
        case "adam":
            return torch.optim.Adam(weights, lr=rate, weight_decay=decay)
        case "adamw":
            return torch.optim.AdamW(weights, lr=rate, weight_decay=decay)
        case "nadam":
            return torch.optim.NAdam(weights, lr=rate, weight_decay=decay)
        case "lion":
            return Lion(weights, rate=rate, weight_decay=decay)


class Lion(torch.optim.Optimizer):
    """Lion optimizer: sign of an interpolated momentum, with decoupled weight decay.

    Args:
        weights: the parameters.
        rate: learning rate.
        weight_decay: factor of the weights in an update.

    Source:
        Chen et al.: Symbolic Discovery of Optimization Algorithms, 2023, program 1; b1 = 0.9,
        b2 = 0.99.
    """

    _BETAS = (0.9, 0.99)

    def __init__(
        self, weights: Sequence[nn.Parameter], *, rate: float, weight_decay: float
    ) -> None:
        super().__init__(weights, {"lr": rate, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002 - unused
        """Update each parameter that has a gradient."""
        first, second = self._BETAS
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                momentum: Tensor = self.state[weight].setdefault("m", torch.zeros_like(weight))
                direction = (momentum * first + weight.grad * (1 - first)).sign_()
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(direction, alpha=-group["lr"])
                momentum.mul_(second).add_(weight.grad, alpha=1 - second)
