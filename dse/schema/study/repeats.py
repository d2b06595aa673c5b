"""Replicated runs of a stochastic evaluator, with common random numbers for all designs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse.protocols import (
    ChecksValues,
    DeployedModel,
    Evaluator,
    HasDeployedModel,
    ModelError,
    StatesModelErrors,
    declared_parts,
    find_test_evaluator,
    inputs_by_metric,
    is_pure,
    missing_reason,
    started_programs,
    weights_trained_for,
)
from dse.schema.models import ReplicatesSpec
from dse.schema.study.fixed_inputs import reads_any


class Replicated:
    """Evaluator wrapper that runs a stochastic evaluator several times and reports means.

    Each run gets the replicate index (0, 1, ...) as an input. The indices are the same for all
    designs: an evaluator that uses them as its seed thus has common random numbers, which make
    differences between designs more precise than the values of single designs. Each metric is the
    mean over replicates, with its standard error; each requested quantile is a further metric:
    ``latency.p95``.

    Source:
        Law: Simulation Modeling and Analysis, ch. 11.2 (common random numbers).

    Raises:
        SpecError: the evaluator has no input for the replicate number.
    """

    def __init__(self, evaluator: Evaluator, spec: ReplicatesSpec) -> None:
        if not reads_any(evaluator, spec.seed_input):
            raise SpecError(
                f"it reads no {spec.seed_input!r}, so all replicates would be the same",
                hint="name the input for its seed under 'seed_input'",
            )
        self.reads = evaluator.reads - {spec.seed_input}
        self.optional = evaluator.optional - {spec.seed_input}
        self.units = evaluator.units
        self.kind: Kind = evaluator.kind
        self.version = evaluator.version
        self.missing = missing_reason(evaluator)
        own = evaluator.provides
        self.provides: Mapping[str, Metric] = {**own, **_quantiles(own, spec.quantiles)}
        reads = inputs_by_metric(evaluator)
        self.reads_by_metric = {
            name: reads[_own(name, own)] - {spec.seed_input} for name in self.provides if reads
        }
        self.starts = started_programs(evaluator)
        self.parts = declared_parts(evaluator)
        self.evaluator = evaluator
        self._spec = spec
        # A method that is None counts as absent: the wrapper can what the wrapped evaluator can.
        deploys = isinstance(evaluator, HasDeployedModel)
        self.deployed_model = self._deployed_model if deploys else None
        self.model_errors = self._model_errors if isinstance(evaluator, StatesModelErrors) else None

    @property
    def pure(self) -> bool:
        """Whether the wrapped evaluator is pure, so that read-only commands may call it.

        It is determined on first use, as this may import a user's function.
        """
        return is_pure(self.evaluator)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that the evaluator accepts these values of its inputs in every replicate.

        Raises:
            SpecError: the evaluator rejects a value.
        """
        if isinstance(self.evaluator, ChecksValues):
            every = range(self._spec.count)
            self.evaluator.check_values({**values, self._spec.seed_input: every})

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hashes of the weights that this machine trains for the wrapped evaluator."""
        return weights_trained_for(self.evaluator)

    def test_evaluator(self) -> Evaluator | None:
        """Return the test-split evaluator of the wrapped evaluator, with the same replicates.

        The result is ``None`` if the wrapped evaluator has no test split.
        """
        found = find_test_evaluator(self.evaluator)
        return None if found is None else Replicated(found, self._spec)

    def evaluate(self, batch: Batch) -> Metrics:
        found = [self._replicate(batch, number) for number in range(self._spec.count)]
        failures: dict[int, Failure] = {}
        for one in reversed(found):
            failures |= one.failures
        columns: dict[str, Floats] = {}
        spread: dict[str, Floats] = {}
        for name in self.evaluator.provides:
            values = np.array([_fill_column(one, name, len(batch)) for one in found])  # (count, n)
            columns[name] = values.mean(axis=0)
            spread[name] = values.std(axis=0, ddof=1) / np.sqrt(self._spec.count)
            for share in self._spec.quantiles:
                columns[_name_quantile(name, share)] = np.quantile(values, share, axis=0)
        undefined: dict[str, dict[int, str]] = {}
        for one in reversed(found):
            for name in columns:
                reasons = one.undefined.get(_own(name, self.evaluator.provides), {})
                undefined.setdefault(name, {}).update(reasons)
        return Metrics(columns=columns, spread=spread, failures=failures, undefined=undefined)

    def _replicate(self, batch: Batch, number: int) -> Metrics:
        return self.evaluator.evaluate(self._with_number(batch, number))

    def _deployed_model(self, design: Mapping[str, Value]) -> DeployedModel:
        assert isinstance(self.evaluator, HasDeployedModel)
        return self.evaluator.deployed_model({**design, self._spec.seed_input: 0})

    def _model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        assert isinstance(self.evaluator, StatesModelErrors)
        return self.evaluator.model_errors(self._with_number(batch, 0))

    def _with_number(self, batch: Batch, number: int) -> Batch:
        same = np.zeros(len(batch), dtype=np.int64)
        return batch.with_columns({self._spec.seed_input: Column.coded((number,), same)})


def _own(name: str, provides: Mapping[str, Metric]) -> str:
    """Return ``latency`` for its quantile ``latency.p95``; return a metric's name unchanged."""
    return name if name in provides else name.rpartition(".p")[0]


def _fill_column(metrics: Metrics, name: str, size: int) -> Floats:
    """Return a metric for each design of a batch, shape (size,).

    It is NaN where the evaluation of the design failed or did not report the metric.
    """
    values = np.asarray(metrics.columns.get(name, np.nan), dtype=np.float64)
    values = np.array(np.broadcast_to(values, (size,)))
    values[list(metrics.failures)] = np.nan
    return values


def _quantiles(metrics: Mapping[str, Metric], shares: Sequence[float]) -> dict[str, Metric]:
    return {
        _name_quantile(name, share): Metric(
            name=_name_quantile(name, share), unit=metric.unit, goal=metric.goal
        )
        for name, metric in metrics.items()
        for share in shares
    }


def _name_quantile(name: str, share: float) -> str:
    """Return the name of a quantile of a metric: ``latency.p95`` for 0.95.

    A decimal point becomes ``_``, since dots separate parts of names: ``latency.p99_9``.
    """
    percent = f"{100 * share:g}".replace(".", "_")
    return f"{name}.p{percent}"
