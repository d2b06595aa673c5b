"""Expansion of ``worst``, ``mean`` and ``cvar`` over scenarios into formulas over metrics.

``chip.latency@chat`` is the metric in the scenario ``chat``. Inside the three functions, a metric
without a scenario stands for its values in all scenarios.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.metric import Goal
from dse.errors import SpecError, nearest
from dse.schema.study.scenarios import Scenarios
from dse.units import units

FUNCTIONS: Mapping[str, tuple[int, int | None]] = {"worst": (1, 1), "mean": (1, 1), "cvar": (2, 2)}
"""Functions over scenarios, each with its minimum and maximum number of arguments."""

Side = int
"""Direction of worse values: 1 for larger, -1 for smaller, 0 for unknown."""

_RISING = frozenset({"min", "max", "sum", "product", "sqrt", "log2", "ceil", "floor", "round"})


def worse(goal: Goal) -> Side:
    """Return the direction in which an objective gets worse: 1 if minimized, else -1."""
    return 1 if goal == "minimize" else -1


def written_out(formula: Expression, scenarios: Scenarios, side: Side) -> Expression:
    """Expand ``worst``, ``mean`` and ``cvar`` in a formula to arithmetic on metrics by scenario.

    Args:
        formula: the formula, with calls of ``worst``, ``mean`` and ``cvar``.
        scenarios: the study's scenarios.
        side: the direction in which the formula gets worse, 1 (larger) or -1; comparisons in it
            have their own.

    Raises:
        SpecError: there are no scenarios, the argument of a function does not differ between them,
            or a metric that differs is used outside of the functions.
    """
    node = _Writer(scenarios, side).written(formula.node, side)
    return Expression(formula.text, syntax.map_nodes(node, lambda one: _single(one, scenarios)))


def everywhere(formula: Expression, scenarios: Scenarios) -> Iterator[Expression]:
    """Yield a constraint once for each scenario, since it must hold in every scenario.

    It is yielded only once if its metrics outside of ``worst``, ``mean`` and ``cvar`` do not differ
    between scenarios, or state their scenario.

    Raises:
        SpecError: as :func:`written_out`, except that a metric need not state its scenario.
    """
    node = _Writer(scenarios, 0).written(formula.node, 0)
    written = Expression(formula.text, node)
    if any(name in scenarios.metrics for name in written.names):
        yield from (under(written, scenarios, scenario) for scenario in scenarios.weights)
    else:
        yield Expression(formula.text, syntax.map_nodes(node, lambda one: _single(one, scenarios)))


def under(formula: Expression, scenarios: Scenarios, scenario: str) -> Expression:
    """Return the formula for one scenario: ``worst(chip.time)`` becomes ``chip.time@chat``."""

    def plain(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Call) and node.function in FUNCTIONS:
            return node.arguments[0]
        if isinstance(node, syntax.Name):
            return syntax.Name(scenarios.under(node.name, scenario), node.column)
        return node

    node = syntax.map_nodes(formula.node, plain)
    return Expression(formula.text, syntax.map_nodes(node, lambda one: _single(one, scenarios)))


class _Writer:
    """Recursive expander of ``worst``, ``mean`` and ``cvar`` in a formula, innermost call first."""

    def __init__(self, scenarios: Scenarios, goal: Side) -> None:
        self._scenarios = scenarios
        self._goal = goal

    def written(self, node: syntax.Node, side: Side) -> syntax.Node:
        if isinstance(node, syntax.Call) and node.function in FUNCTIONS:
            return self._over(node, side)
        own = syntax.children(node)
        sides = _sides(node, side)
        if isinstance(node, syntax.Call) and node.function == "baseline":
            sides = (self._goal, 0)  # worst() has the objective's direction there
        parts = [self.written(child, at) for child, at in zip(own, sides, strict=True)]
        return syntax.rebuilt(node, parts) if own else node

    def _over(self, call: syntax.Call, side: Side) -> syntax.Node:
        weights = self._scenarios.weights
        if not weights:
            raise SpecError(
                f"{call.function}(...) is over scenarios, and the study has none",
                hint="add 'scenarios: {chat: {weight: 2, ...}, batch: {...}}'",
            )
        inner = self.written(call.arguments[0], side)
        if not any(name.name in self._scenarios.metrics for name in syntax.names_in(inner)):
            known = ", ".join(sorted(self._scenarios.metrics)) or "nothing"
            raise SpecError(
                f"nothing in this {call.function}(...) differs between scenarios",
                hint=f"what differs: {known}",
            )
        parts = [self._under(inner, scenario) for scenario in weights]
        match call.function:
            case "worst":
                return _worst(parts, side)
            case "mean":
                return _add_nodes(
                    [_times(w, part) for w, part in zip(weights.values(), parts, strict=True)]
                )
            case _:
                return _tail(parts, list(weights.values()), _level(call.arguments[1]), side)

    def _under(self, node: syntax.Node, scenario: str) -> syntax.Node:
        def named(one: syntax.Node) -> syntax.Node:
            if isinstance(one, syntax.Name):
                return syntax.Name(self._scenarios.under(one.name, scenario), one.column)
            return one

        return syntax.map_nodes(node, named)


def _worst(parts: Sequence[syntax.Node], side: Side) -> syntax.Node:
    return (
        parts[0]
        if len(parts) == 1
        else syntax.Call("max" if _check_side(side) > 0 else "min", tuple(parts))
    )


def _tail(
    parts: Sequence[syntax.Node], weights: Sequence[float], level: float, side: Side
) -> syntax.Node:
    """Build the CVaR formula: the mean of the worst cases with total probability ``1 - level``.

    Source:
        Rockafellar, Uryasev: Optimization of Conditional Value-at-Risk, Journal of Risk 2000,
        theorem 1: the minimum over t of t + E[max(0, x - t)] / (1 - level). For finitely many
        cases, the minimum is at one of their values.
    """
    if len(parts) == 1:
        return parts[0]
    sign = "+" if _check_side(side) > 0 else "-"

    def beyond(limit: syntax.Node) -> syntax.Node:
        over = [
            syntax.Binary("-", x, limit) if sign == "+" else syntax.Binary("-", limit, x)
            for x in parts
        ]
        share = 1 - level
        return _add_nodes(
            [
                _times(weight / share, syntax.Call("max", (syntax.Number(0), one)))
                for weight, one in zip(weights, over, strict=True)
            ]
        )

    tails = tuple(syntax.Binary(sign, limit, beyond(limit)) for limit in parts)
    return syntax.Call("min" if sign == "+" else "max", tails)


def _level(node: syntax.Node) -> float:
    if isinstance(node, syntax.Number) and units.same_dimension(node.unit, ""):
        level = node.value * units.factor(node.unit)
        if 0 <= level < 1:
            return level
    raise SpecError(
        "the level of cvar is a number from 0 to below 1", hint="cvar(chip.latency, 0.9)"
    )


def _check_side(side: Side) -> Side:
    if side == 0:
        raise SpecError(
            "it is unknown here whether larger or smaller values are worse",
            hint="put the entire formula inside: worst(abs(chip.latency - 3 ms))",
        )
    return side


def _single(node: syntax.Node, scenarios: Scenarios) -> syntax.Node:
    """Return a metric's name with its scenario resolved; other nodes are returned unchanged.

    Raises:
        SpecError: the metric differs between scenarios and none is stated, or it is unknown.
    """
    if not isinstance(node, syntax.Name):
        return node
    if node.name in scenarios.metrics:
        name, one = node.name, next(iter(scenarios.weights))
        raise SpecError(
            f"{name} differs between scenarios",
            hint=f"worst({name}), mean({name}), cvar({name}, 0.9), or one of them: {name}@{one}",
        )
    plain, mark, scenario = node.name.partition("@")
    if not mark:
        return node
    if scenario not in scenarios.weights:
        raise SpecError(
            f"there is no scenario {scenario!r}", hint=nearest(scenario, scenarios.weights)
        )
    return syntax.Name(scenarios.under(plain, scenario), node.column)


def _sides(node: syntax.Node, side: Side) -> Sequence[Side]:
    """Return, for each operand, whether growing (1) or shrinking (-1) makes the node worse.

    ``side`` is that direction for the node: 1 for larger, -1 for smaller, 0 for unknown. Factors
    and divisors are assumed to be positive.
    """
    match node:
        case syntax.Unary(operator="-"):
            return (-side,)
        case syntax.Binary(operator="-" | "/"):
            return side, -side
        case syntax.Binary(operator="+"):
            return side, side
        case syntax.Binary(operator="*"):
            return _factor(node.right, side), _factor(node.left, side)
        case syntax.Call(function="ratio"):
            return side, 0
        case syntax.Call() if node.function in _RISING:
            return (side,) * len(node.arguments)
        case syntax.Compare():
            return _orient_operands(node)
        case _:
            return (0,) * len(syntax.children(node))


def _factor(other: syntax.Node, side: Side) -> Side:
    """Return the direction in which a factor makes a product worse.

    It is reversed if the other factor is a negative constant.
    """
    negative = isinstance(other, syntax.Number) and other.value < 0
    return -side if negative else side


def _orient_operands(node: syntax.Compare) -> Sequence[Side]:
    """Return, for each operand, the direction that makes the comparison harder to fulfil.

    It is 1 (larger) on the left of ``<=``, -1 on its right, and 0 for an operand between two
    comparisons.
    """
    after: list[Side] = [1 if op in ("<", "<=") else -1 for op in node.operators]
    return [after[0], *(0 for _ in after[1:]), -after[-1]]


def _times(weight: float, node: syntax.Node) -> syntax.Node:
    return syntax.Binary("*", syntax.Number(weight), node)


def _add_nodes(nodes: Sequence[syntax.Node]) -> syntax.Node:
    return reduce(lambda one, other: syntax.Binary("+", one, other), nodes)
