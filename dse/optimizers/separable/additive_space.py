"""Terms of a separable problem: their value combinations, features and modelled losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.encoding import encoded
from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.problem import Problem
from dse.core.separable import Separable
from dse.core.values import Array, Floats, Ints
from dse.optimizers.bayesian.measured_settings import MeasuredSplit

MOST_ROWS = 4_096
"""Most value combinations of one term."""

_DRAWS = 1_024
"""Sample size of the search for a design that has metrics."""


@dataclass(frozen=True, kw_only=True)
class AdditiveTerm:
    """Parameter group that contributes one term to an additive (separable) metric.

    ``components`` are indices of the space's components, which are sets of coupled parameters.
    """

    components: tuple[int, ...]
    names: frozenset[str]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of value combinations of the parameter group."""
        return int(np.prod(self.sizes))


@dataclass(frozen=True, kw_only=True)
class AdditiveSpace:
    """Measured parameters as independent groups, each with a table of its value combinations.

    A row is a value combination of a group. A design consists of one row of each group; the free
    parameters, which no measurement reads, keep the values of ``base``.
    """

    problem: Problem
    split: MeasuredSplit
    terms: tuple[AdditiveTerm, ...]
    base: Batch
    """One design that has metrics."""

    @cached_property
    def starts(self) -> Ints:
        """Index of each group's first row in the joint table, and the total, (groups + 1,)."""
        return np.cumsum([0, *(term.count for term in self.terms)])

    @cached_property
    def varied(self) -> Batch:
        """Copies of the base design with one group changed, to each of its value combinations."""
        here = np.repeat(self.rows_of(self.base), self.starts[-1], axis=0)
        for place, start in enumerate(self.starts[:-1].tolist()):
            count = self.terms[place].count
            here[start : start + count, place] = np.arange(count)
        return self.designs(here)

    @cached_property
    def points(self) -> Floats:
        """Encoding of the measured parameters of :attr:`varied`, (rows, coordinates)."""
        return encoded(self.problem.space, self.varied, self.split.measured_parameters)

    def rows_of(self, batch: Batch) -> Ints:
        """Return the index of each design's value combination in each group, (n, groups)."""
        legal = self.problem.space.legal
        found = np.zeros((len(batch), len(self.terms)), dtype=np.int64)
        for place, term in enumerate(self.terms):
            for at, size in zip(term.components, term.sizes, strict=True):
                component = legal.components[at]
                index = _ranks(component, legal.codes(component, batch))
                found[:, place] = found[:, place] * size + index
        return found

    def designs(
        self,
        rows: Ints,  # (n, terms)
    ) -> Batch:
        """Return the designs given by one row index per group; free parameters as in ``base``."""
        legal = self.problem.space.legal
        codes = [
            np.repeat(legal.codes(component, self.base), len(rows), axis=0)
            for component in legal.components
        ]
        for place, term in enumerate(self.terms):
            rest = rows[:, place]
            for at, size in zip(reversed(term.components), reversed(term.sizes), strict=True):
                rest, rank = np.divmod(rest, size)
                codes[at] = legal.components[at].at_ranks(rank)
        return legal.assemble(codes, np.repeat(legal.shares(self.base), len(rows), axis=0))

    def changes(self, values: Floats, base: float) -> list[Floats]:
        """Split the values of :attr:`varied`, (rows,), by group, as differences from ``base``."""
        return [np.asarray(own) for own in np.split(values - base, self.starts[1:-1])]


def build_additive_space(
    problem: Problem, split: MeasuredSplit, groups: Iterable[frozenset[str]]
) -> AdditiveSpace:
    """Return the measured parameters as independent groups of coupled parameters.

    Groups that share a parameter, or that a rule of the space couples, are merged; each remaining
    set of coupled measured parameters is a group of its own.

    Args:
        problem: the problem.
        split: the problem's objectives and limits, split into measured and modelled ones.
        groups: the parameters of each declared term.

    Raises:
        NotSeparableError: the terms cannot be listed; the reason names a parameter.
    """
    components = problem.space.legal.components
    for real in problem.space.legal.reals:
        if real.name in split.measured_parameters:
            raise NotSeparableError(f"{real.name} is a real parameter: give it steps")
    home = {name: at for at, one in enumerate(components) for name in one.names}
    places = sorted({home[name] for name in split.measured_parameters})
    for at in places:
        _check_component(components[at], split.measured_parameters)
    tied = [sorted({home[name] for name in group if name in home}) for group in groups]
    terms = tuple(_build_term(components, own) for own in _join(places, tied))
    if len(terms) < 2:
        raise NotSeparableError("rules or shared parameters tie all terms together")
    large = max(terms, key=lambda term: term.count)
    if large.count > MOST_ROWS:
        names = ", ".join(sorted(large.names)[:4])
        raise NotSeparableError(
            f"{names} have {large.count:,} combinations, more than {MOST_ROWS:,}"
        )
    return AdditiveSpace(problem=problem, split=split, terms=terms, base=_base(problem))


