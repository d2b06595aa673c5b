"""python-constraint2, used as Kernel Tuner uses it: string constraints, all solutions at once."""

from __future__ import annotations

import random
from importlib import import_module
from itertools import islice
from typing import Any

from statement import Row, Statement
from tool import Tool


def _problem(statement: Statement) -> Any:
    from constraint import OptimizedBacktrackingSolver, Problem

    problem = Problem(OptimizedBacktrackingSolver(forwardcheck=False))
    for name in statement.names:
        problem.addVariable(name, statement.choices(name))
    for rule in statement.all_rules:
        problem.addConstraint(rule)
    return problem


def _prepare(_: Statement) -> None:
    import_module("constraint")


def _count(statement: Statement) -> int:
    return len(_problem(statement).getSolutions())


def _listed(statement: Statement, most: int | None) -> int:
    problem = _problem(statement)
    if most is None:
        return len(problem.getSolutionsOrderedList(list(statement.names)))
    return sum(1 for _ in islice(problem.getSolutionIter(), most))


def _sampled(statement: Statement, number: int, seed: int) -> list[Row]:
    listed = _problem(statement).getSolutionsOrderedList(list(statement.names))
    return random.Random(seed).choices(listed, k=number)


def _rows(_: Statement, drawn: object) -> list[Row]:
    assert isinstance(drawn, list)
    return drawn


BACKTRACKING = Tool(
    name="python-constraint2",
    prepare=_prepare,
    count=_count,
    listed=_listed,
    sampled=_sampled,
    rows=_rows,
)
