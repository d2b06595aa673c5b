"""Evaluator on the test split of another one, with bootstrap resamples of its metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.protocols import RESAMPLE, Evaluator, missing_reason, started_programs
from dse_evaluators.one_by_one import Found, one_by_one

Measure = Callable[[Mapping[str, Value]], tuple[Found, Mapping[str, Floats]]]
"""Function from a design to its metrics and to resamples of them, each (b,)."""


@dataclass(kw_only=True)
class OnTestSplit:
    """Evaluator whose metrics on a test split come with bootstrap resamples.

    Args:
        evaluator: the evaluator with the option ``split: test``.
        measure: measures a design.
        resampled: the metrics that have resamples.
        count: number of resamples.
        uncertain: other metrics that have a standard error.
    """

    evaluator: Evaluator
    measure: Measure
    resampled: Collection[str]
    count: int
    uncertain: Collection[str] = ()

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False)
    version: str = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)

    def __post_init__(self) -> None:
        own = self.evaluator
        self.reads, self.optional, self.units = own.reads, own.optional, own.units
        self.kind, self.version = own.kind, own.version
        self.starts, self.missing = tuple(started_programs(own)), missing_reason(own)
        more = {
            full: Metric(full, own.provides[name].unit)
            for name in self.resampled
            for full in _resample_names(name, self.count)
        }
        self.provides = {**own.provides, **more}

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design, self.uncertain)

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        found, resamples = self.measure(design)
        more = {
            full: float(value)
            for name in self.resampled
            if name in resamples
            for full, value in zip(_resample_names(name, self.count), resamples[name], strict=True)
        }
        return Found(values={**found.values, **more}, errors=found.errors)


def _resample_names(name: str, count: int) -> list[str]:
    return [f"{name}{RESAMPLE}{number}" for number in range(count)]
