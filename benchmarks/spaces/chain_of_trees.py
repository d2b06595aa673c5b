"""A chain of trees, the structure that BaCO took over from ATF, by pyATF.

BaCO itself is not on PyPI. A rule belongs to the last parameter that it reads.
"""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

from statement import Row, Statement
from tool import NotOfferedError, Tool


def _space(statement: Statement) -> Any:
    from pyatf import TP, Set
    from pyatf.search_space import SearchSpace

    rules: dict[str, list[str]] = {name: [] for name in statement.names}
    for rule, names in statement.names_of.items():
        rules[names[-1]].append(rule)
    parameters = []
    for name in statement.names:
        mine = rules[name]
        read = {n for rule in mine for n in statement.names_of[rule]}
        test = statement.function(mine, [n for n in statement.names if n in read])
        values = Set(*statement.choices(name))
        parameters.append(TP(name, values, test) if mine else TP(name, values))
    return SearchSpace(*parameters, enable_1d_access=True, verbosity=0)


def _prepare(_: Statement) -> None:
    try:
        import_module("pyatf.search_space")
    except ImportError as error:
        raise NotOfferedError("not installed: pip install pyatf") from error


def _count(statement: Statement) -> int:
    return int(_space(statement).constrained_size)


def _listed(statement: Statement, most: int | None) -> int:
    space = _space(statement)
    size = space.constrained_size if most is None else min(most, space.constrained_size)
    return sum(1 for place in range(size) if space.get_configuration(place))


def _sampled(statement: Statement, number: int, seed: int) -> list[Any]:
    space, rng = _space(statement), random.Random(seed)
    return [space.get_configuration(rng.randrange(space.constrained_size)) for _ in range(number)]


def _rows(statement: Statement, drawn: object) -> list[Row]:
    assert isinstance(drawn, list)
    return [tuple(design[name] for name in statement.names) for design in drawn]


CHAIN_OF_TREES = Tool(
    name="pyATF (chain of trees)",
    prepare=_prepare,
    count=_count,
    listed=_listed,
    sampled=_sampled,
    rows=_rows,
)
