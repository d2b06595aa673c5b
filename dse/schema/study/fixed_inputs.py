"""Evaluator wrapper for inputs that a scenario fixes to one value for all designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.expressions.expression import Expression
from dse.core.metric import Metrics
from dse.core.separable import Separable
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse.protocols import (
    COHERENT,
    EVERYTHING,
    DeployedModel,
    Evaluator,
    HasDeployedModel,
    ModelError,
    StatesModelErrors,
    absent_metrics,
    declared_parts,
    find_test_evaluator,
    formulas_of,
    inputs_by_metric,
    is_pure,
    missing_reason,
    started_programs,
    weights_trained_for,
    written_formulas_of,
)
from dse.schema.models import Scalar
from dse.schema.space.parameters.domains import amount
from dse.units import units


class FixedInputs:
    """Evaluator wrapper that sets some inputs of the wrapped evaluator to fixed values.

    The inputs need not be parameters of the space.
    """

    def __init__(self, evaluator: Evaluator, values: Mapping[str, Value]) -> None:
        self.reads = evaluator.reads - values.keys()
        self.optional = evaluator.optional - values.keys()
        self.units: Mapping[str, str] = {
            n: unit for n, unit in evaluator.units.items() if n not in values
        }
        self.provides = evaluator.provides
        self.kind = evaluator.kind
        self.version = evaluator.version
        self.missing = missing_reason(evaluator)
        self.reads_by_metric = {
            name: reads - values.keys() for name, reads in inputs_by_metric(evaluator).items()
        }
        self.formulas = formulas_of(evaluator)
        self.written: Mapping[str, Expression] | None = written_formulas_of(evaluator)
        self.starts = started_programs(evaluator)
        self.absent_metrics = absent_metrics(evaluator)
        self.parts: Mapping[str, Separable] = {
            metric: one
            if one.features is None
            else replace(one, features=partial(_fixed_features, one.features, dict(values)))
            for metric, one in declared_parts(evaluator).items()
        }
        self.evaluator = evaluator
        self.values = values
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

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hashes of the weights that this machine trains for the wrapped evaluator."""
        return weights_trained_for(self.evaluator)

    def test_evaluator(self) -> Evaluator | None:
        """Return the test-split evaluator of the wrapped evaluator, with the same fixed values.

        The result is ``None`` if the wrapped evaluator has no test split.
        """
        found = find_test_evaluator(self.evaluator)
        return None if found is None else FixedInputs(found, self.values)

    def evaluate(self, batch: Batch) -> Metrics:
        return self.evaluator.evaluate(_with_values(batch, self.values))

    def _deployed_model(self, design: Mapping[str, Value]) -> DeployedModel:
        assert isinstance(self.evaluator, HasDeployedModel)
        return self.evaluator.deployed_model({**design, **self.values})

    def _model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        assert isinstance(self.evaluator, StatesModelErrors)
        return self.evaluator.model_errors(_with_values(batch, self.values))


def _with_values(batch: Batch, values: Mapping[str, Value]) -> Batch:
    """Return a batch with the same value of each of these inputs in all designs."""
    same = np.zeros(len(batch), dtype=np.int64)
    fixed = {name: Column.coded((value,), same) for name, value in values.items()}
    return batch.with_columns(fixed)


def _fixed_features(
    features: Callable[[Batch], Floats], values: Mapping[str, Value], batch: Batch
) -> Floats:
    return features(_with_values(batch, values))


def reads_any(evaluator: Evaluator, name: str) -> bool:
    """Return whether the evaluator has an input of this name, required or optional."""
    return bool({name, EVERYTHING} & (evaluator.reads | evaluator.optional))


def reading_of(evaluator: Evaluator, name: str, given: Scalar) -> Value:
    """Convert the fixed value of an input from the study file to the evaluator's unit.

    Raises:
        SpecError: the value's unit has another dimension.
    """
    if not isinstance(given, str) or units.quantity(given) is None:
        return given
    unit = evaluator.units.get(name, COHERENT)
    if unit == COHERENT:
        return amount(given).value
    try:
        return amount(given, unit).value / units.factor(unit)
    except SpecError as error:
        raise SpecError(f"{name}: {error.problem}", hint=error.hint) from error
