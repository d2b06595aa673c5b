"""Claims of papers in a study file: parsing, checks, and comparison with the study's trials."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dse.core.batch import Column
from dse.core.design import Design
from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.expressions.parser import ARGUMENTS, parse
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Compare, Node, Number, children
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Mask
from dse.errors import DseError, SpecError, StudyError, nearest
from dse.schema.models import ClaimSpec, EvaluatorSpec, FindingSpec
from dse.schema.study.objectives import in_coherent_units, single
from dse.schema.study.print_figure import PrintFigure, figure_of, hides_figure, is_nothing
from dse.schema.study.trial_statistics import FUNCTIONS, PICKING, TrialStatistic
from dse.schema.yaml.source import SourceDocument
from dse.schema.yaml.validation import ErrorCollector
from dse.units import units
from dse.units.dimensions import TEXT, unit_of

OURS = "ours"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim of a paper or finding of the study, parsed for comparison with the study's trials.

    ``formula`` computes the study's own number (``ours``) from the trial statistics in
    ``gathered``, and ``accept`` is the acceptance rule over the name ``ours``; both use coherent
    units. ``figure`` is the published figure, in ``unit``; ``None`` where no number is published.
    """

    spec: ClaimSpec | FindingSpec
    formula: Expression
    gathered: Mapping[str, TrialStatistic]
    unit: str
    accept: Expression | None
    figure: PrintFigure | None = None

    def ours(self, problem: Problem, trials: Sequence[Trial]) -> float:
        """Compute the study's number for comparison with the claim, in ``unit``.

        Raises:
            StudyError: the trials do not yield a finite number.
        """
        columns = {
            name: Column.of([one.value(problem, trials)]) for name, one in self.gathered.items()
        }
        value = float(self.formula.values(columns, 1).values[0])
        if not math.isfinite(value):
            raise StudyError(f"{self.spec.ours!r} comes to {value:g}")
        return value / units.factor(self.unit)

    def holds(self, ours: float) -> bool | None:
        """Return whether ``ours`` (the study's number) fulfils ``accept``; ``None`` without it."""
        return None if self.accept is None else bool(self._accepts([ours])[0])

    def agrees(self, ours: float) -> bool | None:
        """Return whether the study's number agrees with the published figure.

        It agrees within 10 % of the figure. If ``accept`` is a window around the figure of no more
        than a factor of two, any number in the window agrees as well. If ``accept`` excludes the
        figure, no number agrees. The result is ``None`` if no figure was published.
        """
        if self.figure is None or self.accept is None:
            return None
        if not self._accepts(self.figure.points()).any():
            return False
        around = not self._accepts(self.figure.outside()).any()
        return self.figure.is_met(ours) or (around and bool(self._accepts([ours])[0]))

    def _accepts(self, ours: Sequence[float] | Floats) -> Mask:
        assert self.accept is not None
        column = Column.of((np.asarray(ours) * units.factor(self.unit)).tolist())
        return self.accept.holds({OURS: column}, len(ours), unknown=False)


def claims_of(
    specs: Sequence[ClaimSpec | FindingSpec],
    reader: ClaimReader,
    source: SourceDocument,
    mistakes: ErrorCollector,
) -> tuple[Claim, ...]:
    """Return the valid claims and findings of a study file; errors are collected."""
    found = []
    for key, kind in (("reproduces", ClaimSpec), ("finds", FindingSpec)):
        for place, spec in enumerate(one for one in specs if isinstance(one, kind)):
            guarded = _Guarded(mistakes, source, [key, place])
            claim = _claim(spec, reader, guarded)
            found += [claim] if claim is not None else []
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Runner of checks that collects their errors, with each claim's location in the file."""

    mistakes: ErrorCollector
    source: SourceDocument
    path: Sequence[str | int]

    def __call__(self, part: str, make: Callable[[], Any]) -> Any:  # Any: the result of ``make``
        try:
            return make()
        except DseError as error:
            self.mistakes.add(error, self.source.place([*self.path, part]))
            return None


def _claim(spec: ClaimSpec | FindingSpec, reader: ClaimReader, guarded: _Guarded) -> Claim | None:
    read = guarded("ours", lambda: reader.ours(spec.ours))
    if read is None:
        return None
    formula, gathered, unit = read
    accept = None
    if spec.accept is not None:
        accept = guarded("accept", lambda: accepting(spec.accept or "", unit))
    figure = None
    if reader.strict:
        figure = guarded("published", lambda: _checked_figure(spec, unit))
        rule = spec.accept
        if accept is not None and rule is not None:
            guarded("accept", lambda: check_window(spec, parse(rule, ARGUMENTS)))
    else:
        figure = _kept_figure(spec, unit)
    return Claim(
        spec=spec, formula=formula, gathered=gathered, unit=unit, accept=accept, figure=figure
    )


def _checked_figure(spec: ClaimSpec | FindingSpec, unit: str) -> PrintFigure | None:
    figure = figure_of(spec.published, unit)
    check_figure(spec, figure)
    return figure


