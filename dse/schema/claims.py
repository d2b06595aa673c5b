"""Claims of papers in a study file: each read, checked, and held against the study's trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse import units
from dse.core.batch import Column
from dse.core.design import Design
from dse.core.expression import (
    Call,
    Expression,
    Name,
    Node,
    children,
    is_truth,
    names_in,
    rebuilt,
)
from dse.core.lists import Listing, expanded
from dse.core.parser import ARGUMENTS, parse
from dse.core.printed import printed
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.dimensions import TEXT, unit_of
from dse.errors import DseError, SpecError, StudyError, nearest
from dse.schema.gathered import FUNCTIONS, Gathered
from dse.schema.mistakes import Mistakes
from dse.schema.models import ClaimSpec
from dse.schema.question import check_names, in_coherent_units
from dse.schema.source import Source

OURS = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim with all that it takes to judge it.

    ``formula`` is over the names of ``gathered``, in coherent units, as ``accept`` is over ours.
    """

    spec: ClaimSpec
    formula: Expression
    gathered: Mapping[str, Gathered]
    unit: str
    accept: Expression | None

    def ours(self, problem: Problem, trials: Sequence[Trial]) -> float:
        """The study's number, in ``unit``.

        Raises:
            StudyError: the trials do not yield it.
        """
        columns = {
            name: Column.of([one.value(problem, trials)]) for name, one in self.gathered.items()
        }
        value = float(self.formula.values(columns, 1).values[0])
        if not math.isfinite(value):
            raise StudyError(f"{self.spec.ours!r} comes to {value:g}")
        return value / units.factor(self.unit)

    def holds(self, ours: float) -> bool | None:
        """Whether the number, in ``unit``, is accepted; ``None`` where nobody says what is."""
        if self.accept is None:
            return None
        column = Column.of([ours * units.factor(self.unit)])
        return bool(self.accept.holds({OURS: column}, 1, unknown=False)[0])


def claims_of(
    specs: Sequence[ClaimSpec],
    reader: Reader,
    source: Source,
    mistakes: Mistakes,
) -> tuple[Claim, ...]:
    """The claims of a file; the mistakes of those that cannot be are kept with their lines."""
    found = []
    for place, spec in enumerate(specs):
        part = "ours"
        try:
            formula, gathered, unit = reader.ours(spec.ours)
            part = "accept"
            accept = None if spec.accept is None else accepting(spec.accept, unit)
            found.append(
                Claim(spec=spec, formula=formula, gathered=gathered, unit=unit, accept=accept)
            )
        except DseError as error:
            mistakes.add(error, source.place(["reproduces", place, part]))
    return tuple(found)


def accepting(text: str, unit: str) -> Expression:
    """The rule over ``ours``, in coherent units.

    Raises:
        SpecError: it is no rule, is of something else, or its units do not fit.
    """
    rule = parse(text, ARGUMENTS)
    check_ours(rule)
    if not is_truth(rule.node) or isinstance(rule.node, Name):
        raise SpecError(f"{text!r} accepts nothing", hint="a comparison, such as 'ours < 1'")
    unit_of(rule, {OURS: unit})
    return rule.resolved(units.factor)


def check_ours(rule: Expression) -> None:
    """Nothing, if the rule is over ours alone. Raises SpecError if not."""
    for name in names_in(rule.node):
        if name.name != OURS:
            raise SpecError(f"what is accepted is said of 'ours', not of {name.name!r}")
    if OURS not in rule.names:
        raise SpecError(f"{rule.text!r} does not ask for 'ours'", hint="such as 'ours < 1'")


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads what claims say of a study's trials.

    Args:
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
        designs: all baselines, by name or place.
    """

    known: Mapping[str, str]
    lists: Mapping[str, Listing]
    designs: Mapping[str | int, Design] = field(default_factory=dict)

    def ours(self, text: str) -> tuple[Expression, Mapping[str, Gathered], str]:
        """The formula over gathered numbers, these numbers, and the unit of the whole.

        Raises:
            SpecError: it is no formula, or says what the study cannot answer.
        """
        found: dict[str, Gathered] = {}
        node = self._outer(parse(text, {**ARGUMENTS, **FUNCTIONS}).node, found)
        if not found:
            raise SpecError(
                f"{text!r} reads no trial", hint=f"functions over trials: {', '.join(FUNCTIONS)}"
            )
        formula = Expression(text, node)
        unit = _cancelled(unit_of(formula, {name: one.unit for name, one in found.items()}))
        if is_truth(node) and not isinstance(node, Name):
            raise SpecError(
                f"{text!r} is a rule and no quantity", hint="'accept' says what is to hold"
            )
        return formula.resolved(units.factor), found, unit

    def _outer(self, node: Node, found: dict[str, Gathered]) -> Node:
        """The node with each number over trials as a name."""
        if isinstance(node, Call) and node.function in FUNCTIONS:
            name = f"{node.function}#{len(found)}"
            found[name] = self._gathered(node)
            return Name(name)
        if isinstance(node, Name):
            raise SpecError(
                f"{node.name!r} is a number of each design, not of the study",
                hint=f"least({node.name}), baseline({node.name}, NAME), ...",
            )
        own = children(node)
        return rebuilt(node, [self._outer(child, found) for child in own]) if own else node

    def _gathered(self, call: Call) -> Gathered:
        name, arguments = call.function, call.arguments
        if name == "hypervolume":
            return Gathered(function=name)
        if name == "count":
            return Gathered(function=name, parts=(self._condition(arguments[0]),))
        first, unit = self._quantity(arguments[0])
        if name == "baseline":
            design = self._baseline(arguments[1])
            return Gathered(function=name, parts=(first,), unit=unit, baseline=design)
        if name == "spearman":
            return Gathered(function=name, parts=(first, self._quantity(arguments[1])[0]))
        rest = tuple(self._condition(one) for one in arguments[1:])
        return Gathered(function=name, parts=(first, *rest), unit=unit)

    def _quantity(self, node: Node) -> tuple[Expression, str]:
        formula = self._inner(node)
        unit = unit_of(formula, self.known)
        if unit == TEXT:
            raise SpecError("a word is no quantity", hint="ask for a number")
        return in_coherent_units(formula, self.known), unit

    def _condition(self, node: Node) -> Expression:
        formula = self._inner(node)
        if not is_truth(formula.node):
            raise SpecError("a quantity stands where a condition is needed", hint="bits == 4")
        unit_of(formula, self.known)
        return in_coherent_units(formula, self.known)

    def _inner(self, node: Node) -> Expression:
        formula = expanded(Expression(printed(node), node), self.lists, {})
        check_names(formula, self.known)
        return formula

    def _baseline(self, node: Node) -> tuple[str, Design]:
        name = node.name if isinstance(node, Name) else ""
        chosen = {key: one for key, one in self.designs.items() if isinstance(key, str)}
        if not chosen:
            hint = "baselines: {int8: {format: int8, rows: 16}}"
            raise SpecError("no baseline has a name", hint=hint)
        if name not in chosen:
            raise SpecError(f"there is no baseline {name!r}", hint=nearest(name, chosen))
        return name, chosen[name]


def _cancelled(unit: str) -> str:
    """The unit; none where bytes over bits, or seconds over milliseconds, are left."""
    return "" if unit != "%" and units.same_dimension(unit, "") else unit
