"""Builders of ConfigSpace's conditions on one hyperparameter, and of their combinations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dse.core.parameter import Choice
from dse.interop.configspace.branches import Test, Tree, UnsayableError

Clause = dict[str, Any]

_FEW = 3
"""Number of values up to which they are listed; more of them become a range, if contiguous."""


def build_condition(found: Tree, child: str) -> Clause | bool:
    """Return a decision tree as a ConfigSpace condition for the activity of ``child``.

    A tree that is always true or false is returned as a Boolean.
    """
    if isinstance(found, bool):
        return found
    ways = [
        joined_conditions("and", [_build_test(test, child), build_condition(rest, child)], child)
        for test, rest in found
    ]
    return joined_conditions("or", ways, child)


def joined_conditions(operator: str, parts: Sequence[Clause | bool], child: str) -> Clause | bool:
    """Join conditions by ``and`` or ``or``; Booleans among them are simplified away."""
    decides = operator == "or"
    if any(part is decides for part in parts):
        return decides
    open_parts = [part for part in parts if not isinstance(part, bool)]
    if len(open_parts) < 2:
        return open_parts[0] if open_parts else not decides
    return {"type": operator.upper(), "child": child, "conditions": open_parts}


def condition_of(clause: Clause, child: str) -> Clause:
    """Return a clause on one hyperparameter as the condition under which ``child`` is active."""
    kinds = {"CLAUSE_LT": "LT", "CLAUSE_GT": "GT", "EQUALS": "EQ", "IN": "IN"}
    if clause["type"] not in kinds:
        raise UnsayableError("it compares two parameters")
    key = "values" if "values" in clause else "value"
    kind, parent = kinds[clause["type"]], clause["name"]
    return {"type": kind, "child": child, "parent": parent, key: clause[key]}


def _build_test(test: Test, child: str) -> Clause:
    kind, values = _kind(test)
    about = {"child": child, "parent": test.parameter.name}
    if kind == "BETWEEN":
        ends = [{"type": "GT", "value": values[0]}, {"type": "LT", "value": values[1]}]
        return {"type": "AND", "child": child, "conditions": [{**about, **end} for end in ends]}
    if kind == "IN":
        return {"type": "IN", **about, "values": list(values)}
    return {"type": kind, **about, "value": values[0]}


def clauses_of(test: Test) -> Iterator[Clause]:
    """Yield ConfigSpace clauses whose conjunction is equivalent to the test."""
    kind, values = _kind(test)
    name = test.parameter.name
    if kind == "IN":
        yield {"type": "IN", "name": name, "values": list(values)}
    elif kind == "EQ":
        yield {"type": "EQUALS", "name": name, "value": values[0]}
    else:
        kinds = ("GT", "LT") if kind == "BETWEEN" else (kind,)
        for one, value in zip(kinds, values, strict=True):
            yield {"type": f"CLAUSE_{one}", "name": name, "value": value}


def _kind(test: Test) -> tuple[str, tuple[Any, ...]]:
    """Return the shortest ConfigSpace relation that expresses the test, and its operands.

    It is an equality, a one- or two-sided bound, or a list of values.
    """
    all_values, values = test.parameter.values, test.values
    if len(values) == 1:
        return "EQ", values
    first = all_values.index(values[0])
    after = first + len(values)
    run = all_values[first:after] == values
    if isinstance(test.parameter, Choice) or len(values) <= _FEW or not run:
        return "IN", values
    if first == 0:
        return "LT", (all_values[after],)
    if after == len(all_values):
        return "GT", (all_values[first - 1],)
    return "BETWEEN", (all_values[first - 1], all_values[after])


def conjunction(path: tuple[Clause, ...]) -> Clause:
    """Return the conjunction of clauses as one clause; an empty dictionary without clauses."""
    if not path:
        return {}
    return path[0] if len(path) == 1 else {"type": "AND", "clauses": list(path)}
