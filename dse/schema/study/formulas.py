"""Objectives and constraints of a study, also of its single scenarios, and baselines in them.

``baseline(chip.energy, int8)`` is a constant of the study: the metric ``chip.energy`` of the
baseline design ``int8``. ``ratio(chip.energy, int8)`` is ``chip.energy`` divided by it. Modelled
metrics of a baseline are inserted when the file is read. Measured metrics are inserted when the
baseline's trial, which runs first, is done; until then the number is NaN, and so is every objective
that reads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.expressions.parser import ARGUMENTS, parse
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import (
    Binary,
    Call,
    Name,
    Node,
    Number,
    children,
    map_nodes,
    rebuilt,
)
from dse.core.metric import Failure, Goal, Metric
from dse.core.objective import Limit, Objective
from dse.core.problem import Problem, Source
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.evaluation.pipeline import Pipeline
from dse.schema.models import Scalar, StudySpec
from dse.schema.study import scenarios
from dse.schema.study.objectives import (
    SymbolTable,
    in_coherent_units,
    limits_of,
    objective_of,
    single,
)
from dse.schema.study.scenarios import Scenarios
from dse.schema.yaml.validation import HiddenError
from dse.units import units
from dse.units.dimensions import TEXT, check_shares, unit_of

BASELINE_FUNCTIONS: Mapping[str, tuple[int, int | None]] = {"baseline": (2, 2), "ratio": (2, 2)}
"""Functions of baselines, each with its minimum and maximum number of arguments."""

FUNCTIONS = {**ARGUMENTS, **scenarios.FUNCTIONS, **BASELINE_FUNCTIONS}
"""Functions of objectives and constraints, each with its numbers of arguments."""


@dataclass(frozen=True, kw_only=True)
class FormulaParser:
    """Parser of a study's objectives and constraints, over metrics.

    Functions over scenarios such as ``worst`` and values of baselines are expanded.
    """

    scenarios: Scenarios
    baselines: Baselines

    def objective(self, text: str, goal: Goal) -> Expression:
        """Parse the formula of an objective over all scenarios.

        Raises:
            SpecError: the text is not a formula, or uses scenarios or baselines incorrectly.
        """
        side = scenarios.worse(goal)
        written = scenarios.written_out(parse(text, FUNCTIONS), self.scenarios, side)
        return self.baselines.folded(written)

    def rules(self, text: str) -> Iterator[Expression]:
        """Yield a constraint on metrics, once for each scenario if scenarios change its metrics.

        Raises:
            SpecError: the text is not a formula, or uses scenarios or baselines incorrectly.
        """
        for one in scenarios.everywhere(parse(text, FUNCTIONS), self.scenarios):
            yield self.baselines.folded(one)

    def under(self, text: str, scenario: str) -> Expression:
        """Parse a formula for one scenario, in which ``worst(chip.latency)`` is simply the latency.

        Raises the same errors as :meth:`objective`.
        """
        alone = scenarios.under(parse(text, FUNCTIONS), self.scenarios, scenario)
        return self.baselines.folded(alone)


def problems_alone(
    problem: Problem,
    spec: StudySpec,
    formulas: FormulaParser,
    known: Mapping[str, str],
    lists: Mapping[str, Listing],
) -> dict[str, Problem]:
    """Return the optimization problem of each scenario taken alone, by scenario name.

    In these problems, ``worst(chip.latency)`` is simply the latency in that scenario.

    Args:
        problem: the study's problem over all scenarios.
        spec: the study file, already checked.
        formulas: the parser of the study's formulas.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
    """
    texts = [one.minimize or one.maximize or "" for one in spec.objectives]
    found = {}
    for scenario in formulas.scenarios.weights:
        objectives = [
            replace(
                objective_of(formulas.under(text, scenario), own.goal, known, lists),
                label=own.label,
                log=own.log,
                written=own.written,
            )
            for text, own in zip(texts, problem.objectives, strict=True)
        ]
        limits = [
            limit
            for text in spec.constraints
            for limit in limits_of(formulas.under(text, scenario), known, lists)
        ]
        found[scenario] = replace(
            problem, objectives=tuple(objectives), limits=tuple(limits), fixed_reference=None
        )
    return found


_GOAL = re.compile(r"(minimi[sz]e|maximi[sz]e)\s*:?\s+(.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class AskedFormulas:
    """Parser of limits and objectives that a user adds to a finished study.

    Args:
        parser: parser of the study's formulas.
        known: the unit of every recorded metric and of every parameter.
        lists: the space's lists of parameters.
    """

    parser: FormulaParser
    known: SymbolTable
    lists: Mapping[str, Listing]

    @staticmethod
    def of(
        parser: FormulaParser, known: SymbolTable, lists: Mapping[str, Listing], problem: Problem
    ) -> AskedFormulas:
        """Return the formula parser that knows the metrics recorded in the trials of ``problem``.

        Args:
            parser: parser of the study's formulas.
            known: the unit of every metric and parameter of the study file.
            lists: the space's lists of parameters.
            problem: the study's problem; its sources are the recorded metrics.
        """
        recorded = {*problem.sources, *(one.name for one in problem.space.parameters)}
        names = SymbolTable({name: unit for name, unit in known.items() if name in recorded})
        names.data, names.parameters = known.data, problem.space.by_name
        return AskedFormulas(parser=parser, known=names, lists=lists)

    def limits(self, texts: Sequence[str], problem: Problem) -> tuple[Limit, ...]:
        """Parse additional limits such as ``chip.latency <= 20 ms``.

        Args:
            texts: the limits; the label of an objective stands for its formula.
            problem: the study's problem.

        Raises:
            SpecError: a text is no comparison of quantities, a name is unknown, or the units do not
                match.
        """
        found: list[Limit] = []
        for text in texts:
            for rule in self.parser.rules(_without_labels(text, problem)):
                check_shares(rule, self.known)
                found += limits_of(rule, self.known, self.lists)
        return tuple(found)

    def objective(self, text: str, problem: Problem) -> Objective:
        """Parse an additional objective: what to minimize or maximize.

        Args:
            text: an objective of the study by its label or formula, a metric that has a goal, or
                any formula after ``minimize:`` or ``maximize:``.
            problem: the study's problem.

        Raises:
            SpecError: the text is not a formula, a name is unknown, or nothing states whether less
                or more is better.
        """
        stated = _GOAL.fullmatch(text.strip())
        words = stated[2] if stated else text.strip()
        own = next((o for o in problem.objectives if o.label and words == o.label), None) or next(
            (o for o in problem.objectives if _plain(words) == _plain(o.text)), None
        )
        goal = _stated_goal(stated[1]) if stated else None
        if own is not None and goal in (None, own.goal):
            return own
        written = _without_labels(words, problem)
        metric = problem.metrics.get(written)
        # An unknown name is reported before a missing goal.
        asked = goal or (metric.goal if metric is not None else None)
        formula = self.parser.objective(written, asked or "minimize")
        parsed = objective_of(formula, asked or "minimize", self.known, self.lists)
        if asked is None:
            raise _no_goal(words, metric)
        return parsed


def _stated_goal(word: str) -> Goal:
    return "minimize" if word.startswith("min") else "maximize"


def _no_goal(text: str, metric: Metric | None) -> SpecError:
    what = f"the metric {text!r}" if metric is not None else f"the formula {text!r}"
    return SpecError(
        f"{what} has no goal of its own",
        hint=f"write which is better: 'minimize: {text}' or 'maximize: {text}'",
    )


def _without_labels(text: str, problem: Problem) -> str:
    """Return the formula with the labels of objectives replaced by their formulas."""
    labels = {o.label: parse(o.text, FUNCTIONS).node for o in problem.objectives if o.label}
    formula = parse(text, FUNCTIONS)
    if not labels.keys() & formula.names:
        return text
    return format_node(_with_nodes(formula.node, labels))


def _with_nodes(node: Node, replaced: Mapping[str, Node]) -> Node:
    if isinstance(node, Name):
        return replaced.get(node.name, node)
    own = children(node)
    return rebuilt(node, [_with_nodes(child, replaced) for child in own]) if own else node


def _plain(text: str) -> str:
    return "".join(text.split())


class Baselines:
    """Named baselines of a study and their metrics.

    ``awaited`` are the baselines of which a metric that formulas read is not measured yet.

    Args:
        designs: the baselines' designs by name.
        metrics: function of a baseline's name that returns its known metrics, or the reason why
            their evaluation failed; it is called once for each baseline that a formula names.
        sources: every metric of the study.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
        lost: the names of baselines that are invalid.
    """

    def __init__(
        self,
        designs: Mapping[str, Design],
        metrics: Callable[[str], Mapping[str, float] | Failure],
        *,
        sources: Mapping[str, Source],
        known: Mapping[str, str],
        lists: Mapping[str, Listing],
        lost: Collection[str] = (),
    ) -> None:
        self._lost = lost
        self.awaited: dict[str, Design] = {}
        self._designs = designs
        self._metrics_of = metrics
        self._metrics: dict[str, Mapping[str, float] | Failure] = {}
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
        if not isinstance(node, Call) or node.function not in BASELINE_FUNCTIONS:
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
        if name not in self._metrics:
            self._metrics[name] = self._metrics_of(name)
        metrics = self._metrics[name]
        if isinstance(metrics, Failure):
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
    """Build the named baselines; modelled metrics are computed where a formula names a baseline.

    Args:
        designs: all baselines, by name or index.
        pipeline: the study's evaluators; modelled metrics are computed.
        measured: measured metrics of each baseline, by name.
        known: the unit of every metric and parameter.
        lists: the space's lists of parameters.
    """
    chosen = {name: design for name, design in designs.items() if isinstance(name, str)}

    def metrics_of(name: str) -> Mapping[str, float] | Failure:
        got = pipeline.known(Batch.of([chosen[name]]))
        modelled = {metric: float(column[0]) for metric, column in got.columns.items()}
        return got.failures.get(0) or {**modelled, **measured.get(name, {})}

    return Baselines(chosen, metrics_of, sources=pipeline.sources, known=known, lists=lists)


def _literal(value: float, unit: str) -> Node:
    return Binary("*", Number(value), Number(1, unit))
