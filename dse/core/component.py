"""A group of coupled parameters and the table of all their legal combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Column
from dse.core.expression import Expression
from dse.core.parameter import Finite
from dse.core.values import Floats, Ints, Mask, Value

Codes = NDArray[np.int32]

MAX_ROWS = 4_000_000
"""A group with more legal combinations than this is sampled by rejection and not listed."""

_CHUNK = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Component:
    """Parameters that rules tie together, directly or through others.

    ``rows`` holds one code per parameter and legal combination, -1 for an inactive parameter,
    sorted; it is ``None`` where there are more than :data:`MAX_ROWS`.
    """

    parameters: tuple[Finite, ...]
    conditions: Mapping[str, Expression]
    constraints: tuple[Expression, ...]
    rows: Codes | None  # (r, k)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    def columns(self, codes: Codes) -> dict[str, Column]:
        """The natural values of (n, k) codes, by name."""
        return columns_of(self.parameters, codes)

    def sample(self, count: int, rng: np.random.Generator) -> Codes:
        """Legal combinations drawn uniformly, (n, k); fewer than ``count`` when hard to find."""
        if self.rows is not None:
            if not len(self.rows):
                return self.rows
            return self.rows[rng.integers(len(self.rows), size=count)]
        return self._rejected(count, rng)

    def at(
        self,
        shares: Floats,  # (n,), in [0, 1)
    ) -> Codes:
        """The combinations at these shares of the sorted table, (n, k)."""
        if self.rows is None:
            seeds = (shares * 2**53).astype(np.int64).tolist()
            picked = [self._rejected(1, np.random.default_rng(seed)) for seed in seeds]
            return np.concatenate(picked)
        return self.rows[np.minimum((shares * len(self.rows)).astype(np.int64), len(self.rows) - 1)]

    def indices(self, codes: Codes) -> Ints:
        """The row of each combination in the table, (n,); -1 for one that is not in it."""
        assert self.rows is not None
        keys = self._keys(codes)
        if keys is None:
            found = [self._lookup.get(row.tobytes(), -1) for row in np.ascontiguousarray(codes)]
            return np.array(found, dtype=np.int64)
        mine = self._sorted_keys
        place = np.minimum(np.searchsorted(mine, keys), max(len(mine) - 1, 0))
        return np.where(mine[place] == keys, place, -1) if len(mine) else np.full(len(keys), -1)

    def legal(self, codes: Codes) -> Mask:
        """Which combinations keep every rule of the group, (n,)."""
        columns = self.columns(codes)
        keep = np.ones(len(codes), dtype=bool)
        for place, parameter in enumerate(self.parameters):
            rule = self.conditions.get(parameter.name)
            if rule is None:
                keep &= codes[:, place] >= 0
            else:
                active = rule.holds(columns, len(codes), unknown=False)
                keep &= active == (codes[:, place] >= 0)
        for rule in self.constraints:
            keep &= rule.holds(columns, len(codes), unknown=True)
        return keep

    @cached_property
    def _radix(self) -> tuple[int, ...] | None:
        """Place values that make a whole number of a row; ``None`` where 64 bits are too few."""
        places, value = [], 1
        for parameter in reversed(self.parameters):
            places.append(value)
            value *= len(parameter.values) + 1
        return tuple(reversed(places)) if value < 2**62 else None

    def _keys(self, codes: Codes) -> Ints | None:
        if self._radix is None:
            return None
        return (codes.astype(np.int64) + 1) @ np.array(self._radix, dtype=np.int64)

    @cached_property
    def _sorted_keys(self) -> Ints:
        assert self.rows is not None
        keys = self._keys(self.rows)
        assert keys is not None
        return keys

    @cached_property
    def _lookup(self) -> dict[bytes, int]:
        assert self.rows is not None
        return {row.tobytes(): place for place, row in enumerate(np.ascontiguousarray(self.rows))}

    def _rejected(self, count: int, rng: np.random.Generator) -> Codes:
        """Uniform draws by rejection.

        A combination with inactive parameters is drawn as often as one without, because of all
        the raw draws that collapse to it only the one with code 0 in their place is accepted.
        """
        sizes = np.array([len(parameter.values) for parameter in self.parameters])
        found: list[Codes] = []
        have = 0
        for _ in range(200):
            raw = rng.integers(sizes, size=(max(4 * count, 1024), len(sizes))).astype(np.int32)
            codes = self._collapsed(raw)
            kept = codes[self.legal(codes) & ((codes == raw) | (raw == 0)).all(axis=1)]
            found.append(kept[: count - have])
            have += len(found[-1])
            if have >= count:
                break
        return np.concatenate(found)

    def _collapsed(self, raw: Codes) -> Codes:
        codes = raw.copy()
        for place in _by_dependence(self.parameters, self.conditions):
            rule = self.conditions.get(self.parameters[place].name)
            if rule is not None:
                active = rule.holds(self.columns(codes), len(codes), unknown=False)
                codes[~active, place] = -1
        return codes


def solved(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> Component:
    """The component of these parameters, with its table listed parameter by parameter.

    Each parameter multiplies the partial table by its values; every rule is applied as soon as
    all that it reads is in the table, so that the table stays close to the legal set.
    """
    known: list[Finite] = []
    rows: Codes | None = np.zeros((1, 0), dtype=np.int32)
    waiting = list(constraints)
    for place in _listing_order(parameters, conditions, constraints):
        if rows is None:
            break
        parameter = parameters[place]
        known.append(parameter)
        names = {p.name for p in known}
        ready = [rule for rule in waiting if rule.names <= names]
        waiting = [rule for rule in waiting if not rule.names <= names]
        rows = _extended(rows, known, conditions.get(parameter.name), ready)
    if rows is not None:
        order = [known.index(parameter) for parameter in parameters]
        rows = rows[:, order]
        rows = rows[np.lexsort(rows.T[::-1])]
    return Component(
        parameters=tuple(parameters),
        conditions=conditions,
        constraints=tuple(constraints),
        rows=rows,
    )


def columns_of(parameters: Sequence[Finite], codes: Codes) -> dict[str, Column]:
    """The natural values of (n, k) codes, by name."""
    return {
        parameter.name: Column.coded(domain(parameter), codes[:, place])
        for place, parameter in enumerate(parameters)
    }


def domain(parameter: Finite) -> tuple[Value, ...]:
    """The parameter's legal values in order."""
    return parameter.values


