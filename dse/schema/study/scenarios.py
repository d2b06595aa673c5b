"""Scenarios, such as workloads, in evaluators and in formulas.

An evaluator is copied for each scenario that changes it. A metric that differs between scenarios
exists once per scenario, as ``chip.latency@chat``. Equal scenarios of an evaluator share a copy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.metric import Goal
from dse.errors import SpecError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import order_evaluators
from dse.protocols import Evaluator
from dse.schema.models import ScenarioSpec
from dse.schema.study.fixed_inputs import FixedInputs, reading_of, reads_any
from dse.units import units

ANYWHERE = ""
"""Name of the only scenario of a study that declares none."""

_FIXED = {"use", "bind", "parts", "replicates", "resources", "exclusive"}
"""Keys of an evaluator in the study file that are not options of its plug-in."""


@dataclass(frozen=True, kw_only=True)
class Scenarios:
    """Weights of a study's scenarios, and the metric names that they introduce.

    ``weights`` sum to 1. ``metrics`` maps each metric that differs between scenarios to its name in
    each scenario: ``{'chip.latency': {'chat': 'chip.latency@chat'}}``.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def under(self, name: str, scenario: str) -> str:
        """Return the metric's name in a scenario: ``chip.latency@chat`` for ``chip.latency``."""
        return self.metrics.get(name, {}).get(scenario, name)


def weights_of(specs: Mapping[str, ScenarioSpec]) -> dict[str, float]:
    """Return the scenario weights, normalized to a sum of 1."""
    total = sum(spec.weight for spec in specs.values())
    return {name: spec.weight / total for name, spec in specs.items()}


def check_scenario(
    name: str, spec: ScenarioSpec, evaluators: Collection[str], parameters: Collection[str]
) -> None:
    """Check that a scenario changes only evaluators, options and inputs that the study has.

    Raises:
        SpecError: the scenario's name is not an identifier, it changes an unknown evaluator or a
            key that is not an option, or it fixes a parameter of the space.
    """
    if not name.isidentifier():
        raise SpecError(
            f"{name!r} cannot stand in a formula", hint="letters, digits and '_', such as rush_hour"
        )
    for one, options in spec.options.items():
        if one not in evaluators:
            hint = nearest(one, ["weight", "values", *evaluators])
            raise SpecError(f"there is no evaluator {one!r}", hint=hint)
        for key in sorted(_FIXED & options.keys()):
            raise SpecError(
                f"a scenario can change the options of {one}, but not its {key!r}",
                hint="declare a second evaluator",
            )
    for reading in spec.values:
        if reading in parameters:
            raise SpecError(
                f"{reading} is a parameter of the space, so a scenario cannot fix its value",
                hint="remove it from the space if it is not part of the search",
            )


def version_of(spec: ScenarioSpec, made: Evaluator) -> Evaluator:
    """Return the evaluator with inputs fixed to the values that a scenario states.

    Args:
        spec: the scenario.
        made: the evaluator, created with the scenario's options.

    Raises:
        SpecError: a value has a unit of another dimension than the input.
    """
    values = {
        reading: reading_of(made, reading, value)
        for reading, value in spec.values.items()
        if reads_any(made, reading)
    }
    return FixedInputs(made, values) if values else made


def check_alike(name: str, scenario: str, one: Evaluator, first: Evaluator) -> None:
    """Check that an evaluator reports the same metrics under a scenario as under the first.

    Raises:
        SpecError: the metrics differ, or one of them has another unit.
    """
    lacking = sorted(first.provides.keys() ^ one.provides.keys())
    if lacking:
        raise SpecError(
            f"under {scenario!r}, {name} reports other metrics than under the first scenario: "
            f"{', '.join(lacking)}",
            hint="a scenario may change the values of metrics, not which metrics there are",
        )
    for own, metric in one.provides.items():
        if metric.unit != first.provides[own].unit:
            raise SpecError(
                f"under {scenario!r}, {name}.{own} is in {metric.unit or 'no unit'}, and under "
                f"the first scenario in {first.provides[own].unit or 'no unit'}"
            )


def merge_scenarios(
    versions: Mapping[str, Mapping[str, Bound]], weights: Mapping[str, float]
) -> tuple[list[Bound], Scenarios]:
    """Return the distinct evaluators of all scenarios in topological order, and the metric names.

    Metrics that differ between scenarios get the scenario in their name.

    Args:
        versions: each evaluator under each scenario, with inputs named by metrics without a
            scenario; the same object where scenarios do not change it.
        weights: the normalized weight of each scenario; empty for a study without scenarios.

    Raises:
        SpecError: two evaluators report the same metric, or their inputs form a cycle.
    """
    metrics: dict[str, Mapping[str, str]] = {}
    found: list[Bound] = []
    for first in order_evaluators([next(iter(own.values())) for own in versions.values()]):
        cast: dict[str, Bound] = {}
        seen: dict[tuple[int, str], Bound] = {}
        for scenario, plain in versions[first.name].items():
            names = {own: metrics.get(n, {}).get(scenario, n) for own, n in plain.names.items()}
            key = (id(plain), json.dumps(names, sort_keys=True))
            cast[scenario] = seen.setdefault(key, replace(plain, names=names, scenario=scenario))
        if len(seen) == 1:
            found.append(replace(cast[next(iter(cast))], scenario=ANYWHERE))
            continue
        found += seen.values()
        for own in first.evaluator.provides:
            metrics[first.metric(own)] = {s: one.metric(own) for s, one in cast.items()}
    return found, Scenarios(weights=weights, metrics=metrics)


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
        side: the direction in which the formula gets worse, 1 (larger) or -1; each comparison in
            the formula has sides of its own.

    Raises:
        SpecError: there are no scenarios, the argument of a function does not differ between them,
            or a metric that differs is used outside of the functions.
    """
    node = _Writer(scenarios, side).written(formula.node, side)
    return Expression(formula.text, syntax.map_nodes(node, lambda one: _single(one, scenarios)))


def everywhere(formula: Expression, scenarios: Scenarios) -> Iterator[Expression]:
    """Yield a constraint once for each scenario, since it must hold in every scenario.

    A constraint is yielded only once if it is the same in every scenario: each of its metrics has
    one value for all scenarios, names its scenario, or is inside ``worst``, ``mean`` or ``cvar``.

    Raises:
        SpecError: there are no scenarios, or a function's argument does not differ between them.
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
