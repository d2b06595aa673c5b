"""Regular fractions of two-level factorial designs, of a given resolution."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dse.core.values import Ints


def fraction(factors: int, resolution: int) -> Ints:
    """The runs of a fraction with as few runs as a greedy search finds, (runs, factors) of 0 and 1.

    Each factor is a set of base factors, written as a number with one bit for each, and its level
    in a run is the parity of the base factors that are high. Of resolution R no product of fewer
    than R factors is constant: no fewer than R of the numbers may cancel.

    Source:
        Box, Hunter: The 2^(k-p) Fractional Factorial Designs, Technometrics 1961; the numbers are
        a lexicographic code (Conway, Sloane, IEEE Trans. Inf. Theory 1986).
    """
    if factors == 0:
        return np.zeros((1, 0), dtype=np.int64)
    words = _words(factors, resolution)
    base = max(words).bit_length()
    runs = np.arange(1 << base)
    columns = [_parity(runs & word) for word in words]
    return np.column_stack(columns)


def _words(factors: int, resolution: int) -> list[int]:
    """The least numbers of which no fewer than ``resolution`` cancel; single bits come first."""
    chosen: list[int] = []
    sums: set[int] = set()
    number = 0
    while len(chosen) < factors:
        number += 1
        if number not in sums:
            chosen.append(number)
            sums = _sums(chosen, resolution - 2)
    return chosen


def _sums(words: list[int], most: int) -> set[int]:
    """Return the XOR of every combination of one to ``most`` of the numbers."""
    found = set[int]()
    for count in range(1, most + 1):
        for group in combinations(words, count):
            total = 0
            for word in group:
                total ^= word
            found.add(total)
    return found


def _parity(values: Ints) -> Ints:
    result = np.zeros_like(values)
    while values.any():
        result ^= values & 1
        values = values >> 1
    return result
