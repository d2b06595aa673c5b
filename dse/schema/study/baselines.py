"""Named baselines in formulas: ``baseline(chip.energy, int8)`` is a constant of the study.

It is the metric ``chip.energy`` of the baseline design ``int8``; ``ratio(chip.energy, int8)`` is
``chip.energy / baseline(chip.energy, int8)``. Modelled metrics of a baseline are inserted when the
file is read. Measured metrics are inserted when the baseline's trial, which runs first, is done;
until then the number is NaN, and so is every objective that reads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.expressions.syntax import Binary, Call, Name, Node, Number, map_nodes
from dse.core.metric import Fault
from dse.core.problem import Source
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.evaluation.pipeline import Pipeline
from dse.schema.models import Scalar
from dse.schema.study.objectives import in_coherent_units, single
from dse.schema.yaml.error_collector import HiddenError
from dse.units import units
from dse.units.dimensions import TEXT, unit_of

FUNCTIONS: Mapping[str, tuple[int, int | None]] = {"baseline": (2, 2), "ratio": (2, 2)}
"""Functions of baselines, each with its minimum and maximum number of arguments."""


class Baselines:
    """Named baselines of a study and their metrics.

    ``awaited`` are the baselines with metrics that formulas read but that are not measured yet.

    Args:
        designs: the baselines' designs by name.
        metrics: the known metrics of each baseline by name, or the fault that prevents them.
        sources: every metric of the study.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
        lost: the names of baselines that are invalid.
    """

    def __init__(
        self,
        designs: Mapping[str, Design],
        metrics: Mapping[str, Mapping[str, float] | Fault],
        *,
        sources: Mapping[str, Source],
        known: Mapping[str, str],
        lists: Mapping[str, Listing],
        lost: Collection[str] = (),
    ) -> None:
        self._lost = lost
        self.awaited: dict[str, Design] = {}
        self._designs = designs
        self._metrics = metrics
        self._sources = sources
        self._known = known
        self._lists = lists

    def folded(self, formula: Expression) -> Expression:
        """Return the formula with ``baseline(...)`` as a number, ``ratio(...)`` as a quotient.

        Raises:
            SpecError: a baseline is unknown, or its value is not a finite nonzero quantity.
        """
        return Expression(formula.text, map_nodes(formula.node, self._write_out))

    def _write_out(self, node: Node) -> Node:
        if not isinstance(node, Call) or node.function not in FUNCTIONS:
            return node
        asked, named = node.arguments
        number = self._number(asked, self._name(named))
        return Binary("/", asked, number) if node.function == "ratio" else number

    def _name(self, node: Node) -> str:
        if isinstance(node, Name) and node.name in self._lost:
            raise HiddenError(node.name)
        if not self._designs and not self._lost:
            raise SpecError(
                "no baseline has a name", hint="baselines: {int8: {format: int8, rows: 16}}"
            )
        name = node.name if isinstance(node, Name) else ""
        if name not in self._designs:
            raise SpecError(f"there is no baseline {name!r}", hint=nearest(name, self._designs))
        return name

    def _number(self, asked: Node, name: str) -> Node:
        """Return a formula's value for the baseline as a literal; NaN until it is measured."""
        formula = single(Expression(name, asked), self._known, self._lists)
        unit = unit_of(formula, self._known)
        if unit == TEXT:
            raise SpecError("text of a baseline is not a quantity", hint="use a numeric metric")
        metrics = self._metrics[name]
        if isinstance(metrics, Fault):
            raise SpecError(f"the baseline {name!r} has no metrics: {metrics.reason}")
        values = {**self._designs[name], **metrics}
        if formula.names & self._sources.keys() <= values.keys():
            return _literal(self._value(formula, values, name) / units.factor(unit), unit)
        self.awaited[name] = self._designs[name]
        return _literal(math.nan, unit)

    def _value(self, formula: Expression, values: Mapping[str, Value], name: str) -> float:
        columns = {word: Column.of([values.get(word)]) for word in formula.names}
        result = in_coherent_units(formula, self._known).values(columns, 1)
        value = float(result.values[0])
        absent = result.absent is not None and bool(result.absent[0])
        if absent or not math.isfinite(value) or value == 0:
            text = "nothing" if absent else f"{value:g}"
            raise SpecError(
                f"for the baseline {name!r} this comes to {text}",
                hint="a reference value must be finite and not zero",
            )
        return value


def index_baselines(
    baselines: Sequence[Mapping[str, Scalar]] | Mapping[str, Mapping[str, Scalar]],
) -> dict[str | int, Mapping[str, Scalar]]:
    """Return the baselines of a study file as a mapping, by name or by index in a list."""
    pairs: Iterable[tuple[str | int, Mapping[str, Scalar]]]
    pairs = baselines.items() if isinstance(baselines, Mapping) else enumerate(baselines)
    return dict(pairs)


def check_name(name: str | int) -> None:
    """Raise SpecError unless a baseline's name is an identifier, so that formulas can use it."""
    if isinstance(name, str) and not name.isidentifier():
        raise SpecError(
            f"{name!r} cannot stand in a formula", hint="letters, digits and '_', such as int8"
        )


def build_baselines(
    designs: Mapping[str | int, Design],
    pipeline: Pipeline,
    measured: Mapping[str, Mapping[str, float]],
    *,
    known: Mapping[str, str],
    lists: Mapping[str, Listing],
) -> Baselines:
    """Build the named baselines with their metrics; modelled metrics are computed.

    Args:
        designs: all baselines, by name or index.
        pipeline: the study's evaluators; modelled metrics are computed.
        measured: measured metrics of each baseline, by name.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
    """
    chosen = {name: design for name, design in designs.items() if isinstance(name, str)}
    found = {}
    for name, design in chosen.items():
        got = pipeline.known(Batch.of([design]))
        modelled = {metric: float(column[0]) for metric, column in got.columns.items()}
        found[name] = got.faults.get(0) or {**modelled, **measured.get(name, {})}
    return Baselines(chosen, found, sources=pipeline.sources, known=known, lists=lists)


def _literal(value: float, unit: str) -> Node:
    return Binary("*", Number(value), Number(1, unit))
