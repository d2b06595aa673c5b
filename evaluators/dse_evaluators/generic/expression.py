"""Metrics that are formulas over parameters and over the metrics of other evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.expression import Compare, Expression, Member, Name, Node, Text, children
from dse.core.lists import expanded, listings
from dse.core.metric import Kind, Metrics
from dse.core.parser import parse
from dse.core.values import Floats
from dse.errors import DseError, PluginError, SpecError, nearest, raise_all
from dse.protocols import COHERENT
from dse.units import factor
from dse_evaluators.generic.options import metrics_of

_KEYS = ("formula", "unit")


class Formulas:
    """Computes formulas in coherent SI and tells each in its declared unit.

    ``formulas`` holds them as they were written, with the units of their literals, so that their
    dimension can be checked against the declared unit where the units of all names are known.

    Args:
        metrics: for each metric its formula and unit, such as
            ``{edp: {formula: chip.energy * chip.latency, unit: mJ s}}``; without a unit, a bare
            number.
    """

    optional: frozenset[str] = frozenset()
    kind: Kind = "modelled"
    version = "1"

    def __init__(self, *, metrics: Mapping[str, Mapping[str, str]]) -> None:
        told = _checked(metrics)
        self.provides = metrics_of({name: one.get("unit", "") for name, one in told.items()})
        self.formulas = _all_parsed({name: one["formula"] for name, one in told.items()})
        self.reads = frozenset[str]().union(*(f.names for f in self.formulas.values()))
        self.reads_by_metric = {name: f.names for name, f in self.formulas.items()}
        words = frozenset[str]().union(*(_words(f.node) for f in self.formulas.values()))
        self.units: Mapping[str, str] = dict.fromkeys(sorted(self.reads - words), COHERENT)

    def evaluate(self, batch: Batch) -> Metrics:
        inputs = dict(batch.columns)
        inputs |= {n: _nowhere(len(batch)) for n in self.reads if n not in batch}
        columns: dict[str, Floats] = {}
        undefined: dict[str, Mapping[int, str]] = {}
        lists = listings(batch.names)
        for name, written in self.formulas.items():
            formula = expanded(written, lists, {}).resolved(factor)
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
    """Why a formula has no value, with what it read."""
    read = [f"{word} = {_seen(inputs[word], row)}" for word in sorted(formula.names)]
    return f"{name} is {value}: {formula.text!r} with {', '.join(read) or 'no name in it'}"


def _seen(column: Column, row: int) -> str:
    if column.absent is not None and column.absent[row]:
        return "absent"
    return str(column.values[row])


def _words(node: Node) -> frozenset[str]:
    """The names that a formula compares with texts: what they stand for has no unit."""
    own = children(node)
    found = frozenset[str]().union(*(_words(child) for child in own))
    if isinstance(node, Compare | Member) and any(isinstance(child, Text) for child in own):
        found |= {child.name for child in own if isinstance(child, Name)}
    return found


def _nowhere(size: int) -> Column:
    return Column(np.zeros(size), np.ones(size, dtype=bool))


def _all_parsed(texts: Mapping[str, str]) -> dict[str, Expression]:
    """The formulas by name. Raises SpecErrors with the mistakes of all of them."""
    formulas: dict[str, Expression] = {}
    errors: list[DseError] = []
    for name, text in texts.items():
        try:
            formulas[name] = _parsed(name, text)
        except SpecError as error:
            errors.append(error)
    raise_all(errors)
    return formulas


def _parsed(name: str, text: str) -> Expression:
    try:
        formula = parse(text)
        formula.resolved(factor)
    except SpecError as error:
        part = ["metrics", name]
        raise SpecError(f"{name}: {error.problem}", hint=error.hint, part=part) from error
    return formula


def _checked(metrics: Any) -> Mapping[str, Mapping[str, str]]:
    """The metrics, each with a formula and nothing unknown.

    Raises:
        PluginError: what was given is of another form.
    """
    shape = "write metrics: {edp: {formula: chip.energy * chip.latency, unit: mJ s}}"
    if not isinstance(metrics, Mapping) or not metrics:
        raise PluginError(f"metrics is {metrics!r}", hint=shape)
    for name, one in metrics.items():
        part = ["metrics", str(name)]
        if not isinstance(one, Mapping) or "formula" not in one:
            raise PluginError(f"the metric {name!r} has no formula", hint=shape, part=part)
        unknown = next((key for key in one if key not in _KEYS), None)
        if unknown is not None:
            raise PluginError(
                f"the metric {name!r} has no {unknown!r}",
                hint=nearest(str(unknown), _KEYS),
                part=part,
            )
        if not isinstance(one["formula"], str):
            problem = f"the formula of {name!r} is {one['formula']!r}"
            raise PluginError(problem, hint=shape, part=part)
    return metrics