def _extended(
    rows: Codes, known: Sequence[Finite], condition: Expression | None, rules: Sequence[Expression]
) -> Codes | None:
    """The partial table with the last of ``known`` added; ``None`` once it is too large."""
    size = len(known[-1].values)
    parts: list[Codes] = []
    total = 0
    step = max(_CHUNK // size, 1)
    for start in range(0, max(len(rows), 1), step):
        part = _with_values(rows[start : start + step], known[:-1], size, condition)
        for rule in rules:
            part = part[rule.holds(columns_of(known, part), len(part), unknown=True)]
        total += len(part)
        if total > MAX_ROWS:
            return None
        parts.append(part)
    return np.concatenate(parts)


def _with_values(
    rows: Codes, known: Sequence[Finite], size: int, condition: Expression | None
) -> Codes:
    if condition is None:
        active = np.ones(len(rows), dtype=bool)
    else:
        active = condition.holds(columns_of(known, rows), len(rows), unknown=False)
    on = np.repeat(rows[active], size, axis=0)
    on = np.column_stack([on, np.tile(np.arange(size, dtype=np.int32), int(active.sum()))])
    off = np.column_stack([rows[~active], np.full(int((~active).sum()), -1, dtype=np.int32)])
    return np.concatenate([on, off])


def _listing_order(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> list[int]:
    """Parents before what they activate; then whatever lets most rules be applied soonest."""
    rank = {place: turn for turn, place in enumerate(_by_dependence(parameters, conditions))}
    names = [parameter.name for parameter in parameters]
    left, placed, order = set(rank), set[str](), list[int]()
    while left:
        ready = [
            p for p in left if names[p] not in conditions or conditions[names[p]].names <= placed
        ]
        best = min(ready, key=lambda p: (*_worth(parameters[p], placed, constraints), rank[p]))
        left.discard(best)
        placed.add(names[best])
        order.append(best)
    return order


def _worth(
    parameter: Finite, placed: set[str], constraints: Sequence[Expression]
) -> tuple[int, float]:
    """Fewest parameters still missing from a rule that reads it, then fewest values."""
    missing = [
        len(rule.names - placed - {parameter.name})
        for rule in constraints
        if parameter.name in rule.names
    ]
    return min(missing, default=99), len(parameter.values)


def _by_dependence(parameters: Sequence[Finite], conditions: Mapping[str, Expression]) -> list[int]:
    """Places of the parameters, each after all that its condition reads."""
    places = {parameter.name: place for place, parameter in enumerate(parameters)}
    order: list[int] = []

    def visit(name: str) -> None:
        if places[name] in order:
            return
        for parent in sorted(conditions[name].names if name in conditions else ()):
            if parent in places:
                visit(parent)
        order.append(places[name])

    for name in places:
        visit(name)
    return order
