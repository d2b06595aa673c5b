"""Partial evaluation of rules: subexpressions whose parameters are all set become one value.

The decision diagram is built one parameter at a time. A rule depends on the parameters set so far
only through the values of such subexpressions: of ``tp * pp * dp == gpus`` with ``tp`` and ``pp``
set, one product. States that agree in these values can be completed in the same ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dse.core.expressions.expression import (
    Absent,
    Binary,
    Call,
    Compare,
    Expression,
    Logic,
    Lookup,
    Name,
    Node,
    Number,
    Truth,
    Unary,
    children,
    map_nodes,
    rebuilt,
)
from dse.core.values import Mask, Value

Bounds = Mapping[str, float]
"""The largest magnitude of each name whose values are whole numbers."""

_EXACT = 2.0**53
"""Bound below which sums and products of integers are exact in floating point in any order."""

_NAMED = 65_536
"""Size of the cache of :func:`names_of`: a long sum is traversed once for each parameter."""

_OPPOSITE = {"and": "or", "or": "and"}


def normal(rule: Expression, bounds: Bounds, always: Mapping[str, tuple[Value, ...]]) -> list[Node]:
    """Return the rule in canonical form, as one or more rules whose conjunction is equivalent.

    Sums, products, ``and`` and ``or`` are flattened, chained comparisons are split, ``->`` becomes
    ``or``, ``not`` is pushed below both, and a bound on a ``max`` becomes a bound on each operand.
    The three-valued truth is unchanged.

    Args:
        rule: the rule.
        bounds: the magnitudes of the integers that it reads.
        always: the values of each name that cannot be absent.
    """
    node = map_nodes(rule.node, lambda part: _flat(part, bounds))
    node = map_nodes(node, lambda part: _split_extreme(part, bounds, always))
    if isinstance(node, Logic) and node.operator == "and":
        return list(node.operands)
    return [node]


def fold_names(
    node: Node, known: frozenset[str], bounds: Bounds, part: Callable[[Node], Node]
) -> Node:
    """Return the formula with each largest subexpression over ``known`` names replaced by a name.

    Args:
        node: the tree.
        known: the names that are set.
        bounds: upper bounds on the magnitudes of integer names, which decide what may be reordered.
        part: maps a known subtree to its replacement.
    """
    names = names_of(node)
    if isinstance(node, Name) or not names & known:
        return node
    if names <= known:
        return part(node)
    if _commutes(node, bounds):
        return _merge_operands(node, known, bounds, part)
    if isinstance(node, Call) and node.function in ("sum", "product"):
        return _joined_start(node, known, bounds, part)
    return rebuilt(node, [fold_names(child, known, bounds, part) for child in children(node)])


@lru_cache(maxsize=_NAMED)
def names_of(node: Node) -> frozenset[str]:
    """Return every name in the tree."""
    if isinstance(node, Name):
        return frozenset((node.name,))
    return frozenset().union(*(names_of(child) for child in children(node)))


def whole_bound(node: Node, bounds: Bounds) -> float | None:
    """Return an upper bound on the magnitude of an integer formula; ``None`` if not an integer."""
    match node:
        case Number():
            return abs(node.value) if isinstance(node.value, int) else None
        case Truth() | Logic() | Compare() | Absent():
            return 1.0
        case Name():
            return bounds.get(node.name)
        case Lookup():
            whole = [abs(v) for _, v in node.entries if isinstance(v, int)]
            return float(max(whole)) if len(whole) == len(node.entries) > 0 else None
        case Unary(operator="-"):
            return whole_bound(node.operand, bounds)
        case Unary():
            return 1.0
        case Call(function="sum" | "product" | "min" | "max"):
            return _call_bound(node, bounds)
        case _:
            return None


def cares(node: Node, settled: Callable[[str, bool], Mask], everywhere: Mask) -> dict[str, Mask]:
    """Return, for each stored value by name, the mask of states in which the rule still needs it.

    In a rule such as ``mode != 'x' or ...``, a true first operand decides the rule, and the values
    that the other operands read do not matter.

    Args:
        node: the residual rule.
        settled: returns the mask of states in which a known part certainly has this truth.
        everywhere: the mask of all states.
    """
    found: dict[str, Mask] = {}

    def visit(part: Node, mask: Mask) -> None:
        if isinstance(part, Name):
            found[part.name] = found[part.name] | mask if part.name in found else mask
            return
        if isinstance(part, Logic) and part.operator in _OPPOSITE:
            for guard in (o for o in part.operands if isinstance(o, Name)):
                visit(guard, mask)
                mask = mask & ~settled(guard.name, part.operator == "or")
            for operand in part.operands:
                if not isinstance(operand, Name):
                    visit(operand, mask)
            return
        for child in children(part):
            visit(child, mask)

    visit(node, everywhere)
    return found


def _flat(node: Node, bounds: Bounds) -> Node:
    match node:
        case Binary(operator="+" | "-" | "*"):
            return _flat_arithmetic(node, bounds)
        case Compare() if len(node.operators) > 1:
            links = zip(node.operators, pairwise(node.operands), strict=True)
            return Logic("and", tuple(Compare((op,), pair) for op, pair in links))
        case Logic(operator="->"):
            return _flat_logic("or", (_negate(node.operands[0]), *node.operands[1:]))
        case Logic():
            return _flat_logic(node.operator, node.operands)
        case Unary(operator="not"):
            return _negate(node.operand)
        case _:
            return node


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ALL = {("max", "<"), ("max", "<="), ("min", ">"), ("min", ">=")}


def _split_extreme(node: Node, bounds: Bounds, always: Mapping[str, tuple[Value, ...]]) -> Node:
    """Split a bound on ``max`` or ``min``: ``max(a, b) <= c`` becomes ``a <= c and b <= c``.

    This is valid only for integers that are always present: if an operand is absent or divides by
    zero, the maximum is unknown or not a number, but the other operands are not.
    """
    if isinstance(node, Logic) and node.operator in _OPPOSITE:
        return _flat_logic(node.operator, node.operands)
    if not isinstance(node, Compare) or node.operators[0] not in _MIRRORED:
        return node
    operator, (left, right) = node.operators[0], node.operands
    if not _is_extreme(left):
        operator, left, right = _MIRRORED[operator], right, left
    if not _is_extreme(left) or not _has_value(node, always):
        return node
    assert isinstance(left, Call)
    if any(whole_bound(one, bounds) is None for one in left.arguments):
        return node
    logic = "and" if (left.function, operator) in _ALL else "or"
    return Logic(logic, tuple(Compare((operator,), (one, right)) for one in left.arguments))


def _has_value(node: Node, always: Mapping[str, tuple[Value, ...]]) -> bool:
    """Return whether the formula has a value for all values of its names.

    No name may be absent, and no entry of a table may be missing.
    """
    if isinstance(node, Name):
        return node.name in always
    if isinstance(node, Lookup):
        domain = always.get(node.key.name, ()) if isinstance(node.key, Name) else ()
        return bool(domain) and set(domain) <= {key for key, _ in node.entries}
    return all(_has_value(child, always) for child in children(node))


def _is_extreme(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("min", "max")


def _flat_logic(operator: str, operands: Sequence[Node]) -> Node:
    flat: list[Node] = []
    for operand in operands:
        same = isinstance(operand, Logic) and operand.operator == operator
        flat += operand.operands if same and isinstance(operand, Logic) else [operand]
    return Logic(operator, tuple(flat))


def _negate(node: Node) -> Node:
    if isinstance(node, Logic) and node.operator in _OPPOSITE:
        return _flat_logic(_OPPOSITE[node.operator], [_negate(o) for o in node.operands])
    if isinstance(node, Unary) and node.operator == "not" and _is_truth(node.operand):
        return node.operand
    return Unary("not", node)


def _is_truth(node: Node) -> bool:
    return isinstance(node, Truth | Logic | Compare | Absent) or (
        isinstance(node, Unary) and node.operator == "not"
    )


def _flat_arithmetic(node: Binary, bounds: Bounds) -> Node:
    """Merge nested sums or products such as ``(a + b) + c`` into one operation.

    The right operand is merged, too, where reordering the operations gives the same result.
    """
    function = "product" if node.operator == "*" else "sum"
    right: Node = Unary("-", node.right) if node.operator == "-" else node.right
    together = Call(function, (*_operands(node.left, function), *_operands(right, function)))
    if whole_bound(together, bounds) is not None:
        return together
    return Call(function, (*_operands(node.left, function), right))


def _operands(node: Node, function: str) -> tuple[Node, ...]:
    return node.arguments if isinstance(node, Call) and node.function == function else (node,)


def _call_bound(node: Call, bounds: Bounds) -> float | None:
    each = [whole_bound(argument, bounds) for argument in node.arguments]
    sizes = [size for size in each if size is not None]
    if len(sizes) < len(each):
        return None
    if node.function in ("min", "max"):
        return max(sizes)
    total = sum(sizes) if node.function == "sum" else float(np.prod([max(s, 1.0) for s in sizes]))
    return total if total < _EXACT else None


def _commutes(node: Node, bounds: Bounds) -> bool:
    if isinstance(node, Logic):
        return node.operator in _OPPOSITE
    if not isinstance(node, Call):
        return False
    if node.function in ("min", "max"):
        return len(node.arguments) > 1
    return node.function in ("sum", "product") and whole_bound(node, bounds) is not None


def _merge_operands(
    node: Node, known: frozenset[str], bounds: Bounds, part: Callable[[Node], Node]
) -> Node:
    """Return the node with all operands whose names are known combined into one operand."""
    mine, rest = list[Node](), list[Node]()
    for operand in children(node):
        (mine if names_of(operand) <= known else rest).append(operand)
    rest = [fold_names(operand, known, bounds, part) for operand in rest]
    if not any(names_of(operand) for operand in mine):
        return rebuilt(node, [*mine, *rest])
    one = part(mine[0] if len(mine) == 1 else rebuilt(node, mine))
    return rebuilt(node, [one, *rest])


def _joined_start(
    node: Call, known: frozenset[str], bounds: Bounds, part: Callable[[Node], Node]
) -> Node:
    """Combine only the leading known operands: a floating-point sum depends on its order."""
    count = 0
    while names_of(node.arguments[count]) <= known:
        count += 1
    start, rest = node.arguments[:count], node.arguments[count:]
    rest = tuple(fold_names(operand, known, bounds, part) for operand in rest)
    if not any(names_of(operand) for operand in start):
        return Call(node.function, (*start, *rest))
    return Call(
        node.function, (part(start[0] if count == 1 else Call(node.function, start)), *rest)
    )
