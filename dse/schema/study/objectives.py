"""Construction of objectives, limits and the reference point from formulas, and their units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing, Table, expand_lists
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Compare, Number, names_in
from dse.core.metric import Goal
from dse.core.objective import Limit, Objective
from dse.core.parameter import Parameter
from dse.core.problem import Source
from dse.errors import SpecError, nearest
from dse.schema.models import Quantity, StudySpec
from dse.schema.space.parameters.domains import amount
from dse.schema.space.rule_parser import check_keys, check_words
from dse.schema.yaml.source import Path_, SourceDocument
from dse.schema.yaml.validation import ErrorCollector, HiddenError
from dse.units import units
from dse.units.dimensions import TEXT, in_coherent, unit_of


class SymbolTable(dict[str, str]):
    """Unit of every metric and parameter, by name.

    ``hides`` is true for a name that may be unknown only because of an error reported elsewhere.
    Formulas may look up the tables in ``data``. The domains in ``parameters`` are for the check
    that a formula compares a parameter with values that it can take. ``absent`` maps a metric that
    an evaluator does not provide to the reason and the fix.
    """

    hides: Callable[[str], bool] = staticmethod(lambda _: False)
    data: Mapping[str, Table] = MappingProxyType({})
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    absent: Mapping[str, tuple[str, str]] = MappingProxyType({})

    def check_seen(self, formula: Expression) -> None:
        """Raise HiddenError if a name may be unknown because of an error reported elsewhere."""
        names = [n for n in sorted(formula.names) if n not in self and not self.is_data(n)]
        hidden = next((name for name in names if self.hides(name)), None)
        if hidden is not None:
            raise HiddenError(hidden)

    def is_data(self, name: str) -> bool:
        """Return whether the name is that of a data table, or of a table's column."""
        return name in self.data or name.rpartition(".")[0] in self.data


def objective_of(
    formula: Expression, goal: Goal, known: Mapping[str, str], lists: Mapping[str, Listing]
) -> Objective:
    """Build the objective from a formula over metrics.

    Args:
        formula: the parsed formula.
        goal: whether to minimize or maximize it.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.

    Raises:
        SpecError: a name is unknown, the units do not match, or the value is not a quantity.
    """
    text = formula.text
    expression = single(formula, known, lists)
    node = expression.node
    unit = known[node.name] if isinstance(node, syntax.Name) else unit_of(expression, known)
    if unit == TEXT:
        raise SpecError(f"{text!r} is text, and cannot be minimized or maximized")
    if syntax.is_truth(node) and not isinstance(node, syntax.Name):
        raise SpecError(
            f"{text!r} is a rule and no quantity", hint="rules over metrics go under 'constraints'"
        )
    return Objective(
        expression=in_coherent_units(expression, known),
        goal=goal,
        unit=unit,
        scale=units.factor(unit),
    )


def check_new(objective: Objective, before: Sequence[Objective]) -> None:
    """Check that no earlier objective has the same goal and formula.

    Raises:
        SpecError: an earlier objective has the same goal and formula.
    """
    if any((one.goal, one.text) == (objective.goal, objective.text) for one in before):
        problem = f"'{objective.goal}: {objective.text}' stands twice"
        raise SpecError(problem, hint="leave one of them out")


def check_label(label: str, others: Sequence[Objective], known: Mapping[str, str]) -> None:
    """Raise SpecError if a label is the name of a metric, a parameter or another objective."""
    if label and label in {*known, *(other.label for other in others)}:
        raise SpecError(
            f"{label!r} is already the name of another value",
            hint="use another name after 'label:'",
        )


def limits_of(
    formula: Expression, known: Mapping[str, str], lists: Mapping[str, Listing]
) -> Iterator[Limit]:
    """Yield a limit for each comparison in a constraint on metrics: two for ``a <= b <= c``.

    Raises:
        SpecError: the rule is not a comparison by <=, <, >= or >; a name is unknown; the units do
            not match.
    """
    text = formula.text
    expression = single(formula, known, lists)
    node = expression.node
    if not isinstance(node, syntax.Compare) or not set(node.operators) <= {"<", "<=", ">", ">="}:
        raise SpecError(
            f"{text!r} is no limit", hint="compare with <=, <, >= or >: 'chip.area <= 20 mm2'"
        )
    unit_of(expression, known)
    coherent = in_coherent_units(expression, known).node
    assert isinstance(coherent, syntax.Compare)
    sides = zip(coherent.operands, coherent.operands[1:], strict=False)
    for operator, (left, right) in zip(coherent.operators, sides, strict=True):
        low, high = (left, right) if operator in ("<", "<=") else (right, left)
        slack = Expression(text, syntax.Binary("-", high, low))
        strict = operator in ("<", ">")
        yield Limit(text=text, slack=slack, scale=_size(low, high), strict=strict)


