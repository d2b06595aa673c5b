"""Evaluator `training.batch-plan`: updates of a training whose batches grow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.scaling.recipes.batch_schedule import count_updates

_INPUTS: Mapping[str, Reading] = {
    "examples": NumberInput(1, 1e12, whole=True),
    "epochs": NumberInput(1, 1e6, whole=True),
    "batch": NumberInput(1, 1e9, whole=True),
    "batch_growth": NumberInput(1, 1024, default=1, whole=True),
    "interval": NumberInput(1, 1e6, default=1, whole=True),
    "rate_decay": NumberInput(0, 1, default=1),
}
_METRICS = (
    Metric(name="updates", goal="minimize"),
    Metric(name="update_ratio", goal="maximize"),
    Metric(name="largest_batch"),
    Metric(name="effective_decay"),
)


class BatchPlan(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Number of updates of a training whose batch size is multiplied after every few epochs.

    ``update_ratio`` is the number of updates with the first batch size throughout over the number
    with growing ones: the limit of the speedup if an update takes the same time at each size.
    ``largest_batch`` is the batch size of the last epoch. ``effective_decay`` is the factor of the
    learning rate over the batch size at each interval; schedules with the same one are comparable.

    Inputs:
        examples: examples of an epoch; those that fill no batch are left out.
        epochs: number of epochs.
        batch: batch size of the first epochs.
        batch_growth: factor of the batch size after each interval.
        interval: epochs between two factors.
        rate_decay: factor of the learning rate after each interval.

    Limits:
        Updates are counted, not timed: larger batches take longer once a device is full.

    Error:
        None: the counts equal the counts of ``training.run``.

    Source:
        Devarakonda, Naumov, Garland: AdaBatch: Adaptive Batch Sizes for Training Deep Neural
        Networks, 2017, section 3.

    Example:
        options: {examples: 50000}
        parameters: {epochs: [100], batch: [128, 2048], batch_growth: [1, 2], interval: [20]}
    """

    examples: int | None = None
    epochs: int | None = None
    batch: int | None = None
    batch_growth: int | None = None
    interval: int | None = None
    rate_decay: float | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Return the counts of n plans, each (n,)."""
        examples, epochs, batch = (inputs[name] for name in ("examples", "epochs", "batch"))
        growth, interval = inputs["batch_growth"], inputs["interval"]
        updates = count_updates(examples, epochs, batch, growth, interval)
        fixed = epochs * np.floor(examples / np.minimum(batch, examples))
        steps = np.minimum((epochs - 1) // interval, 64)
        return {
            "updates": updates,
            "update_ratio": fixed / updates,
            "largest_batch": np.minimum(batch * growth**steps, examples),
            "effective_decay": inputs["rate_decay"] / growth,
        }
