"""Named baselines: ``baseline(chip.energy, int8)`` is a number, the same for every design.

``ratio(chip.energy, int8)`` is ``chip.energy / baseline(chip.energy, int8)``. What is modelled is
folded when the file is read; what is measured once the baseline's trial is done, which is the
first: until then the number is unknown, and so is every objective that reads it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.expression import Binary, Call, Expression, Name, Node, Number, map_nodes
from dse.core.expressions.list_rules import Listing
from dse.core.metric import Fault
from dse.core.problem import Source
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.evaluation.pipeline import Pipeline
from dse.schema.models import Scalar
from dse.schema.study.objectives import in_coherent_units, single
from dse.schema.yaml.errors import HiddenError
from dse.units import units
from dse.units.dimensions import TEXT, unit_of

FUNCTIONS: Mapping[str, tuple[int, int | None]] = {"baseline": (2, 2), "ratio": (2, 2)}
"""The functions of baselines: the fewest and the most arguments of each."""


class Baselines:
    """The named baselines of a study, with what is known of each; ``awaited`` are those to measure.

    Args:
        designs: by name.
        metrics: what is known of each by its name, or why it has none.
        sources: every metric of the study.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
        lost: the names of those that a mistake makes unknown.
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
        """The formula with the numbers of the baselines in it.

        Raises:
            SpecError: there is no such baseline, or what is asked of it is no quantity.
        """
        return Expression(formula.text, map_nodes(formula.node, self._written))

    def _written(self, node: Node) -> Node:
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
        """Return the requested number of the baseline, in its unit; NaN while it is unknown."""
        formula = single(Expression(name, asked), self._known, self._lists)
        unit = unit_of(formula, self._known)
        if unit == TEXT:
            raise SpecError("a word of a baseline is no quantity", hint="ask for a number of it")
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
            told = "nothing" if absent else f"{value:g}"
            raise SpecError(
                f"for the baseline {name!r} this comes to {told}",
                hint="nothing can be told relative to that",
            )
        return value


def index_baselines(
    told: Sequence[Mapping[str, Scalar]] | Mapping[str, Mapping[str, Scalar]],
) -> dict[str | int, Mapping[str, Scalar]]:
    """Return each baseline by its name, or by its place in a list without names."""
    pairs: Iterable[tuple[str | int, Mapping[str, Scalar]]]
    pairs = told.items() if isinstance(told, Mapping) else enumerate(told)
    return dict(pairs)


def check_name(name: str | int) -> None:
    """Check that a formula can contain the name. Raises SpecError if not."""
    if isinstance(name, str) and not name.isidentifier():
        raise SpecError(
            f"{name!r} cannot stand in a formula", hint="letters, digits and '_', such as int8"
        )


def told_baselines(
    designs: Mapping[str | int, Design],
    pipeline: Pipeline,
    measured: Mapping[str, Mapping[str, float]],
    *,
    known: Mapping[str, str],
    lists: Mapping[str, Listing],
) -> Baselines:
    """The baselines that have a name, with all that is known of them.

    Args:
        designs: all baselines, by name or place.
        pipeline: the study's evaluators; what is modelled is computed.
        measured: what was measured of each, by name.
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
