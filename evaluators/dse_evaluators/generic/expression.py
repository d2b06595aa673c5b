"""The evaluator ``expression``: formulas over parameters and other evaluators' metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import base
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing, Table, expand_lists, listings
from dse.core.expressions.parser import parse
from dse.core.metric import Kind, Metrics
from dse.core.values import Floats
from dse.errors import DseError, PluginError, SpecError, nearest, raise_all
from dse.protocols import COHERENT
from dse.units.units import factor
from dse_evaluators.generic.options import metrics_of

_KEYS = ("formula", "unit")


class Formulas:
    """Evaluator of formulas, computed in coherent SI units and reported in their declared units.

    ``formulas`` keeps the units of literals as written, so that the dimension of a formula can be
    checked against the declared unit if the units of all its names are known.

    Args:
        metrics: the formula and the unit of each metric, such as
            ``{edp: {formula: chip.energy * chip.latency, unit: mJ s}}``; without a unit, the metric
            is dimensionless.

    Example:
        options: {metrics: {edp: {formula: energy * latency, unit: mJ s}}}
        parameters: {energy: {ordinal: [1, 2], unit: mJ}, latency: {ordinal: [3, 4], unit: ms}}
    """

    optional: frozenset[str] = frozenset()
    kind: Kind = "modelled"
    pure = True
    version = "1"

    def __init__(self, *, metrics: Mapping[str, Mapping[str, str]]) -> None:
        checked = _check_metrics(metrics)
        self.provides = metrics_of({name: one.get("unit", "") for name, one in checked.items()})
        self.formulas = _parse_formulas({name: one["formula"] for name, one in checked.items()})
        self.written: Mapping[str, Expression] | None = None
        self.reads_by_metric = {name: one.names for name, one in self.formulas.items()}
        self.reads = frozenset[str]().union(*self.reads_by_metric.values())
        self.units: Mapping[str, str] = dict.fromkeys(sorted(self.reads), COHERENT)

    def over(self, lists: Mapping[str, Listing], data: Mapping[str, Table]) -> Formulas:
        """Return a copy whose formulas have the space's list parameters and data tables expanded.

        Raises:
            SpecErrors: formulas use lists or data incorrectly.
        """
        made = copy(self)
        written: dict[str, Expression] = {}
        errors: list[DseError] = []
        for name, formula in self.formulas.items():
            try:
                written[name] = expand_lists(formula, lists, data)
            except SpecError as error:
                part = ["metrics", name]
                errors.append(SpecError(f"{name}: {error.problem}", hint=error.hint, part=part))
        raise_all(errors)
        made.written = written
        made.reads_by_metric = {
            name: frozenset(map(base, one.names)) | (self.formulas[name].names & lists.keys())
            for name, one in written.items()
        }
        made.reads = frozenset[str]().union(*made.reads_by_metric.values())
        made.units = dict.fromkeys(sorted(made.reads), COHERENT)
        return made

    def evaluate(self, batch: Batch) -> Metrics:
        inputs = dict(batch.columns)
        inputs |= {n: _nowhere(len(batch)) for n in self.reads if n not in batch}
        columns: dict[str, Floats] = {}
        undefined: dict[str, Mapping[int, str]] = {}
        lists = listings(batch.names)
        for name, written in (self.written or self.formulas).items():
            formula = expand_lists(written, {} if self.written else lists, {}).resolve_units(factor)
            result = formula.values(inputs, len(batch))
            if result.values.dtype.kind not in "biuf":
                seen = result.values[0]
                raise SpecError(f"{name} is {seen!r}, which is no number: {formula.text!r}")
            values = result.values.astype(np.float64) / factor(self.provides[name].unit)
            absent = np.zeros(len(batch), dtype=bool) if result.absent is None else result.absent
            columns[name] = np.where(absent, np.nan, values)
            undefined[name] = {
                row: _reason(name, formula, columns[name][row], inputs, row)
                for row in np.flatnonzero(~np.isfinite(columns[name])).tolist()
            }
        return Metrics(columns=columns, undefined=undefined)


def _reason(
    name: str, formula: Expression, value: float, inputs: Mapping[str, Column], row: int
) -> str:
    """Return the reason why a formula has no finite value, with the values of its inputs."""
    read = [f"{word} = {_seen(inputs[word], row)}" for word in sorted(formula.names)]
    return f"{name} is {value}: {formula.text!r} with {', '.join(read) or 'no name in it'}"


def _seen(column: Column, row: int) -> str:
    if column.absent is not None and column.absent[row]:
        return "absent"
    return str(column.values[row])


def _nowhere(size: int) -> Column:
    return Column(np.zeros(size), np.ones(size, dtype=bool))


def _parse_formulas(texts: Mapping[str, str]) -> dict[str, Expression]:
    """Return the parsed formulas by name; raise SpecErrors with the errors of all formulas."""
    formulas: dict[str, Expression] = {}
    errors: list[DseError] = []
    for name, text in texts.items():
        try:
            formulas[name] = _parse_formula(name, text)
        except SpecError as error:
            errors.append(error)
    raise_all(errors)
    return formulas


def _parse_formula(name: str, text: str) -> Expression:
    try:
        formula = parse(text)
        formula.resolve_units(factor)
    except SpecError as error:
        part = ["metrics", name]
        raise SpecError(f"{name}: {error.problem}", hint=error.hint, part=part) from error
    return formula


def _check_metrics(metrics: Any) -> Mapping[str, Mapping[str, str]]:
    """Check that each metric has a formula and no unknown key, and return the metrics.

    Raises:
        PluginError: the option is not a mapping from metrics to formulas and units.
    """
    shape = "write metrics: {edp: {formula: chip.energy * chip.latency, unit: mJ s}}"
    if not isinstance(metrics, Mapping) or not metrics:
        raise PluginError(f"metrics is {metrics!r}", hint=shape)
    errors = [error for name, one in metrics.items() for error in _mistakes(name, one, shape)]
    raise_all(errors)
    return metrics


def _mistakes(name: object, one: Any, shape: str) -> Iterator[PluginError]:
    """Yield an error for each mistake in the declaration of a metric."""
    part = ["metrics", str(name)]
    unknown = [key for key in one if key not in _KEYS] if isinstance(one, Mapping) else []
    for key in unknown:
        hint = nearest(str(key), _KEYS)
        yield PluginError(f"the metric {name!r} has no {key!r}", hint=hint, part=part)
    if not isinstance(one, Mapping) or "formula" not in one:
        if not unknown:
            hint = f"write {name}: {{formula: {one}}}" if isinstance(one, str | int) else shape
            yield PluginError(f"the metric {name!r} has no formula", hint=hint, part=part)
        return
    if not isinstance(one["formula"], str):
        problem = f"the formula of {name!r} is {one['formula']!r}"
        yield PluginError(problem, hint=shape, part=part)
