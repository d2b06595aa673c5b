"""Variance explained by factors, from counts of their levels instead of a design matrix.

A least-squares fit needs the Gram matrix of its design matrix. For columns that code levels, this
matrix follows from how often each pair or triple of levels occurs in the same trial. The counts
take one pass over the trials for each pair of factors; the size of the linear system does not
depend on the number of trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from dse.core.parameter import Choice
from dse.core.problem import Problem
from dse.core.trials import Trials
from dse.core.values import Floats, Ints, Value

_LEAST = 1e-9
"""Relative tolerance below which an eigenvalue of a Gram matrix counts as zero.

A direction in which one row of a million differs has an eigenvalue a hundred times as large.
"""

MOST_LEVELS = 24

GROUPS = 8
"""A numeric parameter of more than ``MOST_LEVELS`` values is binned into ``GROUPS`` levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumOfSquares:
    """Sum of squares that a model term explains, per metric, and its degrees of freedom."""

    squares: Floats  # (m,), of each metric
    rank: int


class MainEffect(NamedTuple):
    """Type II sum of squares of one factor, and each metric's mean at each of its levels."""

    own: SumOfSquares
    means: Floats  # (levels, m)


class CountedFit:
    """Least-squares regression of metrics on the main effects of factors (parameters).

    Args:
        values: the metrics, (n, m).
        factors: the explanatory factors, each with at least two levels.
    """

    def __init__(self, values: Floats, factors: Sequence[Factor]) -> None:
        self._size = len(values)
        self._mean = values.mean(axis=0)
        self._centred = values - self._mean
        self._factors = factors
        codings = [factor.coding for factor in factors]
        self._coding = np.asarray(block_diag(*codings)) if codings else np.zeros((0, 0))  # (P, p)
        self._levels = _slices([len(coding) for coding in codings])
        self._columns = _slices([coding.shape[1] for coding in codings])
        counts = self._pair_counts()
        self._means = self._coding.T @ np.diag(counts) / self._size  # (p,)
        whole = self._coding.T @ counts @ self._coding
        self._gram = whole - self._size * np.outer(self._means, self._means)
        self._norms = np.diag(whole)  # (p,), squared
        self._sums = self._coding.T @ self._level_sums  # (p, m)

    @property
    def total(self) -> Floats:
        """Total sum of squares about the mean, (m,)."""
        return np.asarray((self._centred**2).sum(axis=0))

    @property
    def additive(self) -> SumOfSquares:
        """Sum of squares that all main effects explain together, with its degrees of freedom."""
        return _sum_explained_squares(self._root, self._sums)

    def main(self, place: int) -> MainEffect:
        """Return a factor's type II sum of squares (beyond other main effects) and level means."""
        own = self._columns[place]
        if self._is_estimable(own):
            inverse = self._inverse[own, own]
            coefficients = self._inverse[own] @ self._sums
            solved = np.linalg.solve(inverse, coefficients)
            squares = (coefficients * solved).sum(axis=0)
            explained = SumOfSquares(squares=squares, rank=len(inverse))
        else:
            explained = self._explain_aliased_columns(own)
        return MainEffect(explained, self._level_means(place, explained.rank))

    def interaction(self, one: int, other: int) -> SumOfSquares:
        """Return the sum of squares of the interaction of two factors, beyond all main effects."""
        left, right = self._factors[one], self._factors[other]
        cells = left.codes * len(right.levels) + right.codes
        coding = np.kron(left.coding, right.coding)  # (cells, q)
        size = len(coding)
        counts = np.bincount(cells, minlength=size)
        sums = np.stack(
            [np.bincount(cells, column, minlength=size) for column in self._centred.T], axis=1
        )
        means = coding.T @ counts / self._size
        crossed = coding.T @ self._count_cell_levels(cells, size) @ self._coding  # (q, p)
        crossed -= self._size * np.outer(means, self._means)
        whole = coding.T @ (counts[:, None] * coding)
        gram = whole - self._size * np.outer(means, means)
        along = crossed @ self._root
        rest = coding.T @ sums - along @ (self._root.T @ self._sums)
        return _sum_explained_squares(_root(gram - along @ along.T, float(np.trace(whole))), rest)

    def _count_cell_levels(self, cells: Ints, size: int) -> Floats:
        """Count how often each level of each factor occurs in each cell of trials, (size, P).

        ``cells`` is the index of each trial's cell, from 0 to ``size`` - 1; P is the number of
        levels of all factors together.
        """
        tables = [
            np.bincount(
                cells * len(factor.levels) + factor.codes, minlength=size * len(factor.levels)
            ).reshape(size, -1)
            for factor in self._factors
        ]
        return np.concatenate(tables, axis=1).astype(np.float64)

    def _pair_counts(self) -> Floats:
        """Return how many trials have each pair of the P levels of all factors, (P, P)."""
        tables = [
            self._count_cell_levels(factor.codes, len(factor.levels)) for factor in self._factors
        ]
        return np.concatenate(tables) if tables else np.zeros((0, 0))

    @cached_property
    def _level_sums(self) -> Floats:
        """Return each centred metric's sum over the trials at each level of each factor, (P, m)."""
        sums = [
            [np.bincount(f.codes, column, minlength=len(f.levels)) for column in self._centred.T]
            for f in self._factors
        ]
        return np.concatenate([np.array(one).T for one in sums]) if sums else self._centred[:0]

    @cached_property
    def _root(self) -> Floats:
        """Matrix R with R R^T equal to the pseudo-inverse of the Gram matrix, (p, rank)."""
        return _root(self._gram, self._norms.sum())

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(self._root @ self._root.T)

    def _is_estimable(self, own: slice) -> bool:
        """Return whether a factor's columns are not aliased with other main effects."""
        taken = self._inverse[own] @ self._gram  # resolution matrix: identity if estimable
        wanted = np.eye(len(self._gram))[own]
        return bool(np.allclose(taken, wanted, atol=_ALIASED))

    def _explain_aliased_columns(self, own: slice) -> SumOfSquares:
        """Return a factor's sum of squares beyond other factors if some of its columns are aliased.

        The other factors' columns are projected out of the factor's columns.
        """
        rest = np.ones(len(self._gram), dtype=bool)
        rest[own] = False
        root = _root(self._gram[np.ix_(rest, rest)], self._norms[rest].sum())
        along = self._gram[own][:, rest] @ root
        sums = self._sums[own] - along @ (root.T @ self._sums[rest])
        left = self._gram[own, own] - along @ along.T
        return _sum_explained_squares(_root(left, self._norms[own].sum()), sums)

    def _level_means(self, place: int, rank: int) -> Floats:
        """Return the metrics' means at each level of a factor, (levels, m).

        They are fitted means, or raw means if the factor's effect is not estimable.
        """
        factor, own = self._factors[place], self._columns[place]
        if rank < len(factor.levels) - 1:
            counts = np.bincount(factor.codes, minlength=len(factor.levels))
            sums = self._level_sums[self._levels[place]]
            return np.asarray(self._mean + sums / counts[:, None])
        intercept, *coefficients = self._coefficients
        return np.asarray(intercept + factor.coding @ np.array(coefficients)[own])

    @cached_property
    def _coefficients(self) -> Floats:
        """Minimum-norm coefficients of the fit, (1 + p, m); the first row is the intercept."""
        corner = np.concatenate([[1.0], self._means])
        whole = self._size * np.outer(corner, corner)
        whole[1:, 1:] += self._gram
        root = _root(whole, float(np.trace(whole)))
        sums = np.concatenate([np.zeros((1, self._sums.shape[1])), self._sums])
        sums += self._size * np.outer(corner, self._mean)
        return np.asarray(root @ (root.T @ sums))


