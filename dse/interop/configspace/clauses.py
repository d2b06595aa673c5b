"""Import of ConfigSpace's conditions and forbidden clauses as expressions.

In ConfigSpace a clause on an inactive parameter is false, except that ``a != 1`` is true. In this
project's expressions both would be unknown, so the import adds ``a is absent or ...``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.printer import format_node
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.interop.configspace.hyperparameters import name_in
from dse.interop.value_conversion import numbers_only, value_of

MAX_DEPTH = 50
_EXACT = 2**53
"""Magnitude below which every integer is exactly representable as a float."""

_TESTS = {"EQ": "==", "NEQ": "!=", "LT": "<", "GT": ">"}
_CLAUSES = {
    "EQUALS": "==",
    "CLAUSE_LT": "<",
    "CLAUSE_LE": "<=",
    "CLAUSE_GT": ">",
    "CLAUSE_GE": ">=",
}
_RELATIONS = {
    "RELATION_LT": "<",
    "RELATION_LE": "<=",
    "RELATION_EQ": "==",
    "RELATION_GT": ">",
    "RELATION_GE": ">=",
}
_LAMBDAS = {
    "LT": "<",
    "EQ": "==",
    "GT": ">",
    "LESS": "<",
    "EQUALS": "==",
    "GREATER": ">",
    "LESSEQUAL": "<=",
    "GREATEREQUAL": ">=",
}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_ORDER: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Clauses:
    """Parser of ConfigSpace clauses on the parameters of a space.

    ``parameters`` maps ConfigSpace's names to parameters; ``conditional`` holds the names of the
    parameters that have a condition.
    """

    def __init__(self, parameters: Mapping[str, Parameter], conditional: Collection[str]) -> None:
        self._parameters = parameters
        self._conditional = conditional

    def condition(self, item: Any) -> Expression:
        """Return a ConfigSpace condition as a formula, true where its parameter is active.

        Raises:
            SpecError: the item is not a condition.
        """
        return _expression(self._condition(item, 0))

    def rules(self, item: Any) -> Iterator[Expression]:
        """Yield rules that exclude what a forbidden clause of ConfigSpace excludes.

        Raises:
            SpecError: the item is not a forbidden clause.
        """
        if isinstance(item, dict) and item.get("type") == "OR":
            for clause in _parts(item, "clauses"):
                yield from self.rules(clause)
            return
        yield _expression(_negate_node(self._forbidden(item, 0)))

    def _condition(self, item: Any, depth: int) -> syntax.Node:
        kind = _kind(item, depth)
        if kind in ("AND", "OR"):
            parts = [self._condition(part, depth + 1) for part in _parts(item, "conditions")]
            return _join_nodes(kind.lower(), parts)
        parent = self._parameter(item, "parent")
        if kind == "IN":
            return _member(parent, _parts(item, "values"))
        if kind not in _TESTS:
            raise SpecError(f"{kind!r} is no condition", hint=nearest(kind, [*_TESTS, "IN"]))
        node = _compare_value(parent, _TESTS[kind], item.get("value"))
        if kind == "NEQ" and parent.name in self._conditional:
            return syntax.Logic("or", (syntax.Absent(syntax.Name(parent.name)), node))
        return node

    def _forbidden(self, item: Any, depth: int) -> syntax.Node:
        kind = _kind(item, depth)
        if kind in ("AND", "OR"):
            parts = [self._forbidden(part, depth + 1) for part in _parts(item, "clauses")]
            return _join_nodes(kind.lower(), parts)
        if kind.startswith("RELATION"):
            return self._relation(item, kind)
        parameter = self._parameter(item, "name")
        if kind == "IN":
            return _member(parameter, _parts(item, "values"))
        if kind not in _CLAUSES:
            known = [*_CLAUSES, *_RELATIONS, "IN", "AND", "OR"]
            raise SpecError(f"{kind!r} is no forbidden clause", hint=nearest(kind, known))
        return _compare_value(parameter, _CLAUSES[kind], item.get("value"))

    def _relation(self, item: Any, kind: str) -> syntax.Node:
        sign = _RELATIONS.get(kind) or _LAMBDAS.get(str(item.get("lambda")))
        if sign is None:
            raise SpecError(f"{kind!r} is no relation", hint=nearest(kind, _RELATIONS))
        sides = [self._parameter(item, key) for key in ("left", "right")]
        words = [_is_word(side) for side in sides]
        if words[0] != words[1] or (words[0] and sign != "=="):
            names = " and ".join(side.name for side in sides)
            raise SpecError(f"{names} are not both numbers, and cannot be compared by {sign!r}")
        return syntax.Compare((sign,), tuple(syntax.Name(side.name) for side in sides))

    def _parameter(self, item: Any, key: str) -> Parameter:
        name = name_in(item, key)
        if name not in self._parameters:
            raise SpecError(
                f"there is no hyperparameter {name!r}", hint=nearest(name, self._parameters)
            )
        return self._parameters[name]


def _kind(item: Any, depth: int) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise SpecError(f"a clause with a 'type' is expected, not {str(item)[:60]}")
    if depth > MAX_DEPTH:
        raise SpecError(f"a clause is nested deeper than {MAX_DEPTH}")
    kind: str = item["type"]
    return kind


def _parts(item: Mapping[str, Any], key: str) -> list[Any]:
    parts = item.get(key)
    if not isinstance(parts, list) or not parts:
        raise SpecError(f"a clause of the type {item.get('type')!r} has no {key!r}")
    return parts


def _join_nodes(word: str, parts: list[syntax.Node]) -> syntax.Node:
    return parts[0] if len(parts) == 1 else syntax.Logic(word, tuple(parts))


def _member(parameter: Parameter, values: list[Any]) -> syntax.Node:
    literals = tuple(_literal(value_of(parameter, value)) for value in values)
    if len(literals) == 1:
        return syntax.Compare(("==",), (syntax.Name(parameter.name), literals[0]))
    return syntax.Member(syntax.Name(parameter.name), literals)


def _compare_value(parameter: Parameter, sign: str, value: Any) -> syntax.Node:
    """Return the formula that compares a parameter with a value, as in ConfigSpace.

    Values that are not in ascending order are compared by their position in the list.
    """
    own = value_of(parameter, value)
    name = syntax.Name(parameter.name)
    if sign in ("==", "!=") or isinstance(parameter, Real | Integer):
        return syntax.Compare((sign,), (name, _literal(own)))
    values = parameter.values
    if isinstance(parameter, Ordinal) and list(values) == sorted(parameter.values):
        return syntax.Compare((sign,), (name, _literal(own)))
    order = _ORDER[sign]
    chosen = [mine for place, mine in enumerate(values) if order(place, values.index(own))]
    if not chosen:  # always false, but unknown (not false) if the parameter is absent
        return syntax.Member(name, tuple(map(_literal, values)), negated=True)
    return syntax.Member(name, tuple(map(_literal, chosen)))


def _negate_node(node: syntax.Node) -> syntax.Node:
    match node:
        case syntax.Compare() if len(node.operators) == 1:
            return syntax.Compare((_OPPOSITE[node.operators[0]],), node.operands)
        case syntax.Member():
            return syntax.Member(node.item, node.values, not node.negated)
        case _:
            return syntax.Unary("not", node)


def _is_word(parameter: Parameter) -> bool:
    return isinstance(parameter, Choice) and not numbers_only(parameter.values)


def _literal(value: Value) -> syntax.Node:
    if isinstance(value, bool):
        return syntax.Truth(value)
    if isinstance(value, str):
        return syntax.Text(value)
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return syntax.Number(int(value) if whole else value)


def _expression(node: syntax.Node) -> Expression:
    return Expression(format_node(node), node)
