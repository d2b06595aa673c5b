"""Objectives and constraints of a study, and the problems of its single scenarios."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.expressions.parser import ARGUMENTS, parse
from dse.core.expressions.printer import format_node
from dse.core.expressions.syntax import Name, Node, children, rebuilt
from dse.core.metric import Goal, Metric
from dse.core.objective import Limit, Objective
from dse.core.problem import Problem
from dse.errors import SpecError
from dse.schema.models import StudySpec
from dse.schema.study import baselines
from dse.schema.study import scenario_statistics as robust
from dse.schema.study.baselines import Baselines
from dse.schema.study.objectives import SymbolTable, limits_of, objective_of
from dse.schema.study.scenarios import Scenarios
from dse.units.dimensions import check_shares

FUNCTIONS = {**ARGUMENTS, **robust.FUNCTIONS, **baselines.FUNCTIONS}
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
        side = robust.worse(goal)
        written = robust.written_out(parse(text, FUNCTIONS), self.scenarios, side)
        return self.baselines.folded(written)

    def rules(self, text: str) -> Iterator[Expression]:
        """Yield a constraint on metrics, once for each scenario if scenarios change its metrics.

        Raises:
            SpecError: as :meth:`objective` does.
        """
        for one in robust.everywhere(parse(text, FUNCTIONS), self.scenarios):
            yield self.baselines.folded(one)

    def under(self, text: str, scenario: str) -> Expression:
        """Parse a formula for one scenario, in which ``worst(chip.latency)`` is just the latency.

        It raises as :meth:`objective` does.
        """
        alone = robust.under(parse(text, FUNCTIONS), self.scenarios, scenario)
        return self.baselines.folded(alone)


def problems_alone(
    problem: Problem,
    spec: StudySpec,
    formulas: FormulaParser,
    known: Mapping[str, str],
    lists: Mapping[str, Listing],
) -> dict[str, Problem]:
    """Return the optimization problem of each scenario taken alone, by scenario name.

    In these, ``worst(chip.latency)`` is simply the latency in that scenario.

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
    """Parser of further limits and objectives over the recorded metrics of a study.

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
        """Return the parser for the metrics that the trials of ``problem`` record.

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
        """Parse further limits such as ``chip.latency <= 20 ms``.

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
        """Parse what to minimize or maximize.

        Args:
            text: an objective of the study by its label or formula, a metric that has a goal, or
                any formula after ``minimize:`` or ``maximize:``.
            problem: the study's problem.

        Raises:
            SpecError: the text is no formula, a name is unknown, or it is not known whether less or
                more is better.
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
