"""Stochastic gradient descent loop shared by all retraining methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.compression.retraining.distillation import DistillationLoss

MOMENTUM = 0.9
BATCH = 32


class TrainingBatch(NamedTuple):
    """Training batch: images, their labels, and the logits of the uncompressed teacher network."""

    images: Tensor  # (n, 1, height, width)
    labels: Tensor  # (n,)
    teacher_logits: Tensor | None  # (n, classes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateSchedule:
    """Number of updates, with a learning rate that decreases linearly."""

    updates: int
    start_rate: float
    end_rate: float = 0.0

    def rate(self, update: int) -> float:
        """Return the learning rate of an update, counted from 0."""
        return self.start_rate + (self.end_rate - self.start_rate) * update / self.updates


def _nothing(update: int) -> None:
    """Leave gradients and weights unchanged; the default callback of a retraining method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """Callbacks of a retraining method: on gradients before, on weights after each update."""

    pull: Callable[[int], None] = _nothing
    settle: Callable[[int], None] = _nothing


FREE = Steer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmented:
    """Augmentation of training images: a random shift in pixels, and normal noise."""

    shift: int
    noise: float

    def __call__(self, images: Tensor, chance: torch.Generator) -> Tensor:
        if self.shift:
            height, width = images.shape[-2:]
            down, right = torch.randint(0, 2 * self.shift + 1, (2,), generator=chance).tolist()
            wide = functional.pad(images, (self.shift,) * 4)
            images = wide[..., down : down + height, right : right + width]
        if self.noise:
            images = images + self.noise * torch.randn(images.shape, generator=chance)
        return images


def training_batches(
    images: Tensor,
    labels: Tensor,
    seen: Augmented,
    teacher: Callable[[Tensor], Tensor] | None,
    seed: int,
) -> Iterator[TrainingBatch]:
    """Yield augmented batches endlessly, shuffled in each epoch, without incomplete batches."""
    chance = torch.Generator().manual_seed(seed)
    updates = updates_per_epoch(len(labels))
    while True:
        order = torch.randperm(len(labels), generator=chance)
        for rows in order[: updates * BATCH].reshape(updates, BATCH):
            shown = seen(images[rows], chance)
            with torch.no_grad():
                teacher_logits = teacher(shown) if teacher else None
            yield TrainingBatch(shown, labels[rows], teacher_logits)


def updates_per_epoch(images: int) -> int:
    """Return the number of full batches in an epoch."""
    return images // BATCH


def descend(
    tensors: Sequence[Tensor],
    logits: Callable[[Tensor], Tensor],
    schedule: LearningRateSchedule,
    *,
    batches: Iterator[TrainingBatch],
    distillation: DistillationLoss,
    steer: Steer = FREE,
) -> None:
    """Minimize the training loss over tensors, the weights of ``logits``, by SGD with momentum.

    Source:
        Polyak, Some Methods of Speeding up the Convergence of Iteration Methods, 1964 (momentum).
    """
    optimizer = torch.optim.SGD(tensors, lr=schedule.start_rate, momentum=MOMENTUM)
    for update in range(schedule.updates):
        batch = next(batches)
        optimizer.param_groups[0]["lr"] = schedule.rate(update)
        optimizer.zero_grad()
        loss = distillation.loss(logits(batch.images), batch.labels, batch.teacher_logits)
        loss.backward()  # type: ignore[no-untyped-call]
        steer.pull(update)
        optimizer.step()
        with torch.no_grad():
            steer.settle(update)