_ALIASED = 1e-6
"""Tolerance on the resolution matrix up to which a coefficient counts as estimable."""


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _root(
    gram: Floats,  # (k, k)
    scale: float,
) -> Floats:
    """Return a matrix R with R R^T equal to the pseudo-inverse of ``gram``, (k, rank).

    Eigenvalues below :data:`_LEAST` times ``scale`` count as zero.
    """
    if not len(gram):
        return np.zeros((0, 0))
    sizes, vectors = np.linalg.eigh(gram)
    kept = sizes > _LEAST * scale
    return np.asarray(vectors[:, kept] / np.sqrt(sizes[kept]))


def _sum_explained_squares(
    root: Floats,  # (k, rank)
    sums: Floats,  # (k, m)
) -> SumOfSquares:
    return SumOfSquares(squares=((root.T @ sums) ** 2).sum(axis=0), rank=root.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Parameter as a factor of a regression: each trial's level, and each level's range."""

    name: str
    codes: Ints  # (n,)
    levels: tuple[tuple[Value | None, Value | None], ...]

    @property
    def coding(self) -> Floats:
        """Sum-to-zero (effect) coding of the levels, (levels, levels - 1); the last row is -1."""
        free = len(self.levels) - 1
        return np.vstack([np.eye(free), -np.ones(free)])


def factors_of(problem: Problem, trials: Trials) -> list[Factor]:
    """Return the parameters of the space as factors, with the levels in these trials."""
    found = []
    designs = list(trials.iter_designs())
    for parameter in problem.space.parameters:
        values = [design.get(parameter.name) for design in designs]
        groups = _groups(values, words=isinstance(parameter, Choice))
        code = {value: place for place, group in enumerate(groups) for value in group}
        levels = tuple((group[0], group[-1]) for group in groups)
        codes = np.array([code[value] for value in values])
        found.append(Factor(name=parameter.name, codes=codes, levels=levels))
    return found


def _groups(values: Sequence[Any], *, words: bool) -> list[list[Any]]:  # values of one parameter
    """Group the distinct values into levels: one each, or bins if there are many numbers.

    If the parameter is inactive in a trial, the last level is ``[None]``.
    """
    known = list(dict.fromkeys(value for value in values if value is not None))
    known = known if words else sorted(known)
    cut = len(known) > MOST_LEVELS and not words
    places = np.array_split(np.arange(len(known)), GROUPS if cut else max(len(known), 1))
    groups = [[known[place] for place in one] for one in places if len(one)]
    return [*groups, [None]] if None in values else groups
