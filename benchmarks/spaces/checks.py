"""Whether drawn designs are legal and uniform over the legal set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ours import stated
from scipy.stats import chisquare
from statement import Row, Statement

LEAST_CHANCE = 1e-4
"""A tool that draws uniformly is called skewed once in ten thousand checks."""


def verdict(statement: Statement, rows: Sequence[Row], number: int) -> str:
    """``ok``, or what is wrong with the rows that a tool drew."""
    if len(rows) != number:
        return f"{len(rows)} designs drawn"
    illegal = sum(1 for row in rows if not statement.legal(*row))
    if illegal:
        return f"{illegal} illegal designs"
    chance = _chance(statement, rows)
    return "ok" if chance >= LEAST_CHANCE else "not uniform"


def _chance(statement: Statement, rows: Sequence[Row]) -> float:
    """The lower p-value of two chi-square tests over the places of the designs in one list.

    The place of a design is its rank in our enumeration. One test cuts the list into equal
    stretches, which shows a skew of the first parameters, the other takes the rank's remainder,
    which shows a skew of the last.
    """
    space = stated(statement)
    total = space.count()
    names = [parameter.name for parameter in space.parameters]
    designs = [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in rows
    ]
    ranks = [int(rank) for rank in space.indices(space.batch(designs))]
    assert total is not None
    assert min(ranks) >= 0, "a legal design has no place in our list"
    bins = min(100, total)
    stretches = np.bincount([rank * bins // total for rank in ranks], minlength=bins)
    lengths = np.diff([-(-place * total // bins) for place in range(bins + 1)]).astype(float)
    parts = min(97, total)
    remainders = np.bincount([rank % parts for rank in ranks], minlength=parts)
    sizes = np.array([(total - place + parts - 1) // parts for place in range(parts)], dtype=float)
    return min(_p(stretches, lengths), _p(remainders, sizes))


def _p(seen: np.ndarray, sizes: np.ndarray) -> float:
    return float(chisquare(seen, sizes / sizes.sum() * seen.sum()).pvalue)
