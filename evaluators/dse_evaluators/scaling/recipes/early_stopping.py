"""Evaluator `training.early-stopping`: rules of early stopping, replayed on learning curves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats, Ints
from dse.errors import PluginError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.scaling.recipes.learning_curves import (
    LearningCurves,
    predict_better,
    read_curves,
)

RULES = ("none", "successive-halving", "extrapolation")

_INPUTS: Mapping[str, Reading] = {
    "rule": one_of(RULES),
    "first": NumberInput(1, 1e6, default=3, whole=True),
    "growth": NumberInput(1.01, 100, default=1.5),
    "eta": NumberInput(1.01, 100, default=3),
    "threshold": NumberInput(0, 0.5, default=0.05),
}
_METRICS = (
    Metric(name="speed_up", goal="maximize"),
    Metric(name="regret", goal="minimize"),
    Metric(name="stopped"),
)


class EarlyStopping(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Training time saved and quality lost by an early-stopping rule, on recorded curves.

    The trainings are replayed one after another, in random orders. At each checkpoint the rule may
    stop a training: ``successive-halving`` if it is not among the best trainings that reached the
    checkpoint; ``extrapolation`` if it will hardly end better than the best so far.

    ``speed_up`` is the number of all epochs over that of the replayed ones. ``regret`` is the best
    last value of all trainings minus that of those that ran to their end. ``stopped`` is the share
    of the trainings that were stopped. All are means over the orders.

    Args:
        file: a CSV file with the columns ``run``, ``epoch`` and the metric: trainings of yours
            that ran to their end.
        metric: the column of a value from 0 to 1 that is better the higher, such as an accuracy.
        orders: number of random orders.

    Inputs:
        rule: ``none``, ``successive-halving`` or ``extrapolation``.
        first: epoch of the first checkpoint.
        growth: factor between the epochs of two checkpoints.
        eta: successive halving continues one training of ``eta``.
        threshold: extrapolation stops a training whose probability to end better is lower.

    Limits:
        The time of the rule itself is not counted. Extrapolation is for curves that rise and
        level off; it weights 20,000 curves of a prior, of which few are left for a long and smooth
        curve.

    Error:
        Exact on the trainings of the file; none for other trainings.

    Source:
        Adriaensen et al.: LC-PFN, 2023, section 3.1 (prior) and 4.3 (stopping), with importance
        sampling in place of their transformer; Li et al.: ASHA, 2020 (successive halving).

    Example:
        options: {file: curves.csv, orders: 4}
        parameters: {rule: [none, successive-halving, extrapolation], first: [1, 2]}
        objectives: {speed_up: maximize, regret: minimize}
        files:
          curves.csv: |
            run,epoch,accuracy
            a,1,0.5
            a,2,0.7
            a,3,0.8
            b,1,0.3
            b,2,0.35
            b,3,0.37
            c,1,0.6
            c,2,0.8
            c,3,0.9

    Raises:
        PluginError: orders is below 1.
        SpecError: the file cannot be read or has invalid rows.
    """

    file: str
    metric: str = "accuracy"
    orders: int = 20
    rule: str | None = None
    first: int | None = None
    growth: float | None = None
    eta: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise PluginError("orders is a whole number above 0")
        self._curves = read_curves(Path(self.file), self.metric)
        digest = hashlib.sha256(Path(self.file).read_bytes()).hexdigest()[:8]
        self.version = f"{self.version}-{digest}-{self.metric}-{self.orders}"
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats], /) -> dict[str, Floats]:
        """Return the metrics of n designs by name, each (n,)."""
        designs = np.stack([inputs[name] for name in _INPUTS], axis=1)  # (n, 5)
        distinct, which = np.unique(designs, axis=0, return_inverse=True)
        found = np.array([self._replay(*map(float, one)) for one in distinct])  # (u, 3)
        return {one.name: found[which, at] for at, one in enumerate(_METRICS)}

    def _replay(
        self, rule: float, first: float, growth: float, eta: float, threshold: float
    ) -> Floats:
        values = self._curves.values
        steps = checkpoints(int(first), growth, values.shape[1])
        if RULES[int(rule)] == "none" or not len(steps):
            return np.array([1.0, 0.0, 0.0])
        if RULES[int(rule)] == "extrapolation":
            judge: Judge = Extrapolation.of(self._curves, steps, threshold)
        else:
            judge = Halving(values=values[:, steps - 1], eta=eta)
        rng = np.random.default_rng(0)
        each = [
            replay_order(rng.permutation(len(values)), self._curves, steps, judge)
            for _ in range(self.orders)
        ]
        return np.mean(each, axis=0)


def checkpoints(first: int, growth: float, last: int) -> Ints:
    """Return the epochs, before the last one, at which a rule may stop a training."""
    found, epoch = list[int](), float(first)
    while round(epoch) < last:
        found.append(round(epoch))
        epoch = max(epoch * growth, epoch + 1)
    return np.array(found, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """Early-stopping rule that continues the best of the trainings that reached a checkpoint."""

    values: Floats  # (r, c), at the checkpoints
    eta: float

    def stops(self, run: int, at: int, reached: list[int], finished: list[int]) -> bool:  # noqa: ARG002 - the other rule reads it
        """Return whether successive halving stops a training at a checkpoint."""
        better = int((self.values[reached, at] > self.values[run, at]).sum())
        return better >= max(int((len(reached) + 1) / self.eta), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """Early-stopping rule that continues trainings that may end better than the best so far."""

    last: Floats  # (r,)
    better: Floats  # (r, c, r)
    threshold: float

    @staticmethod
    def of(curves: LearningCurves, steps: Ints, threshold: float) -> Extrapolation:
        """Build the extrapolation rule, with its predictions at each checkpoint."""
        return Extrapolation(
            last=curves.values[:, -1],
            better=predict_better(curves, steps),
            threshold=threshold,
        )

    def stops(self, run: int, at: int, reached: list[int], finished: list[int]) -> bool:  # noqa: ARG002 - the other rule reads it
        """Return whether extrapolation stops a training at a checkpoint; never the first one."""
        if not finished:
            return False
        best = finished[int(np.argmax(self.last[finished]))]
        return bool(self.better[run, at, best] < self.threshold)


Judge = Halving | Extrapolation


def replay_order(
    order: Ints, curves: LearningCurves, steps: Ints, judge: Judge
) -> tuple[float, float, float]:
    """Replay trainings in one order; return speed-up, regret and the share of stopped ones."""
    last, epochs = curves.values[:, -1], curves.values.shape[1]
    reached: list[list[int]] = [[] for _ in steps]
    finished, used = list[int](), 0
    for run in order.tolist():
        stop = 0
        for at, step in enumerate(steps.tolist()):
            stops = judge.stops(run, at, reached[at], finished)
            reached[at].append(run)
            if stops:
                stop = step
                break
        used += stop or epochs
        if not stop:
            finished.append(run)
    regret = float(last.max() - last[finished].max())
    return len(order) * epochs / used, regret, 1 - len(finished) / len(order)
