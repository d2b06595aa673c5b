"""Partial evaluation of rules: subexpressions whose parameters are all set become one value.

The decision diagram is built one parameter at a time. A rule depends on the parameters set so far
only through the values of subexpressions whose parameters are all set: if ``tp`` and ``pp`` are
set, the rule ``tp * pp * dp == gpus`` depends only on their product. States that agree in these
values can be completed in the same ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.values import Mask, Value

Bounds = Mapping[str, float]
"""The largest magnitude of each name whose values are whole numbers."""

_EXACT = 2.0**53
"""Bound below which sums and products of integers are exact in floating point in any order."""

_NAMED = 65_536
"""Size of the cache of :func:`names_of`: a long sum is traversed once for each parameter."""

_OPPOSITE = {"and": "or", "or": "and"}


def normal(
    rule: Expression, bounds: Bounds, always: Mapping[str, tuple[Value, ...]]
) -> list[syntax.Node]:
    """Return the rule in canonical form, as one or more rules whose conjunction is equivalent.

    Sums, products, ``and`` and ``or`` are flattened, chained comparisons are split, ``->`` becomes
    ``or``, ``not`` is pushed below ``and`` and ``or``, and a bound on a ``max`` becomes a bound on
    each operand. The three-valued truth is unchanged.

    Args:
        rule: the rule.
        bounds: the magnitudes of the integers that it reads.
        always: the values of each name that cannot be absent.
    """
    node = syntax.map_nodes(rule.node, lambda part: _flat(part, bounds))
    node = syntax.map_nodes(node, lambda part: _split_extreme(part, bounds, always))
    if isinstance(node, syntax.Logic) and node.operator == "and":
        return list(node.operands)
    return [node]


def fold_names(
    node: syntax.Node,
    known: frozenset[str],
    bounds: Bounds,
    part: Callable[[syntax.Node], syntax.Node],
) -> syntax.Node:
    """Return the formula with each largest subexpression over ``known`` names replaced by a name.

    Args:
        node: the tree.
        known: the names that are set.
        bounds: upper bounds on the magnitudes of integer names, which decide what may be reordered.
        part: returns the name that replaces a known subtree.
    """
    names = names_of(node)
    if isinstance(node, syntax.Name) or not names & known:
        return node
    if names <= known:
        return part(node)
    if _commutes(node, bounds):
        return _merge_operands(node, known, bounds, part)
    if isinstance(node, syntax.Call) and node.function in ("sum", "product"):
        return _joined_start(node, known, bounds, part)
    return syntax.rebuilt(
        node, [fold_names(child, known, bounds, part) for child in syntax.children(node)]
    )


@lru_cache(maxsize=_NAMED)
def names_of(node: syntax.Node) -> frozenset[str]:
    """Return every parameter name in a rule's expression tree."""
    if isinstance(node, syntax.Name):
        return frozenset((node.name,))
    return frozenset().union(*(names_of(child) for child in syntax.children(node)))


def defines(node: syntax.Node, name: str, bounds: Bounds) -> bool:
    """Return whether an equation determines a parameter: ``a * b == c`` determines ``c``.

    Args:
        node: the rule.
        name: the parameter.
        bounds: largest absolute value of each name whose values are all integers.
    """
    if not isinstance(node, syntax.Compare) or node.operators != ("==",):
        return False
    sides = [side for side in node.operands if side != syntax.Name(name)]
    if len(sides) != 1 or name in names_of(sides[0]):
        return False
    return whole_bound(sides[0], bounds) is not None and name in bounds


def whole_bound(node: syntax.Node, bounds: Bounds) -> float | None:
    """Return an upper bound on the magnitude of an integer formula; ``None`` if not an integer."""
    match node:
        case syntax.Number():
            return abs(node.value) if isinstance(node.value, int) else None
        case syntax.Truth() | syntax.Logic() | syntax.Compare() | syntax.Absent():
            return 1.0
        case syntax.Name():
            return bounds.get(node.name)
        case syntax.Lookup():
            whole = [abs(v) for _, v in node.entries if isinstance(v, int)]
            return float(max(whole)) if len(whole) == len(node.entries) > 0 else None
        case syntax.Unary(operator="-"):
            return whole_bound(node.operand, bounds)
        case syntax.Unary():
            return 1.0
        case syntax.Call(function="sum" | "product" | "min" | "max"):
            return _call_bound(node, bounds)
        case _:
            return None


