"""Linear constraints on the values of parameters: recognition, costs and exact size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Binary, Call, Compare, Node, Unary
from dse.core.legal_set.blocks import ParameterBlock
from dse.core.legal_set.residual_rules import names_of
from dse.core.parameter import Finite
from dse.core.values import Floats, Value

MARGIN = 1e-9
"""Relative tolerance of sums of costs: the rule itself may round them in another order."""

Domains = Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True)
class Linear:
    """Linear constraint ``least <= total cost <= most`` on a combination of parameter values.

    Each value of each parameter has a cost; the lowest cost of each parameter is zero.
    """

    costs: tuple[Floats, ...]  # one per parameter or block, (values,)
    least: float
    most: float
    is_strict: bool = False  # the rule excludes the bounds, which the relaxation still admits

    @property
    def is_whole(self) -> bool:
        """Whether all costs are integers and their sums exact in floating point."""
        return sum(float(costs.max(initial=0.0)) for costs in self.costs) < 2**53 and all(
            bool((costs == np.floor(costs)).all()) for costs in self.costs
        )

    def over(self, blocks: Sequence[ParameterBlock]) -> Linear:
        """Return an equal constraint over blocks of parameters, with a cost per combination."""
        costs = [
            np.sum(
                [self.costs[place][block.rows[:, turn]] for turn, place in enumerate(block.places)],
                axis=0,
            )
            for block in blocks
        ]
        lowest = [float(np.min(one, initial=np.inf)) for one in costs]
        shift = sum(low for low in lowest if low < np.inf)
        return Linear(
            costs=tuple(one - low for one, low in zip(costs, lowest, strict=True)),
            least=self.least - shift,
            most=self.most - shift,
            is_strict=self.is_strict,
        )


def linear_of(parameters: Sequence[Finite], rule: Expression) -> Linear | None:
    """Return the rule as a linear constraint; ``None`` if it is not separable.

    It is separable if both sides are sums of terms that read at most one parameter each.

    Args:
        parameters: the group's parameters.
        rule: the rule.
    """
    node = rule.node
    if not isinstance(node, Compare) or len(node.operators) != 1 or node.operators[0] == "!=":
        return None
    costs = {parameter.name: np.zeros(len(parameter.values)) for parameter in parameters}
    domains = {parameter.name: parameter.values for parameter in parameters}
    left = _add(node.operands[0], 1.0, costs, domains)
    right = None if left is None else _add(node.operands[1], -1.0, costs, domains)
    if left is None or right is None:
        return None
    constant = left + right
    most, least = -constant, -constant
    if node.operators[0] in (">", ">="):
        costs, most = {name: -one for name, one in costs.items()}, constant
    shift = sum(float(one.min()) for one in costs.values())
    return Linear(
        costs=tuple(one - one.min() for one in costs.values()),
        most=most - shift,
        least=least - shift if node.operators[0] == "==" else -math.inf,
        is_strict=node.operators[0] in ("<", ">"),
    )


def least_edges(linear: Linear, most: int) -> int:
    """Return the number of edges of the exact decision diagram of a linear constraint.

    Counting ends early with a number above ``most``. The diagram has a state for each distinct
    partial sum of costs. Partial sums after which the constraint certainly holds are counted as one
    state, because the diagram merges them.
    """
    left = np.cumsum([0.0, *(costs.max() for costs in reversed(linear.costs))])[::-1]
    sums, edges = np.zeros(1), 0
    for costs, ahead in zip(linear.costs, left[1:], strict=True):
        edges += len(sums) * len(costs)
        if edges > most:
            break
        sums = np.unique(np.round(sums[:, None] + costs, 9))
        sums = sums[sums <= linear.most * (1 + MARGIN)]
        safe = (sums + ahead <= linear.most) & (sums >= linear.least)
        sums = np.append(sums[~safe], sums[safe][:1])
    return edges


def _add(node: Node, factor: float, costs: Mapping[str, Floats], domains: Domains) -> float | None:
    """Add each parameter's terms of a sum to ``costs``; return the constant part of the sum.

    The result is ``None`` if a term reads more than one parameter.
    """
    names = names_of(node)
    if len(names) <= 1:
        return _add_term(node, factor, costs, domains)
    match node:
        case Binary(operator="+" | "-"):
            parts = [(node.left, factor), (node.right, factor if node.operator == "+" else -factor)]
        case Unary(operator="-"):
            parts = [(node.operand, -factor)]
        case Call(function="sum"):
            parts = [(argument, factor) for argument in node.arguments]
        case Binary(operator="*" | "/"):
            return _add_multiple(node, factor, costs, domains)
        case _:
            return None
    total = 0.0
    for part, sign in parts:
        one = _add(part, sign, costs, domains)
        if one is None:
            return None
        total += one
    return total


def _add_multiple(
    node: Binary, factor: float, costs: Mapping[str, Floats], domains: Domains
) -> float | None:
    sides = [node.left, node.right]
    scales = [side for side in sides if not names_of(side)]
    if not scales or (node.operator == "/" and names_of(node.right)):
        return None
    scale = float(Expression("", scales[0]).values({}, 1).values[0])
    if not math.isfinite(scale) or (node.operator == "/" and not scale):
        return None
    rest = node.left if scales[0] is node.right else node.right
    return _add(rest, factor * scale if node.operator == "*" else factor / scale, costs, domains)


def _add_term(
    node: Node, factor: float, costs: Mapping[str, Floats], domains: Domains
) -> float | None:
    (name,) = names_of(node) or ("",)
    domain = domains.get(name, ())
    columns = {name: Column.coded(domain, np.arange(len(domain)))} if name else {}
    found = Expression("", node).values(columns, max(len(domain), 1))
    if found.absent is not None or found.values.dtype.kind not in "biuf":
        return None
    values = factor * found.values.astype(float)
    if not np.isfinite(values).all():
        return None
    if not name:
        return float(values[0])
    costs[name][:] += values
    return 0.0
