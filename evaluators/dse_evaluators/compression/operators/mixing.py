"""Pseudo-random hashes of integers, the same on every machine and in every version."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

_STEP = 0x9E3779B97F4A7C15
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix_keys(keys: Keys, seed: int) -> Keys:
    """Return a 64-bit hash of each integer key, which depends on the seed.

    Source:
        Steele et al., Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64).
    """
    words = keys + np.uint64(_STEP * (seed + 1) % 2**64)
    for _ in range(2):  # successive seeds differ by one step only: mix twice
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        words = words ^ (words >> np.uint64(31)) ^ np.uint64(_STEP)
    return words


def mixed_range(count: int, seed: int) -> Keys:
    """Return the hashes of the keys 0 to ``count`` - 1."""
    return mix_keys(np.arange(count, dtype=np.uint64), seed)
