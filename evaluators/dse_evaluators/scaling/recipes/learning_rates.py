"""Recipe of a training, and its learning rate at each update."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from dse_evaluators.scaling.recipes.batch_schedule import BatchSchedule

OptimizerName = Literal["sgd", "momentum", "nesterov", "adam", "adamw", "nadam", "lion"]
ScheduleName = Literal["constant", "linear", "cosine", "inverse-sqrt", "wsd"]
PrecisionName = Literal["fp32", "bf16"]
RuleName = Literal["backprop", "mono-forward"]

OPTIMIZERS: tuple[OptimizerName, ...] = get_args(OptimizerName)
SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)
PRECISIONS: tuple[PrecisionName, ...] = get_args(PrecisionName)
RULES: tuple[RuleName, ...] = get_args(RuleName)
FALLING: tuple[ScheduleName, ...] = ("linear", "cosine", "wsd")
"""Schedules that fall to ``final_rate``."""

_DECAY = 0.2
"""Last share of the updates in which the schedule ``wsd`` decays; Hu et al., MiniCPM: 0.1 to 0.2"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """Settings of a training run; the inputs of ``training.run`` describe them."""

    optimizer: OptimizerName
    learning_rate: float
    schedule: ScheduleName
    final_rate: float
    warmup: float
    weight_decay: float
    epochs: int
    batch: int
    batch_growth: int
    interval: int
    rate_decay: float
    precision: PrecisionName
    rule: RuleName
    frozen: int
    data_share: float
    seed: int

    def batches(self, examples: int) -> BatchSchedule:
        """Return the batch sizes of a training on this number of examples."""
        return BatchSchedule(
            examples=examples,
            epochs=self.epochs,
            batch=self.batch,
            growth=self.batch_growth,
            interval=self.interval,
        )

    def rate(self, update: int, updates: int, epoch: int) -> float:
        """Return the learning rate of an update.

        Args:
            update: number of earlier updates.
            updates: number of updates of the training.
            epoch: number of earlier epochs.

        Source:
            Loshchilov, Hutter: SGDR, 2017 (cosine); Vaswani et al., 2017 (inverse square root);
            Hu et al.: MiniCPM, 2024 (warm-up, stable, decay).
        """
        rate = self.learning_rate * self.rate_decay ** (epoch // self.interval)
        rise = self.warmup * updates
        if update < rise:
            return rate * min(1.0, (update + 1) / rise)
        progress = (update - rise) / max(updates - rise, 1.0)
        match self.schedule:
            case "constant":
                return rate
            case "linear":
                return rate * self._fall(1 - progress)
            case "cosine":
                return rate * self._fall(0.5 * (1 + math.cos(math.pi * progress)))
            case "inverse-sqrt":
                first = max(rise, 1.0)
                return rate * math.sqrt(first / max(update + 1.0, first))
            case "wsd":
                return rate * self._fall(min(1.0, (1 - progress) / _DECAY))

    def _fall(self, share: float) -> float:
        """Return a share of the fall from 1 to ``final_rate``; 1 is its start."""
        return self.final_rate + (1 - self.final_rate) * share
