"""Objectives and constraints of a study, and the problems of its single scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing
from dse.core.expressions.parser import ARGUMENTS, parse
from dse.core.metric import Goal
from dse.core.problem import Problem
from dse.schema.models import StudySpec
from dse.schema.study import baselines
from dse.schema.study import scenario_statistics as robust
from dse.schema.study.baselines import Baselines
from dse.schema.study.objectives import limits_of, objective_of
from dse.schema.study.scenarios import Scenarios

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
