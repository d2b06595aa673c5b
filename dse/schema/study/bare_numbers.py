"""Check for numbers without a unit where a study file requires a quantity with a unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dse.core.objective import Objective
from dse.errors import SpecError
from dse.schema.models import StudySpec
from dse.schema.yaml.errors import ErrorCollector
from dse.schema.yaml.source import Path_, SourceDocument
from dse.units import units

_BUDGET = {"time": "s", "cost": "$", "price": "$/h"}
_OPTIONS = {"timeout": "s"}
"""Options of evaluators and executors that are quantities in every plug-in, with their units."""


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
