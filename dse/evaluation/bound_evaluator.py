"""An evaluator in a study: what it reads and provides there, and each of its answers checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Fault, FaultKind, Metric, Metrics
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.errors import InfeasibleError
from dse.protocols import Evaluator, Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An evaluator in a study: its name there, and what each of its readings is there.

    ``names`` maps the evaluator's word for a reading to the study's; ``factors`` holds what a
    reading is multiplied with to be in the evaluator's unit. One that tells another number under
    another scenario is there once for each. ``needs`` is what it wants of its machine; one that is
    ``exclusive`` wants it for itself. ``deciding`` are those of its metrics, under its own names,
    without which a design has no answer; ``None`` is all of them.
    """

    name: str
    evaluator: Evaluator
    names: Mapping[str, str]
    factors: Mapping[str, float] = field(default_factory=dict)
    scenario: str = ""
    needs: Needs = field(default_factory=Needs)
    exclusive: bool = False
    deciding: frozenset[str] | None = None

    @property
    def label(self) -> str:
        """Its name, with the scenario that it is for: ``chip@chat``."""
        return f"{self.name}@{self.scenario}" if self.scenario else self.name

    def metric(self, own: str) -> str:
        """The study's word for a metric of its own: ``chip.latency``, ``chip.latency@chat``."""
        full = f"{self.name}.{own}"
        return f"{full}@{self.scenario}" if self.scenario else full

    @property
    def pure(self) -> bool:
        """True if commands that only look may call it: modelled, and nothing is started."""
        return self.evaluator.kind == "modelled" and bool(getattr(self.evaluator, "pure", False))

    @property
    def starts(self) -> tuple[str, ...]:
        """The programs and functions that the study has it call, in words."""
        return tuple(getattr(self.evaluator, "starts", ()))

    @property
    def reads(self) -> frozenset[str]:
        """Names that the evaluator reads, as the study names them."""
        return frozenset(self.names.values())

    @property
    def provides(self) -> dict[str, Metric]:
        """Its metrics, in the study's words."""
        return {self.metric(own): metric for own, metric in self.evaluator.provides.items()}

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of the batch under the evaluator's own names; never raises.

        A row where a deciding metric has no value has a fault. All others that have none are NaN,
        and so is all that an evaluator without any deciding metric failed to tell; that a design
        cannot exist counts whoever says it.
        """
        view = self._view(batch)
        try:
            return self._check_metrics(self.evaluator.evaluate(view), len(batch))
        except Exception as error:  # noqa: BLE001 - whatever an evaluator raises costs its rows only
            if len(batch) == 1:
                return self._check_metrics(Metrics(columns={}, faults={0: _fault(error)}), 1)
        parts = [self.evaluate(batch.take(np.array([row]))) for row in range(len(batch))]
        return _stack_rows(parts, self.evaluator.provides)

    def reads_of(self, own: str) -> frozenset[str]:
        """Return the names that one of its metrics reads, as the study names them.

        For most evaluators they are all that the evaluator reads.
        """
        reads = getattr(self.evaluator, "reads_by_metric", {}).get(own, self.names.keys())
        return frozenset(self.names[name] for name in reads if name in self.names)

    @property
    def reads_apart(self) -> bool:
        """True if its metrics read different inputs.

        It then reports for each metric whether it has a value.
        """
        return hasattr(self.evaluator, "reads_by_metric")

    def answered(self, trial: Trial) -> bool:
        """Return whether the trial holds its results: all, or, once done, the deciding ones."""
        lacking = {name for name in self.provides if name not in trial.metrics}
        if not lacking or trial.state is not State.DONE or len(lacking) == len(self.provides):
            return not lacking
        return self.deciding is not None and not lacking & set(map(self.metric, self.deciding))

    def _check_metrics(self, got: Metrics, size: int) -> Metrics:
        """Return the metrics, with a fault for each row where a deciding one is no number.

        A deciding metric that is missing is a fault too.
        """
        faults = {r: f for r, f in got.faults.items() if self._decides(f)}
        blank = list(got.faults.keys() - faults.keys())
        columns: dict[str, Floats] = {}
        for name in self.evaluator.provides:
            told = np.asarray(got.columns.get(name, np.nan), dtype=np.float64)
            values = np.array(np.broadcast_to(told, (size,)))
            values[blank] = np.nan
            rows = np.flatnonzero(~np.isfinite(values))
            if self.deciding is None or name in self.deciding:
                for row in rows.tolist():
                    faults.setdefault(row, _without(got, name, row, values[row]))
            values[rows] = np.nan
            columns[name] = values
        spread = {name: got.spread[name] for name in self.evaluator.provides if name in got.spread}
        return Metrics(columns=columns, spread=spread, faults=faults)

    def _decides(self, fault: Fault) -> bool:
        # What was lost is tried again, whoever loses it: a missing value would stay missing.
        passes = fault.kind in ("infeasible", "lost")
        return passes or self.deciding is None or bool(self.deciding)

    def _view(self, batch: Batch) -> Batch:
        view = batch.renamed(self.names)
        scaled = {
            own: _scale_column(view.columns[own], factor)
            for own, factor in self.factors.items()
            if own in view and factor != 1.0
        }
        return view.with_columns(scaled) if scaled else view


def _without(got: Metrics, name: str, row: int, value: float) -> Fault:
    """Return the fault of a metric that has no value in a row."""
    reason = got.undefined.get(name, {}).get(row)
    if reason is None:
        missing = name not in got.columns
        reason = f"the metric {name!r} is missing" if missing else f"{name} is {value}"
    return Fault(kind="invalid", reason=reason)


def _stack_rows(parts: Sequence[Metrics], provides: Mapping[str, Metric]) -> Metrics:
    """Return one-row metrics as one; rows with a fault hold NaN."""
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
    faults = {place: part.faults[0] for place, part in enumerate(parts) if part.faults}
    return Metrics(columns=columns, spread=spread, faults=faults)


def _scale_column(column: Column, factor: float) -> Column:
    return Column(
        column.values * factor,
        column.absent,
        column.codes,
        tuple(value * factor for value in column.domain if isinstance(value, int | float)),
    )


def _fault(error: Exception) -> Fault:
    if isinstance(error, InfeasibleError):
        return Fault(kind="infeasible", reason=error.problem)
    if isinstance(error, TimeoutError):
        return Fault(kind="timeout", reason=str(error) or "timed out")
    kind: FaultKind = "memory" if isinstance(error, MemoryError) else "raised"
    return Fault(kind=kind, reason=f"{type(error).__name__}: {error}")
