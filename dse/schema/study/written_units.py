"""Display units of metrics and objectives: the units that the study's constraints use for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from dse.core.expressions.expression import Compare, Expression, Number, names_in
from dse.core.expressions.printer import format_node
from dse.core.objective import Objective
from dse.core.problem import Source
from dse.units import units


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
    """Return the objective with the unit of the constraint on it, if any, for display."""
    return replace(objective, written=_other(objective.unit, objective.text, written))


def with_source_units(
    sources: Mapping[str, Source], written: Mapping[str, str]
) -> dict[str, Source]:
    """Return the metrics' sources, with the unit of the constraint on each metric for display."""
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