def cares(
    node: syntax.Node, settled: Callable[[str, bool], Mask], everywhere: Mask
) -> dict[str, Mask]:
    """Return, by name, the mask of partial designs in which a rule still needs the stored value.

    In a rule such as ``mode != 'x' or ...``, a true first operand decides the rule, and the values
    that the other operands read do not matter.

    Args:
        node: the partially evaluated rule.
        settled: returns the mask of states in which a name that stands for a part of the rule
            certainly has the given truth value.
        everywhere: the mask of all states.
    """
    found: dict[str, Mask] = {}

    def visit(part: syntax.Node, mask: Mask) -> None:
        if isinstance(part, syntax.Name):
            found[part.name] = found[part.name] | mask if part.name in found else mask
            return
        if isinstance(part, syntax.Logic) and part.operator in _OPPOSITE:
            for guard in (o for o in part.operands if isinstance(o, syntax.Name)):
                visit(guard, mask)
                mask = mask & ~settled(guard.name, part.operator == "or")
            for operand in part.operands:
                if not isinstance(operand, syntax.Name):
                    visit(operand, mask)
            return
        for child in syntax.children(part):
            visit(child, mask)

    visit(node, everywhere)
    return found


def _flat(node: syntax.Node, bounds: Bounds) -> syntax.Node:
    match node:
        case syntax.Binary(operator="+" | "-" | "*"):
            return _flat_arithmetic(node, bounds)
        case syntax.Compare() if len(node.operators) > 1:
            links = zip(node.operators, pairwise(node.operands), strict=True)
            return syntax.Logic("and", tuple(syntax.Compare((op,), pair) for op, pair in links))
        case syntax.Logic(operator="->"):
            return _flat_logic("or", (_negate(node.operands[0]), *node.operands[1:]))
        case syntax.Logic():
            return _flat_logic(node.operator, node.operands)
        case syntax.Unary(operator="not"):
            return _negate(node.operand)
        case _:
            return node


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ALL = {("max", "<"), ("max", "<="), ("min", ">"), ("min", ">=")}


def _split_extreme(
    node: syntax.Node, bounds: Bounds, always: Mapping[str, tuple[Value, ...]]
) -> syntax.Node:
    """Split a bound on ``max`` or ``min``: ``max(a, b) <= c`` becomes ``a <= c and b <= c``.

    This is valid only for integers that are always present: if an operand is absent or divides by
    zero, the maximum is unknown or not a number, but the other operands are not.
    """
    if isinstance(node, syntax.Logic) and node.operator in _OPPOSITE:
        return _flat_logic(node.operator, node.operands)
    if not isinstance(node, syntax.Compare) or node.operators[0] not in _MIRRORED:
        return node
    operator, (left, right) = node.operators[0], node.operands
    if not _is_extreme(left):
        operator, left, right = _MIRRORED[operator], right, left
    if not _is_extreme(left) or not _has_value(node, always):
        return node
    assert isinstance(left, syntax.Call)
    if any(whole_bound(one, bounds) is None for one in left.arguments):
        return node
    logic = "and" if (left.function, operator) in _ALL else "or"
    return syntax.Logic(
        logic, tuple(syntax.Compare((operator,), (one, right)) for one in left.arguments)
    )


def _has_value(node: syntax.Node, always: Mapping[str, tuple[Value, ...]]) -> bool:
    """Return whether the formula has a value for all values of its names.

    No name may be absent, and no entry of a table may be missing.
    """
    if isinstance(node, syntax.Name):
        return node.name in always
    if isinstance(node, syntax.Lookup):
        domain = always.get(node.key.name, ()) if isinstance(node.key, syntax.Name) else ()
        return bool(domain) and set(domain) <= {key for key, _ in node.entries}
    return all(_has_value(child, always) for child in syntax.children(node))


def _is_extreme(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Call) and node.function in ("min", "max")


