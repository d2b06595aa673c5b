"""Rules that are followed one parameter at a time: a table of combinations, all values different.

A walk has a state, a whole number: for a table the beginning of a row that was matched so far, for
different values the set of those that were used. It refuses a value as soon as it cannot go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.expressions.expression import Call, Listed, Name, Node
from dse.core.parameter import Finite
from dse.core.values import Array, Ints, Mask, Value

_MOST_ITEMS = 62
"""A set of more items than this does not fit a machine word."""


class TableWalk:
    """Follows the rows of a table of allowed combinations; its state is a beginning of a row.

    ``names`` are in the order in which they are set, as in every walk.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Ints,  # (r, k), codes in the order of ``names``
    ) -> None:
        self.names = list(names)
        self._beginnings: list[Ints] = []
        self._spans: list[int] = []
        state = np.zeros(len(rows), dtype=np.int64)
        for place in range(len(self.names)):
            span = int(rows[:, place].max(initial=-1)) + 2
            pairs, state = np.unique(state * span + rows[:, place] + 1, return_inverse=True)
            self._beginnings.append(pairs)
            self._spans.append(span)

    def advance(self, states: Ints, name: str, codes: Array) -> tuple[Ints, Mask]:
        """The states after the codes, and which of them are on a row."""
        place = self.names.index(name)
        pairs, span = self._beginnings[place], self._spans[place]
        if not len(pairs):
            return states, np.zeros(len(states), dtype=bool)
        wanted = states * span + codes + 1
        found = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        return found, (pairs[found] == wanted) & (codes + 1 < span)

    def expanded(self, states: Ints, name: str) -> tuple[Ints, Ints]:
        """For each state in turn the codes that it allows: places of states, and codes."""
        place = self.names.index(name)
        pairs, span = self._beginnings[place], self._spans[place]
        low = np.searchsorted(pairs, states * span)
        high = np.searchsorted(pairs, (states + 1) * span)
        counts = high - low
        source = np.repeat(np.arange(len(states)), counts)
        within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        return source, pairs[low[source] + within] % span - 1


class DistinctWalk:
    """Follows ``all_different``; its state is the set of values used, one bit each."""

    def __init__(self, bits: Mapping[str, Ints]) -> None:
        self.names = list(bits)
        self._bits = bits

    def advance(self, states: Ints, name: str, codes: Array) -> tuple[Ints, Mask]:
        """The sets with the codes' values added, and where they were not in already."""
        bit = self._bits[name][codes]
        return states | bit, (states & bit) == 0


Walk = TableWalk | DistinctWalk


def walk_of(
    node: Node, order: Mapping[str, int], parameters: Mapping[str, Finite], optional: frozenset[str]
) -> Walk | None:
    """The walk that follows a rule; ``None`` for a rule that has none.

    Args:
        node: the rule.
        order: the turn in which each parameter is set.
        parameters: the group's parameters by name.
        optional: those that can be absent, where most rules are vacuous.
    """
    match node:
        case Listed(negated=False):
            return _table_walk(node, order, parameters, optional)
        case Call(function="all_different"):
            return _distinct_walk(node, order, parameters, optional)
        case _:
            return None


def _table_walk(
    node: Listed,
    order: Mapping[str, int],
    parameters: Mapping[str, Finite],
    optional: frozenset[str],
) -> TableWalk | None:
    names = [name.name for name in node.names]
    if len(set(names)) < len(names):
        return None
    listed = node.rows
    if optional >= set(names):  # where all are absent, the table asks for nothing
        listed = (*listed, (None,) * len(names))
    columns = []
    for place, name in enumerate(names):
        values = [row[place] for row in listed]
        if _mixes_truths(values, parameters[name]):
            return None
        columns.append(_codes_of(values, parameters[name]))
    rows = np.column_stack(columns) if listed else np.zeros((0, len(names)), dtype=np.int64)
    rows = rows[(rows > _UNKNOWN).all(axis=1)]
    turns = sorted(range(len(names)), key=lambda place: order[names[place]])
    return TableWalk([names[place] for place in turns], rows[:, turns])


_UNKNOWN = -2


def _mixes_truths(values: Sequence[object], parameter: Finite) -> bool:
    """True if a truth and a number stand for one another: 1 equals true, and is another value."""
    truths = {isinstance(value, bool) for value in (*values, *parameter.values) if value in (0, 1)}
    return len(truths) > 1


def _codes_of(values: Sequence[object], parameter: Finite) -> Ints:
    """The code of each value in the domain; -1 for a blank, -2 for what is never legal."""
    codes = {(isinstance(v, bool | str), v): code for code, v in enumerate(parameter.values)}
    found = [
        -1 if value is None else codes.get((isinstance(value, bool | str), value), _UNKNOWN)  # type: ignore[arg-type]
        for value in values
    ]
    return np.array(found, dtype=np.int64)


def _distinct_walk(
    node: Call,
    order: Mapping[str, int],
    parameters: Mapping[str, Finite],
    optional: frozenset[str],
) -> DistinctWalk | None:
    names = [argument.name for argument in node.arguments if isinstance(argument, Name)]
    if len(names) < len(node.arguments) or len(set(names)) < len(names) or optional & set(names):
        return None
    names.sort(key=lambda name: order[name])
    domains: list[tuple[Value, ...]] = [parameters[name].values for name in names]
    items = dict.fromkeys(value for values in domains for value in values)
    if len(items) > _MOST_ITEMS:
        return None
    bit = {item: 1 << place for place, item in enumerate(items)}
    return DistinctWalk(
        {
            name: np.array([bit[value] for value in values], dtype=np.int64)
            for name, values in zip(names, domains, strict=True)
        }
    )