def _kept_figure(spec: ClaimSpec | FindingSpec, unit: str) -> PrintFigure | None:
    """Return the published figure of a claim in a stored study; ``None`` if invalid.

    An invalid figure raises no error, because older versions did not check it.
    """
    try:
        return figure_of(spec.published, unit)
    except SpecError:
        return None


def accepting(text: str, unit: str) -> Expression:
    """Parse the acceptance rule of a claim, with literals in coherent units.

    Args:
        text: the rule.
        unit: the unit of ``ours``.

    Raises:
        SpecError: the text is not a rule, has names other than ``ours``, or mixes units.
    """
    rule = parse(text, ARGUMENTS)
    check_ours(rule)
    if not syntax.is_truth(rule.node) or isinstance(rule.node, syntax.Name):
        raise SpecError(f"{text!r} accepts nothing", hint="write a comparison, such as 'ours < 1'")
    unit_of(rule, {OURS: unit})
    return rule.resolve_units(units.factor)


def check_ours(rule: Expression) -> None:
    """Raise SpecError unless ``ours`` (the study's number) is the only name in the rule."""
    for name in syntax.names_in(rule.node):
        if name.name != OURS:
            raise SpecError(f"'accept' may use only the name 'ours', not {name.name!r}")
    if OURS not in rule.names:
        raise SpecError(f"{rule.text!r} does not use 'ours'", hint="such as 'ours < 1'")


@dataclass(frozen=True, kw_only=True)
class ClaimReader:
    """Parser of the formulas under ``ours``, which compute a number from the study's trials.

    Args:
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
        designs: all baselines, by name or index.
        judging: metrics on test data, by which no trial may be selected.
        strict: whether published figures and windows are checked too; false for a stored study,
            which must stay readable.
    """

    known: Mapping[str, str]
    lists: Mapping[str, Listing]
    designs: Mapping[str | int, Design] = field(default_factory=dict)
    judging: frozenset[str] = frozenset()
    strict: bool = True

    def ours(self, text: str) -> tuple[Expression, Mapping[str, TrialStatistic], str]:
        """Parse a formula over trials, such as ``least(chip.energy) / 2``.

        The result is the formula with a name in place of each trial statistic, the statistics by
        these names, and the formula's unit.

        Raises:
            SpecError: the text is not a formula, or is not computable from the study's trials.
        """
        found: dict[str, TrialStatistic] = {}
        node = self._outer(parse(text, {**ARGUMENTS, **FUNCTIONS}).node, found)
        if not found:
            raise SpecError(
                f"{text!r} reads no trial", hint=f"use a function of: {', '.join(FUNCTIONS)}"
            )
        formula = Expression(text, node)
        unit = _cancel_unit(unit_of(formula, {name: one.unit for name, one in found.items()}))
        if syntax.is_truth(node) and not isinstance(node, syntax.Name):
            raise SpecError(
                f"{text!r} is a rule and no quantity", hint="put conditions under 'accept'"
            )
        return formula.resolve_units(units.factor), found, unit

    def _outer(self, node: syntax.Node, found: dict[str, TrialStatistic]) -> syntax.Node:
        """Replace each trial statistic in the formula by a new name; add it to ``found``."""
        if isinstance(node, syntax.Call) and node.function in FUNCTIONS:
            name = f"{node.function}#{len(found)}"
            found[name] = self._parse_statistic(node)
            return syntax.Name(name)
        if isinstance(node, syntax.Name):
            raise SpecError(
                f"{node.name!r} has a value for each design, not one for the study",
                hint=f"write least({node.name}), baseline({node.name}, NAME), ...",
            )
        own = syntax.children(node)
        return syntax.rebuilt(node, [self._outer(child, found) for child in own]) if own else node

    def _parse_statistic(self, call: syntax.Call) -> TrialStatistic:
        name, arguments = call.function, call.arguments
        if name == "hypervolume":
            return TrialStatistic(function=name)
        if name == "count":
            return TrialStatistic(function=name, parts=(self._condition(arguments[0]),))
        first, unit = self._quantity(arguments[0])
        if name == "baseline":
            design = self._baseline(arguments[1])
            return TrialStatistic(function=name, parts=(first,), unit=unit, baseline=design)
        if name == "spearman":
            return TrialStatistic(function=name, parts=(first, self._quantity(arguments[1])[0]))
        by = [self._quantity(arguments[1])[0]] if name in PICKING else []
        rest = [self._condition(one) for one in arguments[1 + len(by) :]]
        picks = [*by, *rest] if name in PICKING else [first, *rest]
        if name not in {"mean", "stderr"}:
            check_choice(name, [one for part in picks for one in part.names], self.judging)
        return TrialStatistic(function=name, parts=(first, *by, *rest), unit=unit)

    def _quantity(self, node: syntax.Node) -> tuple[Expression, str]:
        formula = self._inner(node)
        unit = unit_of(formula, self.known)
        if unit == TEXT:
            raise SpecError("a word is no quantity", hint="ask for a number")
        return in_coherent_units(formula, self.known), unit

    def _condition(self, node: syntax.Node) -> Expression:
        formula = self._inner(node)
        if not syntax.is_truth(formula.node):
            raise SpecError("a condition is required, not a quantity", hint="such as bits == 4")
        unit_of(formula, self.known)
        return in_coherent_units(formula, self.known)

    def _inner(self, node: syntax.Node) -> Expression:
        return single(Expression(format_node(node), node), self.known, self.lists)

    def _baseline(self, node: syntax.Node) -> tuple[str, Design]:
        name = node.name if isinstance(node, syntax.Name) else ""
        chosen = {key: one for key, one in self.designs.items() if isinstance(key, str)}
        if not chosen:
            hint = "baselines: {int8: {format: int8, rows: 16}}"
            raise SpecError("no baseline has a name", hint=hint)
        if name not in chosen:
            raise SpecError(f"there is no baseline {name!r}", hint=nearest(name, chosen))
        return name, chosen[name]


