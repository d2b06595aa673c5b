"""Legal set of a space: counting, enumeration, uniform sampling, indexing and neighbours.

The graph of "some rule reads both" splits the parameters into independent components. Each
component is solved separately (:mod:`dse.core.legal_set.component`); the legal set is their
product, so the count is a product, an index is a mixed-radix number, and sampling draws from each
component.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Batch, Column, concatenate_batches
from dse.core.expressions.expression import Expression
from dse.core.legal_set.component import Component, columns_of
from dse.core.legal_set.decision_diagram import Codes
from dse.core.legal_set.local_search import witness
from dse.core.legal_set.neighbours import near
from dse.core.legal_set.size_estimate import Estimate, estimate_of
from dse.core.parameter import Real
from dse.core.values import Floats, Ints, Mask, Value
from dse.errors import DesignError

_SHARE_STEP = 0.1
"""Step of a real parameter to a neighbour, as a fraction of its range."""

_LEAST_SHARE = 1e-15
_LEAST_STEP = 1e-9

_ESTIMATED = 10_000
"""Number of draws for an estimate of the count."""

_SHOWN = 6

_LEAST_TRIES = 1_024
"""Least number of draws per attempt where rules over real parameters may reject most draws."""


@dataclass(frozen=True, kw_only=True)
class Legal:
    """Set of the legal designs: a product of coupled parameter groups and real parameters.

    A component is a group of finite parameters that rules couple. ``mixed`` are the rules that read
    a real parameter; they are enforced by rejection. ``simplexes`` holds, for each set of real
    parameters that sum to one, their indices.
    """

    components: tuple[Component, ...]
    reals: tuple[Real, ...]
    conditions: Mapping[str, Expression]
    mixed: tuple[Expression, ...]
    simplexes: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def count(self) -> int | None:
        """Number of legal designs; ``None`` if it cannot be counted."""
        if not self.bound:
            return 0
        counts = [component.count for component in self.components]
        if self.reals or any(count is None for count in counts):
            return None
        return self.bound

    @cached_property
    def bound(self) -> int:
        """Upper bound on the number of legal combinations of the finite parameters."""
        return math.prod(self._sizes)

    @property
    def coordinates(self) -> int:
        """Dimension of the unit cube whose points :meth:`at_points` maps to designs."""
        return sum(len(component.parameters) for component in self.components) + len(self.reals)

    def at_indices(
        self,
        indices: Ints,  # (n,)
    ) -> Batch:
        """Return the designs at these indices of the enumeration order, as a batch."""
        codes, rest = [], indices if self.bound < 2**62 else indices.astype(object)
        for component, size in zip(reversed(self.components), reversed(self._sizes), strict=True):
            rest, row = rest // size, rest % size
            codes.append(component.at_ranks(row if size >= 2**62 else row.astype(np.int64)))
        return self._batch(codes[::-1], np.zeros((len(indices), 0)))

    def indices(self, batch: Batch) -> Ints:
        """Return each design's index in the enumeration order, (n,); -1 for an illegal design."""
        place = np.zeros(len(batch), dtype=np.int64 if self.bound < 2**62 else object)
        missing = np.zeros(len(batch), dtype=bool)
        for component, size in zip(self.components, self._sizes, strict=True):
            row = component.indices(self.codes(component, batch))
            missing |= row < 0
            place = place * size + row
        place[missing] = -1
        return place

    def estimate(self) -> Estimate | None:
        """Estimate the number of legal designs, with an interval; ``None`` with real parameters.

        Where the exact count is known, it is returned.
        """
        if self.count is not None:
            known = self.count
            return Estimate(count=known, low=known, high=known, at_most=known, hits=0, draws=0)
        if self.reals:
            return None
        keep, rng = np.ones(_ESTIMATED, dtype=bool), np.random.default_rng(0)
        for component in self.components:
            if component.dropped:
                keep &= component.keeps_dropped_rules(component.diagram.draw(_ESTIMATED, rng))
        hits = int(keep.sum())
        found = bool(hits) or len(self.witness()) > 0
        return estimate_of(self.bound, hits, _ESTIMATED, found=found)

    def witness(self) -> Batch:
        """Search for one legal design where random draws find none; else return no design."""
        return self._searched

    @cached_property
    def _searched(self) -> Batch:
        if self.mixed or self.reals:
            return self.batch([])
        rows = [witness(component) for component in self.components]
        if not all(len(row) for row in rows):
            return self.batch([])
        return self._filter_mixed(self._batch(rows, np.zeros((1, 0))))

    def sample(self, count: int, rng: np.random.Generator) -> Batch:
        """Return designs drawn uniformly from the legal set; possibly fewer than ``count``.

        Raises:
            DesignError: no legal design was found.
        """
        found, have = list[Batch](), 0
        tries = max(count, _LEAST_TRIES) if self.mixed and count else count
        for _ in range(100):
            codes = [component.sample(tries, rng) for component in self.components]
            least = min([tries, *(len(rows) for rows in codes)])
            shares = rng.random((least, len(self.reals)))
            batch = self._filter_mixed(self._batch([rows[:least] for rows in codes], shares))
            batch = batch.take(np.arange(min(len(batch), count - have)))
            found.append(batch)
            have += len(batch)
            hopeless = not least or not self.mixed  # a component that found too few has given up
            if have >= count or hopeless:
                break
        if count and not have:
            raise self.no_draw()
        return concatenate_batches(found) if have else self.batch([])

    def no_draw(self) -> DesignError:
        """Return the error to raise if random draws found no legal design.

        Its message states that there is no legal design only if that is proved.
        """
        if not self.bound:
            return DesignError(
                "there is no legal design", hint="the constraints contradict one another"
            )
        tried = [component.tries for component in self.components if component.dropped]
        tries = f"{max(tried, default=100 * _LEAST_TRIES):,} draws"
        known = self.witness()
        if len(known):
            some = ", ".join(f"{n} = {v}" for n, v in list(known.design(0).items())[:_SHOWN])
            return DesignError(
                f"no legal design was drawn in {tries}, although at least one exists",
                hint=f"a search found {some} ...; fix some parameters or relax constraints",
            )
        return DesignError(
            f"no legal design was found in {tries}",
            hint="the constraints allow very few designs, or none (not proved): relax some",
        )

    def at_points(
        self,
        points: Floats,  # (n, coordinates), in [0, 1)
    ) -> Batch:
        """Map points of the unit cube to legal designs, (n, coordinates).

        Points whose design violates a mixed rule (one that reads a real parameter) are omitted.
        """
        codes, keep, start = [], np.ones(len(points), dtype=bool), 0
        for component in self.components:
            stop = start + len(component.parameters)
            found, fine = component.at(points[:, start:stop])
            codes.append(found)
            keep &= fine
            start = stop
        rows = np.flatnonzero(keep)
        return self._filter_mixed(
            self._batch([found[rows] for found in codes], points[rows, start:])
        )

    def batch(self, designs: Sequence[Mapping[str, Value]]) -> Batch:
        """Return the designs as columns, one per parameter.

        Raises:
            DesignError: a value is not in its parameter's domain.
        """
        columns = {
            name: Column.coded(domain, _encode_values(name, codes, designs))
            for name, (domain, codes) in self._codes_by_value.items()
        }
        for real in self.reals:
            values = np.array([design.get(real.name, np.nan) for design in designs], dtype=float)
            columns[real.name] = _real_column(values)
        return Batch(columns, len(designs))

    @cached_property
    def _codes_by_value(self) -> dict[str, tuple[tuple[Value, ...], dict[object, int]]]:
        """Domain of each finite parameter, and the code of each of its values."""
        return {
            one.name: (
                one.values,
                {(isinstance(v, bool | str), v): code for code, v in enumerate(one.values)},
            )
            for component in self.components
            for one in component.parameters
        }

    def codes(self, component: Component, batch: Batch) -> Codes:
        """Return the n designs' codes (indices into the domains) in one component, (n, k)."""
        columns = [batch.columns[name].codes for name in component.names]
        return np.column_stack([c for c in columns if c is not None]).astype(np.int32)

    def shares(self, batch: Batch) -> Floats:
        """Return each real parameter's position in its range, from 0 to 1, (n, r).

        The position of an inactive parameter is 0.5. The positions of the members of a simplex are
        quantiles of exponential variates that, divided by their sum, give the members' values.
        """
        rows = [np.nan_to_num(real.shares(batch[real.name]), nan=0.5) for real in self.reals]
        shares = np.column_stack(rows) if rows else np.zeros((len(batch), 0))
        for places in self.simplexes:
            shares[:, places] = -np.expm1(-shares[:, places] * len(places))
        return shares

    def assemble(self, codes: Sequence[Codes], shares: Floats) -> Batch:
        """Return the designs given by codes and positions that violate no mixed rule.

        A mixed rule is one that reads a real parameter.

        Args:
            codes: indices into the domains, (n, k), per component of k parameters.
            shares: position of each real parameter in its range, (n, r), in [0, 1].
        """
        return self._filter_mixed(self._batch(codes, shares))

    def neighbours(self, batch: Batch) -> Batch:
        """Return the legal designs near the single design in ``batch``.

        Each of them changes one component to a nearby combination, or moves one real parameter by a
        small step up or down.
        """
        here = [self.codes(component, batch) for component in self.components]
        shares = self.shares(batch)
        moves = [near(c, rows[0]) for c, rows in zip(self.components, here, strict=True)]
        starts = np.cumsum([0, *(len(rows) for rows in moves)])
        codes = [np.repeat(rows, starts[-1], axis=0) for rows in here]
        for place, rows in enumerate(moves):
            codes[place][starts[place] : starts[place + 1]] = rows
        there = self._batch(codes, np.repeat(shares, starts[-1], axis=0))
        moved = [self._filter_mixed(self._with_reals(there, batch))]
        for place, real in enumerate(self.reals):
            if batch.absent(real.name)[0]:
                continue
            steps = np.repeat(shares, 2, axis=0)
            steps[:, place] = np.clip(steps[:, place] + [-_SHARE_STEP, _SHARE_STEP], 0, 1)
            steps = steps[np.abs(steps[:, place] - shares[0, place]) > _LEAST_STEP]
            there = self._batch([np.repeat(rows, len(steps), axis=0) for rows in here], steps)
            moved.append(self._filter_mixed(self._with_reals(there, batch, but=real.name)))
        return (
            concatenate_batches(moved)
            if any(len(part) for part in moved)
            else batch.take(np.arange(0))
        )

    @cached_property
    def _reals_by_dependence(self) -> tuple[Real, ...]:
        """Real parameters in topological order: each after all that its condition reads."""
        order: list[Real] = []
        left = list(self.reals)
        while left:
            names = {real.name for real in left}
            ready = [r for r in left if not self._parents(r) & (names - {r.name})]
            order += ready or left
            left = [real for real in left if real not in order]
        return tuple(order)

    def _parents(self, real: Real) -> frozenset[str]:
        rule = self.conditions.get(real.name)
        return frozenset() if rule is None else rule.names

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(component.bound for component in self.components)

    def _batch(self, codes: Sequence[Codes], shares: Floats) -> Batch:
        columns: dict[str, Column] = {}
        size = len(codes[0]) if codes else len(shares)
        for component, rows in zip(self.components, codes, strict=True):
            columns |= columns_of(component.parameters, rows)
        values = self._values(shares)
        for place, real in enumerate(self.reals):
            columns[real.name] = Column(values[:, place])
        for real in self._reals_by_dependence:
            rule = self.conditions.get(real.name)
            if rule is not None:
                off = ~rule.holds(columns, size, unknown=False)
                values = np.where(off, np.nan, columns[real.name].values)
                columns[real.name] = _real_column(values)
        return Batch(columns, size)

    def _values(self, shares: Floats) -> Floats:
        """Return n designs' r real parameters, (n, r), from positions in their ranges.

        For a simplex the positions are quantiles of exponential variates; divided by their sum,
        these are uniform over the simplex (Devroye, Non-Uniform Random Variate Generation, 1986,
        ch. V.2). Fixed members reduce the sum available to the others.
        """
        values = np.empty(shares.shape)
        for place, real in enumerate(self.reals):
            values[:, place] = real.at(shares[:, place])
        for places in self.simplexes:
            free = [place for place in places if self.reals[place].low < self.reals[place].high]
            left = 1 - sum(self.reals[place].low for place in places if place not in free)
            waits = -np.log1p(-np.clip(shares[:, free], _LEAST_SHARE, 1 - _LEAST_SHARE))
            values[:, free] = waits / waits.sum(axis=1, keepdims=True) * max(left, 0.0)
        return values

    def _with_reals(self, there: Batch, here: Batch, *, but: str = "") -> Batch:
        """Copy the values of real parameters other than ``but`` from the design ``here``.

        They did not change, but the values computed from positions in the range have rounding
        errors.
        """
        moved = {but}
        for places in self.simplexes:
            names = {self.reals[place].name for place in places}
            moved |= names if but in names else set()
        same = {
            real.name: _real_column(np.where(there.absent(real.name), np.nan, here[real.name][0]))
            for real in self.reals
            if real.name not in moved and not here.absent(real.name)[0]
        }
        return there.with_columns(same)

    def _filter_mixed(self, batch: Batch) -> Batch:
        keep: Mask = np.ones(len(batch), dtype=bool)
        for rule in self.mixed:
            keep &= rule.holds(batch.columns, len(batch), unknown=True)
        for real in (self.reals[place] for places in self.simplexes for place in places):
            if (real.low, real.high) != (0.0, 1.0):  # simplex values may exceed a narrower range
                values = batch[real.name]
                keep &= ((values >= real.low) & (values <= real.high)) | batch.absent(real.name)
        return batch if keep.all() else batch.take(keep)


def _encode_values(
    name: str, codes: Mapping[object, int], designs: Sequence[Mapping[str, Value]]
) -> NDArray[np.int32]:
    """Return the code of each design's value of a parameter, (n,); -1 where it is inactive."""
    found = [-1] * len(designs)
    for row, design in enumerate(designs):
        if name in design:
            value = design[name]
            code = codes.get((isinstance(value, bool | str), value))
            if code is None:
                raise DesignError(f"{name} cannot be {value!r}: the value is not in its domain")
            found[row] = code
    return np.array(found, dtype=np.int32)


def _real_column(values: Floats) -> Column:
    absent = np.isnan(values)
    return Column(values, absent if absent.any() else None)