def _flat_logic(operator: str, operands: Sequence[syntax.Node]) -> syntax.Node:
    flat: list[syntax.Node] = []
    for operand in operands:
        same = isinstance(operand, syntax.Logic) and operand.operator == operator
        flat += operand.operands if same and isinstance(operand, syntax.Logic) else [operand]
    return syntax.Logic(operator, tuple(flat))


def _negate(node: syntax.Node) -> syntax.Node:
    if isinstance(node, syntax.Logic) and node.operator in _OPPOSITE:
        return _flat_logic(_OPPOSITE[node.operator], [_negate(o) for o in node.operands])
    if isinstance(node, syntax.Unary) and node.operator == "not" and _is_truth(node.operand):
        return node.operand
    return syntax.Unary("not", node)


def _is_truth(node: syntax.Node) -> bool:
    return isinstance(node, syntax.Truth | syntax.Logic | syntax.Compare | syntax.Absent) or (
        isinstance(node, syntax.Unary) and node.operator == "not"
    )


def _flat_arithmetic(node: syntax.Binary, bounds: Bounds) -> syntax.Node:
    """Merge nested sums or products such as ``(a + b) + c`` into one operation.

    The right operand is merged, too, where reordering the operations gives the same result.
    """
    function = "product" if node.operator == "*" else "sum"
    right: syntax.Node = syntax.Unary("-", node.right) if node.operator == "-" else node.right
    together = syntax.Call(function, (*_operands(node.left, function), *_operands(right, function)))
    if whole_bound(together, bounds) is not None:
        return together
    return syntax.Call(function, (*_operands(node.left, function), right))


def _operands(node: syntax.Node, function: str) -> tuple[syntax.Node, ...]:
    return (
        node.arguments if isinstance(node, syntax.Call) and node.function == function else (node,)
    )


def _call_bound(node: syntax.Call, bounds: Bounds) -> float | None:
    each = [whole_bound(argument, bounds) for argument in node.arguments]
    sizes = [size for size in each if size is not None]
    if len(sizes) < len(each):
        return None
    if node.function in ("min", "max"):
        return max(sizes)
    total = sum(sizes) if node.function == "sum" else float(np.prod([max(s, 1.0) for s in sizes]))
    return total if total < _EXACT else None


def _commutes(node: syntax.Node, bounds: Bounds) -> bool:
    if isinstance(node, syntax.Logic):
        return node.operator in _OPPOSITE
    if not isinstance(node, syntax.Call):
        return False
    if node.function in ("min", "max"):
        return len(node.arguments) > 1
    return node.function in ("sum", "product") and whole_bound(node, bounds) is not None


def _merge_operands(
    node: syntax.Node,
    known: frozenset[str],
    bounds: Bounds,
    part: Callable[[syntax.Node], syntax.Node],
) -> syntax.Node:
    """Return the node with its known operands (all names are set) combined into one operand."""
    mine, rest = list[syntax.Node](), list[syntax.Node]()
    for operand in syntax.children(node):
        (mine if names_of(operand) <= known else rest).append(operand)
    rest = [fold_names(operand, known, bounds, part) for operand in rest]
    if not any(names_of(operand) for operand in mine):
        return syntax.rebuilt(node, [*mine, *rest])
    one = part(mine[0] if len(mine) == 1 else syntax.rebuilt(node, mine))
    return syntax.rebuilt(node, [one, *rest])


def _joined_start(
    node: syntax.Call,
    known: frozenset[str],
    bounds: Bounds,
    part: Callable[[syntax.Node], syntax.Node],
) -> syntax.Node:
    """Combine only the leading known operands, since a float sum depends on its order."""
    count = 0
    while names_of(node.arguments[count]) <= known:
        count += 1
    start, rest = node.arguments[:count], node.arguments[count:]
    rest = tuple(fold_names(operand, known, bounds, part) for operand in rest)
    if not any(names_of(operand) for operand in start):
        return syntax.Call(node.function, (*start, *rest))
    return syntax.Call(
        node.function, (part(start[0] if count == 1 else syntax.Call(node.function, start)), *rest)
    )
