"""Regular fractions of two-level factorial designs, of a given resolution."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dse.core.values import Ints


def fraction(factors: int, resolution: int) -> Ints:
    """Return the levels, 0 or 1, of a fractional factorial design, (runs, factors).

    A greedy search keeps the number of runs small. Each factor is a set of base factors, stored as
    a bit mask, and its level in a run is the parity of the base factors at level 1. At resolution R
    no product of fewer than R factors is constant: no fewer than R of the masks XOR to zero.

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
    """Return the factors' smallest bit masks such that no fewer than ``resolution`` XOR to zero."""
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
    """Return the XOR of every combination of one to ``most`` of the given numbers."""
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
