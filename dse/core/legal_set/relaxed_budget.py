"""Relaxation of a budget (a linear constraint over many parameters) by rounding partial sums.

Real layer sizes (``3 * 2**20 + 3072``) give more distinct partial sums than a graph can hold. Here
each partial sum is rounded down to a multiple of a step, the grid. The result is a superset: it
contains every combination within the budget, and some that exceed it slightly, which the caller
rejects. Parameters whose costs share a unit (a common divisor) are set consecutively on a grid that
divides the unit, so that rounding loses precision only where the unit changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dse.core.legal_set.blocks import ParameterBlock
from dse.core.legal_set.decision_diagram import Codes, Diagram, Layer
from dse.core.legal_set.linear_constraint import MARGIN, Linear
from dse.core.values import Array, Floats, Ints
from dse.errors import DesignError

_DUST = 1e-8
"""Bound on the rounding error of the logarithm of a count."""

_MOST_UNITS = 10**6

_HINT = "draw a uniform sample instead"


class RelaxedBudget:
    """Superset of the combinations within a budget, defined by rounding partial sums of the costs.

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
            np.floor(linear.costs[place] / grid + MARGIN).astype(np.int64)
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
        """Raise DesignError: a superset of the legal combinations gives them no index.

        Raises:
            DesignError: always.
        """
        raise DesignError(f"{len(codes)} designs of an uncounted space have no index", hint=_HINT)

    def occurrences(self, sizes: Sequence[int]) -> list[list[int]]:
        """Raise DesignError: a superset of the legal combinations does not count their values.

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
        """Map points of the unit cube to combinations, (n, k), preserving uniformity."""
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
            top = int((top + int(moves.max())) * self._ratios[turn] + MARGIN)
            top = min(top, int(caps[turn + 1] * (1 + MARGIN) + 1e-3))
            tops.append(max(top, 0))
        return tops

    def _after(self, turn: int, spent: Ints) -> Ints:
        """Return the partial sum after each value of a block, (values, n), in rounding steps.

        Args:
            turn: index of the block, in the order in which blocks are set.
            spent: partial sums before this block, (n,), in rounding steps.

        Sums that exceed the budget are all set to one step more than the largest allowed sum.
        """
        then: Array = spent[None, :] + self._moves[turn][:, None]
        if self._ratios[turn] != 1:
            then = np.floor(then * self._ratios[turn] + MARGIN).astype(np.int64)
        return np.minimum(then, self._tops[turn + 1] + 1)

    def _count_completions(self, grid: float, linear: Linear, lost: float) -> list[Floats]:
        """Return, by layer, the log-count of completions within the budget for each partial sum."""
        ends = np.arange(self._tops[-1] + 2) * grid
        slack = MARGIN * (abs(linear.most) + abs(linear.least)) + 1e-3 * grid
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
        weights: weight of each value in each state, (values, states); each state has a positive
            weight.
        state: the state of each point, (n,).
        points: uniform numbers in [0, 1), (n,).
    """
    passed = np.cumsum(weights, axis=0)
    ends = (np.arange(weights.shape[1])[:, None] + (passed / passed[-1]).T).ravel()
    code = np.searchsorted(ends, state + points, side="right") - state * len(weights)
    last = len(weights) - 1 - np.argmax(weights[::-1] > 0, axis=0)
    return np.minimum(code, last[state])


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
    return whole and bool((np.abs(steps - np.round(steps)) <= MARGIN).all())


def _grids(
    linear: Linear, units: Sequence[float], order: Sequence[int], states: int
) -> list[float]:
    """Return the rounding step of each parameter's partial sums, in the order of setting them.

    The step is a divisor of the unit of the costs, or a multiple of the unit if divisors give more
    than ``states`` sums.
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