def _join(places: Sequence[int], tied: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the finest partition of the indices ``places`` that keeps tied indices together."""
    found = [{place} for place in places]
    for own in tied:
        meeting = [one for one in found if one & set(own)]
        found = [one for one in found if not one & set(own)]
        if meeting:
            found.append(set().union(*meeting))
    return sorted(sorted(one) for one in found)


class NotSeparableError(Exception):
    """Raised if the terms of an additive metric cannot be listed, and so cannot be used."""


def known_columns(problem: Problem, batch: Batch) -> Mapping[str, Column]:
    """Return the parameters and modelled metrics of n designs; NaN in rows of failed designs."""
    known = problem.known(batch)
    lost = list(known.failures)
    found: dict[str, Column] = dict(batch.columns)
    for name, values in known.columns.items():
        column = np.array(values, dtype=float)
        column[lost] = np.nan
        found[name] = Column(column)
    return found


def features_of(space: AdditiveSpace, separable: Separable) -> tuple[list[int], list[Floats]]:
    """Return the features of a metric that is declared a sum of one term per parameter group.

    Returns:
        The index of the group of each feature, and the feature's values in the rows of that group.
        The values start at 0, and are scaled such that the largest range of a feature is 1.
    """
    if separable.by:
        places, tables = _changes_of(space, separable)
    else:
        places, tables = _computed(space, separable)
    tables = [own - np.nanmin(own) if np.isfinite(own).any() else 0.0 * own for own in tables]
    widest = max((float(np.nanmax(own, initial=0.0)) for own in tables), default=0.0)
    return places, [np.nan_to_num(own / (widest or 1.0), nan=1.0) for own in tables]


def _changes_of(space: AdditiveSpace, separable: Separable) -> tuple[list[int], list[Floats]]:
    """Return as features how a modelled metric changes with the rows of each declared term."""
    columns = known_columns(space.problem, space.varied)
    if separable.by not in columns:
        raise NotSeparableError(f"there is no modelled metric {separable.by}")
    values = columns[separable.by].values
    base = known_columns(space.problem, space.base)[separable.by].values[0]
    declared = frozenset[str]().union(*separable.groups)
    changes = space.changes(values.astype(float), float(base))
    places = [place for place, term in enumerate(space.terms) if term.names & declared]
    return places, [changes[place] for place in places]


def _computed(space: AdditiveSpace, separable: Separable) -> tuple[list[int], list[Floats]]:
    """Return the features that the declaration's own function computes for each group."""
    if separable.features is None:
        return [], []
    values = np.asarray(separable.features(space.varied), dtype=float)
    places, tables = list[int](), list[Floats]()
    for at, group in enumerate(separable.groups):
        for place, term in enumerate(space.terms):
            if term.names & group:
                places.append(place)
                tables.append(values[space.starts[place] : space.starts[place + 1], at])
    return places, tables


def _check_component(component: Component, measured: frozenset[str]) -> None:
    if component.count is None:
        raise NotSeparableError(f"the combinations of {component.names[0]} cannot be counted")
    outside = sorted(set(component.names) - measured)
    if outside:
        inside = sorted(set(component.names) & measured)
        raise NotSeparableError(
            f"a rule ties {inside[0]} to {outside[0]}, which no measurement reads"
        )


def _build_term(components: Sequence[Component], places: Sequence[int]) -> AdditiveTerm:
    return AdditiveTerm(
        components=tuple(places),
        names=frozenset(name for at in places for name in components[at].names),
        sizes=tuple(int(components[at].count or 0) for at in places),
    )


def _ranks(component: Component, codes: Codes) -> Array:
    return np.asarray(component.indices(codes))


def _base(problem: Problem) -> Batch:
    """Return one random design that every model evaluates without a failure."""
    batch = problem.space.sample(_DRAWS, problem.rng(0, 4))
    fine = np.setdiff1d(np.arange(len(batch)), list(problem.known(batch).failures))
    if not len(fine):
        raise NotSeparableError(f"of {_DRAWS:,} random designs no model can evaluate one")
    return batch.take(fine[:1])
