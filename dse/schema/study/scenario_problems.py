"""Optimization problems of the single scenarios of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.core.expressions.list_rules import Listing
from dse.core.problem import Problem
from dse.schema.models import StudySpec
from dse.schema.study.formulas import FormulaParser
from dse.schema.study.objectives import limits_of, objective_of


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