def reference_of(
    stated: Mapping[str, Quantity] | None, objectives: Sequence[Objective]
) -> tuple[float, ...] | None:
    """Return the hypervolume reference point, in the objectives' units and order.

    The result is ``None`` if the study states none.

    Raises:
        SpecError: a name is not an objective, an objective is missing, a unit does not match, or
            the value of an objective with a log scale is not positive.
    """
    if stated is None:
        return None
    texts = {_plain(o.text): o for o in objectives}
    labels = {o.label: _plain(o.text) for o in objectives if o.label}
    for text in stated:
        if text not in labels and _plain(text) not in texts:
            raise SpecError(
                f"{text!r} is not one of the objectives",
                hint=nearest(text, [o.name for o in objectives]),
            )
    given = {labels.get(text, _plain(text)): value for text, value in stated.items()}
    point = []
    for text, objective in texts.items():
        if text not in given:
            raise SpecError(f"the reference point lacks {objective.name!r}")
        value = amount(given[text], objective.unit).value / objective.scale
        if objective.log and value <= 0:
            raise SpecError(
                f"the reference point of {objective.name!r} is {given[text]}, which has no "
                "logarithm",
                hint="state a value above 0, or leave out 'scale: log'",
            )
        point.append(value)
    return tuple(point)


def single(
    formula: Expression, known: Mapping[str, str], lists: Mapping[str, Listing]
) -> Expression:
    """Return the formula with list members and table lookups expanded, after checking its names.

    Raises:
        SpecError: a name is unknown, or a parameter is compared with a value that it cannot take.
        HiddenError: a name is unknown because of an error reported elsewhere.
    """
    if not isinstance(known, SymbolTable):
        known = SymbolTable(known)
    known.check_seen(formula)
    expression = expand_lists(
        formula, lists, {n: t for n, t in known.data.items() if n not in known}
    )
    check_names(expression, known)
    check_words(expression.node, known.parameters)
    check_keys(expression.node, known.parameters)
    return expression


def check_names(expression: Expression, known: Mapping[str, str]) -> None:
    """Raise SpecError if a name in the formula is neither a metric nor a parameter."""
    for name in syntax.names_in(expression.node):
        if name.name in known:
            continue
        if isinstance(known, SymbolTable) and name.name in known.absent:
            reason, hint = known.absent[name.name]
            raise SpecError(f"there is no {name.name!r}: {reason}", hint=hint)
        raise SpecError(f"no evaluator provides {name.name!r}", hint=nearest(name.name, known))


def in_coherent_units(expression: Expression, known: Mapping[str, str]) -> Expression:
    """Return the formula with unit conversions, so that its value is in coherent units.

    It is evaluated with metrics and parameters in their own units.
    """
    factors = {name: units.factor(known[name]) for name in expression.names if known[name] != TEXT}
    return in_coherent(expression.resolve_units(units.factor), factors)


def _size(*sides: syntax.Node) -> float:
    """Return the magnitude of the constant side of a comparison; 1 without a constant.

    A limit's slack divided by this magnitude is a fraction of the bound.
    """
    for side in sides:
        if not syntax.names_in(side):
            value = abs(float(Expression("", side).values({}, 1).values[0]))
            if value > 0:
                return value
    return 1.0


def _plain(text: str) -> str:
    return "".join(text.split())


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
    """Return the objective with its display unit: its own, or that of a limit on its formula."""
    own = objective.written or _other(objective.unit, objective.text, written)
    return replace(objective, written=own)


def check_display(objective: Objective, unit: str) -> str:
    """Return the unit stated under ``display:`` after checking it; empty if there is none.

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