def _cancel_unit(unit: str) -> str:
    """Return the unit, or ``""`` for a dimensionless one such as bytes per bit; keep ``%``."""
    return "" if unit != "%" and units.same_dimension(unit, "") else unit


SIZED = ("exact", "held-out", "free")
"""Kinds of proof for which the size of the number must agree with the published figure."""

TEST = "test"
_OF_TEST = re.compile(r"(^|[._])test([._@]|$)")
_SIGNS = frozenset({"<", "<=", ">", ">="})


def check_figure(spec: ClaimSpec | FindingSpec, figure: PrintFigure | None) -> None:
    """Check that a claim has the published figure or text that its kind of proof requires.

    Raises:
        SpecError: nothing is published, or a number is required and ``published`` is text.
    """
    if isinstance(spec, FindingSpec) or spec.proof in ("identity", "not reproduced"):
        return
    if is_nothing(spec.published):
        words = "nothing" if spec.published is None else repr(spec.published)
        raise SpecError(
            f"the claim is compared with {words} as the published figure",
            hint="put a finding of this study under 'finds:', or use 'proof: identity' for an "
            "identity, which cannot fail",
        )
    if figure is None and spec.proof in SIZED:
        raise SpecError(
            f"{spec.published!r} is no figure, and 'proof: {spec.proof}' requires one",
            hint="write a number, [a, b] or '< 2 %'; for published text use 'proof: direction'",
        )
    if figure is None and hides_figure(spec.published):
        raise SpecError(
            f"the text {spec.published!r} contains a figure that 'ours' can be compared with",
            hint="write the figure alone, as 48, '12 %', [2, 48] or '< 2 %'; put text in 'note'",
        )


def check_window(spec: ClaimSpec | FindingSpec, rule: Expression) -> None:
    """Check that ``accept`` bounds the value of ``ours``, if the kind of proof requires it.

    Raises:
        SpecError: the rule tests only a sign, such as ``ours > 0`` or ``ours < 1``.
    """
    if spec.proof in SIZED and _is_bare_sign(rule):
        raise SpecError(
            f"{rule.text!r} tests a sign, and 'proof: {spec.proof}' requires a size",
            hint="use 'proof: direction', or a window around the published figure",
        )


def judging_metrics(
    metrics: Iterable[str], evaluators: Mapping[str, EvaluatorSpec]
) -> frozenset[str]:
    """Return the metrics that are computed on test data.

    These are the metrics of evaluators with the option value ``test``, and metrics whose name shows
    that they are computed on test data.

    Args:
        metrics: the names of all metrics, ``LABEL.METRIC``.
        evaluators: the evaluators by label.
    """
    labels = {name for name, one in evaluators.items() if TEST in one.options.values()}
    return frozenset(
        name
        for name in metrics
        if name.partition(".")[0] in labels or _OF_TEST.search(name) or ".test_" in name
    )


def check_choice(function: str, names: Iterable[str], judging: frozenset[str]) -> None:
    """Check that a claim does not select trials by a metric on test data.

    Args:
        function: the function that selects a trial, for the message.
        names: the metrics by which it selects.
        judging: the metrics on test data.

    Raises:
        SpecError: a metric on test data is among the names.
    """
    chosen = sorted(set(names) & judging)
    if chosen:
        raise SpecError(
            f"{function}(...) selects trials by {chosen[0]!r}, a metric on test data",
            hint=f"select by a metric on other data: where_most({chosen[0]}, search.accuracy), "
            "or name the trial as a baseline",
        )


def _is_bare_sign(rule: Expression) -> bool:
    """Return whether the rule has only inequalities with 0 or 1, so it tests only a direction."""
    nodes = list(_walk(rule.node))
    numbers = [one for one in nodes if isinstance(one, Number)]
    operators = {sign for one in nodes if isinstance(one, Compare) for sign in one.operators}
    bare = all(one.value == 0 or (one.value == 1 and not one.unit) for one in numbers)
    return bare and operators <= _SIGNS


def _walk(node: Node) -> Iterable[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)
