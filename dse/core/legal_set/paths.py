"""Automata for two kinds of rules: tables of allowed combinations, and ``all_different``.

An automaton (a walk) reads the parameters one at a time. Its state is an integer that stands, for a
table, for the row prefix matched so far, and for ``all_different`` for the set of values used. It
rejects a value as soon as no allowed combination can follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.expressions.syntax import Call, Listed, Name, Node
from dse.core.parameter import Finite
from dse.core.values import Array, Ints, Mask, Value

_MOST_ITEMS = 62
"""Largest number of items whose set fits a bit mask in a 64-bit integer."""


class TableWalk:
    """Automaton that checks a table constraint; its state is the prefix of a row matched so far.

    ``names`` holds the parameters in the order in which they are set.
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
        """Return the states after one more parameter, and which of them match some table row.

        Args:
            states: current states, (n,).
            name: the parameter that is set.
            codes: its code in each state, (n,); -1 if inactive.
        """
        place = self.names.index(name)
        pairs, span = self._beginnings[place], self._spans[place]
        if not len(pairs):
            return states, np.zeros(len(states), dtype=bool)
        wanted = states * span + codes + 1
        found = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        return found, (pairs[found] == wanted) & (codes + 1 < span)

    def expand(self, states: Ints, name: str) -> tuple[Ints, Ints]:
        """Return the values that the table allows next, as pairs (index into ``states``, code).

        Args:
            states: current states, (n,).
            name: the parameter that is set.
        """
        place = self.names.index(name)
        pairs, span = self._beginnings[place], self._spans[place]
        low = np.searchsorted(pairs, states * span)
        high = np.searchsorted(pairs, (states + 1) * span)
        counts = high - low
        source = np.repeat(np.arange(len(states)), counts)
        within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        return source, pairs[low[source] + within] % span - 1


class DistinctWalk:
    """Automaton that checks ``all_different``; its state is the set of used values, a bit mask."""

    def __init__(self, bits: Mapping[str, Ints]) -> None:
        self.names = list(bits)
        self._bits = bits

    def advance(self, states: Ints, name: str, codes: Array) -> tuple[Ints, Mask]:
        """Return the sets of used values with one more value, and where that value was unused.

        Args:
            states: current bit sets, (n,).
            name: the parameter that is set.
            codes: its code in each state, (n,).
        """
        bit = self._bits[name][codes]
        return states | bit, (states & bit) == 0


Walk = TableWalk | DistinctWalk


def walk_of(
    node: Node, order: Mapping[str, int], parameters: Mapping[str, Finite], optional: frozenset[str]
) -> Walk | None:
    """Return an automaton that checks a rule while the parameters are set one after another.

    Args:
        node: the rule.
        order: position of each parameter in the order in which they are set.
        parameters: the group's parameters by name.
        optional: parameters that can be absent; most rules are satisfied if any of their parameters
            is absent.
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
    if optional >= set(names):  # the table constrains nothing where all its names are absent
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
"""Code of a value that is not in the domain."""


def _mixes_truths(values: Sequence[object], parameter: Finite) -> bool:
    """Return whether Booleans are mixed with the numbers 0 or 1, which Python treats as equal."""
    truths = {isinstance(value, bool) for value in (*values, *parameter.values) if value in (0, 1)}
    return len(truths) > 1


def _codes_of(values: Sequence[object], parameter: Finite) -> Ints:
    """Return each cell's index in the parameter's domain; -1 if empty, -2 if not in it."""
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
