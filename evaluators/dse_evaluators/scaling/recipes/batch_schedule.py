"""Batch sizes that grow during training, and the number of updates that they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSchedule:
    """Batch size that is multiplied by ``growth`` after every ``interval`` epochs.

    A batch has at most ``examples`` examples; the rest of an epoch that fills no batch is left out.
    """

    examples: int
    epochs: int
    batch: int
    growth: int = 1
    interval: int = 1

    def size(self, epoch: int) -> int:
        """Return the batch size of an epoch, which is counted from 0."""
        steps = min(epoch // self.interval, 64)  # 2^64 examples are more than any data set has
        return min(self.batch * self.growth**steps, self.examples)

    def sizes(self) -> Iterator[int]:
        """Yield the batch size of each epoch."""
        yield from (self.size(epoch) for epoch in range(self.epochs))

    @property
    def updates(self) -> int:
        """Number of weight updates of the training."""
        return sum(self.examples // size for size in self.sizes())


def count_updates(
    examples: Floats, epochs: Floats, batch: Floats, growth: Floats, interval: Floats
) -> Floats:
    """Return the updates of n schedules, (n,), as :attr:`BatchSchedule.updates` counts them.

    Args:
        examples: examples of an epoch, (n,).
        epochs: number of epochs, (n,).
        batch: first batch size, (n,).
        growth: factor of the batch size, (n,).
        interval: epochs between two factors, (n,).

    Source:
        Devarakonda, Naumov, Garland: AdaBatch, 2017, section 3.
    """
    size = np.minimum(batch, examples)
    left, updates = epochs.copy(), np.zeros_like(examples)
    while (left > 0).any():
        constant = (growth == 1) | (size >= examples)  # no later interval differs
        taken = np.where(constant, left, np.minimum(interval, left))
        updates += taken * np.floor(examples / size)
        left -= taken
        size = np.minimum(size * growth, examples)
    return updates
