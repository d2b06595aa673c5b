"""ConfigSpace: guards are conditions, rules over two parameters forbidden clauses.

All other rules are kept by rejection. ConfigSpace cannot count a space with forbidden clauses; its
grid is listed, and the rows that break a rule are left out.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from ours import example
from statement import Row, Setting, Statement
from tool import Tool


def _space(statement: Statement, seed: int) -> Any:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.conditions import AndConjunction, InCondition

    space = ConfigurationSpace(seed=seed)
    legal = example(statement)  # ConfigSpace refuses a space whose default is forbidden
    made = {n: _parameter(n, statement.domains[n], legal[n]) for n in statement.names}
    space.add(list(made.values()))
    for name, guard in statement.guards.items():
        tests = [InCondition(made[name], made[p], list(values)) for p, values in guard.items()]
        space.add(tests[0] if len(tests) == 1 else AndConjunction(*tests))
    clauses = [
        clause
        for rule, names in statement.names_of.items()
        if _short(statement, rule, names)
        for clause in _clauses(statement, rule, names, made)
    ]
    if clauses:
        space.add(clauses)
    return space


def _parameter(name: str, values: Any, value: Setting | None) -> Any:
    from ConfigSpace import CategoricalHyperparameter, OrdinalHyperparameter

    legal = values[0] if value is None else value
    if len(values) == 1 or any(isinstance(v, bool | str) for v in values):
        return CategoricalHyperparameter(name, list(values), default_value=legal)
    return OrdinalHyperparameter(name, list(values), default_value=legal)


def _short(statement: Statement, rule: str, names: tuple[str, ...]) -> bool:
    return rule in statement.rules and len(names) == 2


def _clauses(statement: Statement, rule: str, names: tuple[str, ...], made: Any) -> list[Any]:
    from ConfigSpace import ForbiddenAndConjunction, ForbiddenEqualsClause, ForbiddenInClause

    left, right = names
    test = statement.function([rule], names)
    clauses = []
    for value in statement.domains[left]:
        bad: list[Setting] = [other for other in statement.domains[right] if not test(value, other)]
        if bad:
            here = ForbiddenEqualsClause(made[left], value)
            clauses.append(ForbiddenAndConjunction(here, ForbiddenInClause(made[right], bad)))
    return clauses


def _rest(statement: Statement) -> Any:
    """The rules that no clause states, as a test of a row."""
    rules = [r for r in statement.rules if not _short(statement, r, statement.names_of[r])]
    return statement.function(rules, statement.names)


def _row(statement: Statement, found: Any) -> Row:
    return tuple(found.get(name) for name in statement.names)


def _prepare(statement: Statement) -> None:
    import_module("ConfigSpace.util")
    example(statement)


def _grid(statement: Statement) -> list[Row]:
    from ConfigSpace.util import generate_grid

    test = _rest(statement)
    rows = (_row(statement, dict(found)) for found in generate_grid(_space(statement, 0)))
    return [row for row in rows if test(*row)]


def _listed(statement: Statement, most: int | None) -> int:
    return len(_grid(statement)[:most])


def _sampled(statement: Statement, number: int, seed: int) -> list[Row]:
    space, test = _space(statement, seed), _rest(statement)
    have: list[Row] = []
    while len(have) < number:
        drawn = (_row(statement, dict(found)) for found in space.sample_configuration(10_000))
        have += [row for row in drawn if test(*row)]
    return have[:number]


def _rows(_: Statement, drawn: object) -> list[Row]:
    """The rows with plain values: ConfigSpace gives those of numpy."""
    assert isinstance(drawn, list)
    return [tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in drawn]


FORBIDDEN_CLAUSES = Tool(
    name="ConfigSpace",
    prepare=_prepare,
    count=lambda statement: len(_grid(statement)),
    listed=_listed,
    sampled=_sampled,
    rows=_rows,
)
