"""Units in a study file: which quantities need one, and in which units metrics are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dse.core.expressions.expression import Expression
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Compare, Number, names_in
from dse.core.objective import Objective
from dse.core.problem import Source
from dse.errors import SpecError
from dse.schema.models import StudySpec
from dse.schema.yaml.error_collector import ErrorCollector
from dse.schema.yaml.source import Path_, SourceDocument
from dse.units import units

_BUDGET = {"time": "s", "cost": "$", "price": "$/h"}

_OPTIONS = {"timeout": "s"}
"""Options of evaluators and executors that are quantities in every plug-in, with their units."""


def written_units(rules: Iterable[Expression]) -> dict[str, str]:
    """Return the unit of the bound on each constrained expression: ``{'chip.time': 'day'}``.

    Args:
        rules: rules over metrics; literals still have the units that the user wrote.
    """
    found: dict[str, str] = {}
    for rule in rules:
        operands = rule.node.operands if isinstance(rule.node, Compare) else ()
        for pair in pairwise(operands):
            for bounded, bound in (pair, pair[::-1]):
                if isinstance(bound, Number) and bound.unit and names_in(bounded):
                    found[_bare(format_node(bounded))] = bound.unit
    return found


def with_objective_unit(objective: Objective, written: Mapping[str, str]) -> Objective:
    """Return the objective with the unit for display: its own, or that of a bound, if any."""
    own = objective.written or _other(objective.unit, objective.text, written)
    return replace(objective, written=own)


def check_display(objective: Objective, unit: str) -> str:
    """Return the unit in which an objective asks to be shown.

    Args:
        objective: the objective, with the unit of its values.
        unit: the unit after ``display:``; empty if there is none.

    Raises:
        SpecError: there is no such unit, or it has another dimension than the objective.
    """
    if unit and not units.same_dimension(unit, objective.unit):
        raise SpecError(
            f"{objective.text} is in {objective.unit or 'no unit'}, and cannot be shown in {unit}",
            hint="a unit of the same dimension, such as 'days' for seconds",
        )
    return unit


def with_source_units(
    sources: Mapping[str, Source], written: Mapping[str, str]
) -> dict[str, Source]:
    """Return the metrics' sources, each with the unit in which constraints bound its metric.

    The unit is used for display.
    """
    return {
        name: replace(
            one, metric=replace(one.metric, written=_other(one.metric.unit, name, written))
        )
        for name, one in sources.items()
    }


def _other(unit: str, text: str, written: Mapping[str, str]) -> str:
    """Return the unit in which constraints bound the expression ``text``.

    The result is empty if there is no bound, or its unit is the same or of another dimension.
    """
    found = written.get(_bare(text), "")
    return found if found and found != unit and units.same_dimension(found, unit) else ""


def _bare(text: str) -> str:
    return "".join(text.split())


def check_units(
    spec: StudySpec,
    source: SourceDocument,
    mistakes: ErrorCollector,
    objectives: Sequence[Objective],
) -> None:
    """Collect an error for each number without a unit where one is required.

    ``time: 60`` must be ``time: 60 s``. Zero and dimensionless quantities need no unit.

    Args:
        spec: the study file.
        source: the document, for the line numbers of errors.
        mistakes: collector of the errors.
        objectives: the study's objectives, for the units of the reference point.
    """
    for path, value, unit in _list_quantities(spec, objectives):
        bare = isinstance(value, int | float) and not isinstance(value, bool) and value != 0
        if bare and not units.same_dimension(unit, ""):
            key = path[-1]
            error = SpecError(
                f"{key} is the bare number {value:g}, and it is a quantity in {unit}",
                hint=f"give it a unit: '{value:g} {unit}'",
            )
            mistakes.add(error, source.place(path))


def _list_quantities(
    spec: StudySpec, objectives: Sequence[Objective]
) -> Iterator[tuple[Path_, Any, str]]:
    for key, unit in _BUDGET.items():
        yield ("budget", key), getattr(spec.budget, key), unit
    for name, one in spec.evaluators.items():
        yield ("evaluators", name, "resources", "memory"), one.resources.memory, "B"
        for key, unit in _OPTIONS.items():
            yield ("evaluators", name, key), one.options.get(key), unit
    for key, unit in _OPTIONS.items():
        yield ("executor", key), spec.executor.options.get(key), unit
    yield ("storage_patience",), spec.storage_patience, "s"
    by_name = {name: one.unit for one in objectives for name in (one.label, one.text) if name}
    plain = {"".join(name.split()): unit for name, unit in by_name.items()}
    for text, value in (spec.reference or {}).items():
        yield ("reference", text), value, plain.get("".join(text.split()), "")
