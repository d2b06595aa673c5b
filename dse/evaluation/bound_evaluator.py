"""Evaluator bound to a study: mapping of its inputs and metrics, and validation of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, FailureKind, Metric, Metrics
from dse.core.separable import Separable
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.errors import InfeasibleError
from dse.protocols import (
    Evaluator,
    Needs,
    ReadsByMetric,
    inputs_by_metric,
    is_pure,
    started_programs,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Evaluator in a study, with its inputs bound to the study's parameters and metrics.

    ``names`` maps the evaluator's input names to the study's; ``factors`` holds, for each input,
    the factor that converts it to the evaluator's unit. An evaluator whose metrics depend on the
    scenario (workload case) is bound once per ``scenario``. ``needs`` are the resources that it
    needs; an ``exclusive`` one must run alone on its machine. ``deciding`` holds the evaluator's
    names of the metrics without which a design counts as failed; ``None`` means all of them.
    ``separable`` holds, by the evaluator's metric names, the declarations of metrics that are
    approximately sums of terms, each over a group of parameters, by the study's names.
    """

    name: str
    evaluator: Evaluator
    names: Mapping[str, str]
    factors: Mapping[str, float] = field(default_factory=dict)
    scenario: str = ""
    needs: Needs = field(default_factory=Needs)
    exclusive: bool = False
    deciding: frozenset[str] | None = None
    separable: Mapping[str, Separable] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name of the evaluator with its scenario, if any: ``chip@chat``."""
        return f"{self.name}@{self.scenario}" if self.scenario else self.name

    def metric(self, own: str) -> str:
        """Return the study's name of one of the evaluator's metrics: ``chip.latency@chat``."""
        full = f"{self.name}.{own}"
        return f"{full}@{self.scenario}" if self.scenario else full

    @property
    def pure(self) -> bool:
        """Whether read-only commands may call the evaluator: a model that starts no program."""
        return self.evaluator.kind == "modelled" and is_pure(self.evaluator)

    @property
    def starts(self) -> tuple[str, ...]:
        """Descriptions of the programs that the evaluator starts and of functions it calls."""
        return tuple(started_programs(self.evaluator))

    @property
    def reads(self) -> frozenset[str]:
        """Inputs of the evaluator (parameters and metrics), by the study's names."""
        return frozenset(self.names.values())

    @property
    def provides(self) -> dict[str, Metric]:
        """Metrics of the evaluator, by their names in the study."""
        return {self.metric(own): metric for own, metric in self.evaluator.provides.items()}

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs by the evaluator's own names, each (n,); never raise.

        A design counts as failed if it is infeasible or lacks a deciding metric. Other missing
        values are NaN; so are all metrics of a failed design if the evaluator has no deciding
        metric.

        Args:
            batch: the inputs, by the study's names.
        """
        view = self.own_inputs(batch)
        try:
            return self._check_metrics(self.evaluator.evaluate(view), len(batch))
        except Exception as error:  # noqa: BLE001 - an exception fails only its rows
            if len(batch) == 1:
                return self._check_metrics(Metrics(columns={}, failures={0: _failure(error)}), 1)
        parts = [self.evaluate(batch.take(np.array([row]))) for row in range(len(batch))]
        return _stack_rows(parts, self.evaluator.provides)

    def reads_of(self, own: str) -> frozenset[str]:
        """Return the inputs that one of the evaluator's metrics depends on, by the study's names.

        For most evaluators these are all inputs of the evaluator.
        """
        reads = inputs_by_metric(self.evaluator).get(own, self.names.keys())
        return frozenset(self.names[name] for name in reads if name in self.names)

    @property
    def reads_apart(self) -> bool:
        """Whether the metrics of the evaluator depend on different inputs.

        The evaluator then reports for each metric whether it has a value.
        """
        return isinstance(self.evaluator, ReadsByMetric)

    def answered(self, trial: Trial) -> bool:
        """Return whether a trial has values of all metrics of the evaluator.

        In a trial that is done, metrics that neither objectives nor limits read may be missing, but
        not all metrics.
        """
        lacking = {name for name in self.provides if name not in trial.metrics}
        if not lacking or trial.state is not State.DONE or len(lacking) == len(self.provides):
            return not lacking
        return self.deciding is not None and not lacking & set(map(self.metric, self.deciding))

    def _check_metrics(self, got: Metrics, size: int) -> Metrics:
        """Return the metrics; each design that lacks a finite deciding metric has a failure."""
        failures = {r: f for r, f in got.failures.items() if self._decides(f)}
        blank = list(got.failures.keys() - failures.keys())
        columns: dict[str, Floats] = {}
        for name in self.evaluator.provides:
            numbers = np.asarray(got.columns.get(name, np.nan), dtype=np.float64)
            values = np.array(np.broadcast_to(numbers, (size,)))
            values[blank] = np.nan
            rows = np.flatnonzero(~np.isfinite(values))
            if self.deciding is None or name in self.deciding:
                for row in rows.tolist():
                    failures.setdefault(row, _without(got, name, row, values[row]))
            values[rows] = np.nan
            columns[name] = values
        spread = {name: got.spread[name] for name in self.evaluator.provides if name in got.spread}
        return Metrics(columns=columns, spread=spread, failures=failures)

    def _decides(self, failure: Failure) -> bool:
        # A lost evaluation is retried even if no metric decides: its NaN would be permanent.
        passes = failure.kind in ("infeasible", "lost")
        return passes or self.deciding is None or bool(self.deciding)

    def own_inputs(self, batch: Batch) -> Batch:
        """Return a batch of the study as the evaluator's inputs, by its names and in its units."""
        view = batch.renamed(self.names)
        scaled = {
            own: _scale_column(view.columns[own], factor)
            for own, factor in self.factors.items()
            if own in view and factor != 1.0
        }
        return view.with_columns(scaled) if scaled else view


def _without(got: Metrics, name: str, row: int, value: float) -> Failure:
    """Return the failure that describes why a metric has no value for a design."""
    reason = got.undefined.get(name, {}).get(row)
    if reason is None:
        missing = name not in got.columns
        reason = f"the metric {name!r} is missing" if missing else f"{name} is {value}"
    return Failure(kind="invalid", reason=reason)


def _stack_rows(parts: Sequence[Metrics], provides: Mapping[str, Metric]) -> Metrics:
    """Concatenate the metrics of single designs to a batch's; failed designs have NaN."""
    nothing = np.full(1, np.nan)
    columns = {
        name: np.concatenate([np.asarray(p.columns.get(name, nothing)) for p in parts])
        for name in provides
    }
    spread = {
        name: np.concatenate([np.asarray(p.spread.get(name, nothing)) for p in parts])
        for name in provides
        if any(name in p.spread for p in parts)
    }
    failures = {place: part.failures[0] for place, part in enumerate(parts) if part.failures}
    return Metrics(columns=columns, spread=spread, failures=failures)


def _scale_column(column: Column, factor: float) -> Column:
    return Column(
        column.values * factor,
        column.absent,
        column.codes,
        tuple(value * factor for value in column.domain if isinstance(value, int | float)),
    )


def _failure(error: Exception) -> Failure:
    if isinstance(error, InfeasibleError):
        return Failure(kind="infeasible", reason=error.problem)
    if isinstance(error, TimeoutError):
        return Failure(kind="timeout", reason=str(error) or "timed out")
    kind: FailureKind = "memory" if isinstance(error, MemoryError) else "raised"
    return Failure(kind=kind, reason=f"{type(error).__name__}: {error}")
