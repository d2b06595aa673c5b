"""Relaxation of a budget (a linear constraint over many parameters) by rounding partial sums.

Real layer sizes (``3 * 2**20 + 3072``) give more distinct partial sums than a graph can hold. Here
each partial sum is rounded down to a multiple of a step, the grid. The result is a superset: it
contains every combination within the budget, and some that exceed it slightly, which the caller
rejects. Parameters whose costs share a unit (a common divisor) are set consecutively on a grid that
divides the unit, so that rounding loses precision only where the unit changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Binary, Call, Compare, Node, Unary
from dse.core.legal_set.blocks import ParameterBlock
from dse.core.legal_set.decision_diagram import Diagram
from dse.core.legal_set.diagram_builder import Codes, Layer
from dse.core.legal_set.residual_rules import names_of
from dse.core.parameter import Finite
from dse.core.values import Array, Floats, Ints, Value
from dse.errors import DesignError

_MARGIN = 1e-9
"""Relative tolerance of the grid: the rule itself may round sums in another order."""

_DUST = 1e-8
"""Bound on the rounding error of the logarithm of a count."""

_MOST_UNITS = 10**6

_HINT = "draw a uniform sample instead"

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
        """Return the same budget over blocks of parameters: a cost per combination of a block."""
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


class RelaxedBudget:
    """Superset of the combinations within a budget: those whose rounded total cost is within it.

    Combinations are counted and drawn parameter by parameter. Counts are computed as logarithms,
    and ``count`` is rounded up. ``exact`` is true if nothing is rounded: each cost is an integer
    and a multiple of its parameter's rounding step (grid).

    Args:
        linear: the costs and the bounds on their sum.
        states: approximate number of distinct partial sums at each parameter.
        blocks: parameters that are set together, each block with at least one combination;
            ``None`` makes each parameter a block of its own.
    """

    def __init__(
        self, linear: Linear, states: int, blocks: Sequence[ParameterBlock] | None = None
    ) -> None:
        self._blocks = (
            [_single(p, c) for p, c in enumerate(linear.costs)] if blocks is None else blocks
        )
        linear = linear if blocks is None else linear.over(blocks)
        units = [_unit(costs) for costs in linear.costs]
        self.turns = sorted(range(len(units)), key=lambda p: (units[p], linear.costs[p].max()))
        self.order = [place for turn in self.turns for place in self._blocks[turn].places]
        grids = _grids(linear, units, self.turns, states)
        self._moves = [
            np.floor(linear.costs[place] / grid + _MARGIN).astype(np.int64)
            for place, grid in zip(self.turns, grids, strict=True)
        ]
        after = [*grids[1:], grids[-1]]
        self._ratios = [grid / then for grid, then in zip(grids, after, strict=True)]
        lost = sum(
            grid
            for place, grid in zip(self.turns, grids, strict=True)
            if not _divides(grid, linear.costs[place])
        )
        lost += sum(grid for grid, before in zip(grids[1:], grids, strict=False) if grid != before)
        self.exact = not lost and linear.is_whole
        self._tops = self._compute_tops([linear.most / grid for grid in [*grids, grids[-1]]])
        self._ways = self._count_completions(grids[-1], linear, lost)
        self.edges = sum(
            len(moves) * len(ways) for moves, ways in zip(self._moves, self._ways, strict=False)
        )
        self.count = _whole(float(self._ways[0][0]))

    def at(self, ranks: Array) -> Codes:
        """Raise DesignError: a superset of the legal combinations has no enumeration order.

        Raises:
            DesignError: always.
        """
        raise DesignError(f"{len(ranks)} designs of an uncounted space have no index", hint=_HINT)

    def ranks(self, codes: Codes) -> Array:
        """Raise DesignError, as :meth:`at` does.

        Raises:
            DesignError: always.
        """
        raise DesignError(f"{len(codes)} designs of an uncounted space have no index", hint=_HINT)

    def occurrences(self, sizes: Sequence[int]) -> list[list[int]]:
        """Raise DesignError, as :meth:`at` does.

        Raises:
            DesignError: always.
        """
        raise DesignError(
            f"the values of {len(sizes)} parameters cannot be counted exactly", hint=_HINT
        )

    def draw(self, count: int, rng: np.random.Generator) -> Codes:
        """Return combinations drawn uniformly, (count, k)."""
        return self.spread(rng.random((count, len(self.order))))

    def spread(
        self,
        points: Floats,  # (n, k), in [0, 1), one coordinate per layer
    ) -> Codes:
        """Map points of the unit cube to combinations, (n, k); uniform points map to uniform."""
        codes = np.zeros((len(points), len(self.turns)), dtype=np.int32)
        spent = np.zeros(len(points), dtype=np.int64)
        for turn, place in enumerate(self.turns):
            states, state = np.unique(spent, return_inverse=True)
            then = self._after(turn, states)  # (values, states)
            code = _pick_codes(
                np.exp(self._ways[turn + 1][then] - self._ways[turn][states]),
                state,
                points[:, turn],
            )
            codes[:, place] = code
            spent = then[code, state]
        return self._expand_blocks(codes)

    def chunks(self, size: int) -> Iterator[Codes]:
        """Yield all combinations in lexicographic order, as arrays of at most ``size`` rows."""
        graph = Diagram(self.layers(), self.turns)
        for start in range(0, graph.count, size):
            yield self._expand_blocks(graph.at(np.arange(start, min(start + size, graph.count))))

    def _expand_blocks(self, chosen: Codes) -> Codes:
        """Return the codes of all parameters, (n, k), given the combination index in each block."""
        codes = np.empty((len(chosen), len(self.order)), dtype=np.int32)
        for turn, block in enumerate(self._blocks):
            codes[:, block.places] = block.rows[chosen[:, turn]]
        return codes

    def layers(self) -> list[Layer]:
        """Return the combinations as the layers of a decision diagram, one layer per block."""
        layers = list[Layer]()
        for turn, top in enumerate(self._tops[:-1]):
            ends = turn == len(self._moves) - 1
            then = self._after(turn, np.arange(top + 1)).T
            fits = self._ways[turn + 1][then] > -np.inf
            source, code = np.nonzero(fits)
            target = np.zeros(len(source), dtype=np.int64) if ends else then[fits]
            states = min(len(source), 1) if ends else self._tops[turn + 1] + 1
            layers.append(Layer(source, code.astype(np.int32), target, states))
        return layers

    def _compute_tops(self, caps: Sequence[float]) -> list[int]:
        """Return the largest partial sum before each block and at the end, in rounding steps."""
        tops, top = [0], 0
        for turn, moves in enumerate(self._moves):
            top = int((top + int(moves.max())) * self._ratios[turn] + _MARGIN)
            top = min(top, int(caps[turn + 1] * (1 + _MARGIN) + 1e-3))
            tops.append(max(top, 0))
        return tops

    def _after(self, turn: int, spent: Ints) -> Ints:
        """Return the partial sum after each value of a block, (values, n), in rounding steps.

        Sums that exceed the budget are all set to one step more than the largest allowed sum.
        """
        then: Array = spent[None, :] + self._moves[turn][:, None]
        if self._ratios[turn] != 1:
            then = np.floor(then * self._ratios[turn] + _MARGIN).astype(np.int64)
        return np.minimum(then, self._tops[turn + 1] + 1)

    def _count_completions(self, grid: float, linear: Linear, lost: float) -> list[Floats]:
        """Return, by layer, the log-count of completions within the budget for each partial sum."""
        ends = np.arange(self._tops[-1] + 2) * grid
        slack = _MARGIN * (abs(linear.most) + abs(linear.least)) + 1e-3 * grid
        fits = (ends <= linear.most + slack) & (ends + lost + slack >= linear.least)
        fits[-1] = False
        with np.errstate(divide="ignore"):
            ways = [np.log(fits.astype(float))]
        for turn in reversed(range(len(self._moves))):
            spent = np.arange(self._tops[turn] + 1)
            total = np.logaddexp.reduce(ways[0][self._after(turn, spent)], axis=0)
            ways.insert(0, np.append(total, -np.inf))
        return ways


def _pick_codes(weights: Floats, state: Ints, points: Floats) -> Ints:
    """Draw a value code for each of n points, in proportion to the weights of its state, (n,).

    ``points`` are the uniform random numbers. Each state's weights are accumulated only once.

    Args:
        weights: of each value in each state, (values, states); some in each state are positive.
        state: the state of each point, (n,).
        points: uniform numbers in [0, 1), (n,).
    """
    passed = np.cumsum(weights, axis=0)
    ends = (np.arange(weights.shape[1])[:, None] + (passed / passed[-1]).T).ravel()
    code = np.searchsorted(ends, state + points, side="right") - state * len(weights)
    last = len(weights) - 1 - np.argmax(weights[::-1] > 0, axis=0)
    return np.minimum(code, last[state])


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
    """Return the number of edges of a budget's exact diagram, or some number above ``most``.

    Partial sums after which the budget can no longer be exceeded are counted as one state, because
    the diagram merges them.
    """
    left = np.cumsum([0.0, *(costs.max() for costs in reversed(linear.costs))])[::-1]
    sums, edges = np.zeros(1), 0
    for costs, ahead in zip(linear.costs, left[1:], strict=True):
        edges += len(sums) * len(costs)
        if edges > most:
            break
        sums = np.unique(np.round(sums[:, None] + costs, 9))
        sums = sums[sums <= linear.most * (1 + _MARGIN)]
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


def _single(place: int, costs: Floats) -> ParameterBlock:
    return ParameterBlock((place,), np.arange(len(costs), dtype=np.int32)[:, None])


def _unit(costs: Floats) -> float:
    """Return the unit of a parameter's costs: for integers, the greatest common divisor.

    For other costs it is the least positive cost; 0 if all costs are 0.
    """
    positive = costs[costs > 0]
    if not len(positive):
        return 0.0
    if (positive == np.floor(positive)).all() and positive.max() < 2**53:
        return float(np.gcd.reduce(positive.astype(np.int64)))
    return float(positive.min())


def _divides(grid: float, costs: Floats) -> bool:
    """Return whether all costs are integer multiples of the rounding step."""
    steps = costs / grid
    whole = bool((costs == np.floor(costs)).all())
    return whole and bool((np.abs(steps - np.round(steps)) <= _MARGIN).all())


def _grids(
    linear: Linear, units: Sequence[float], order: Sequence[int], states: int
) -> list[float]:
    """Return the rounding step of each parameter's partial sums, in the order of setting them.

    It is a divisor of the unit of the costs, or a multiple if that gives more than ``states`` sums.
    """
    reach = np.cumsum([linear.costs[place].max() for place in order])
    ends = {
        units[place]: min(float(total), linear.most)
        for place, total in zip(order, reach, strict=True)
    }
    grids = []
    for place in order:
        unit, coarse = units[place], max(ends[units[place]], 0.0) / states
        if unit <= 0 or coarse <= 0:
            grids.append(unit or 1.0)
        elif unit >= coarse:
            grids.append(unit / math.floor(min(unit / coarse, _MOST_UNITS)))
        else:
            grids.append(unit * math.ceil(coarse / unit))
    return grids


def _whole(logarithm: float) -> int:
    """Return ``exp(logarithm)``, rounded up to an integer."""
    if logarithm == -math.inf:
        return 0
    bits = (logarithm + _DUST) / math.log(2)
    shift = max(int(bits) - 60, 0)
    return math.ceil(2.0 ** (bits - shift)) << shift
