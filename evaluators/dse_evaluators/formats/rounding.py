"""Stochastic rounding with random numbers that depend only on the seed and the position."""

from __future__ import annotations

import numpy as np

from dse_evaluators.formats.arrays import Single, Words


def dither(
    seed: int,
    places: Words,  # any shape
) -> Single:
    """Return uniform random numbers in [0, 1), determined by the seed and each position.

    Source:
        Wellons, Prospecting for Hash Functions, 2018: the 32-bit mixer with multipliers 0x21f0aaad
        and 0xd35a2d97; of its bits the upper 24 fill a float's mantissa.
    """
    word = places ^ np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    for _ in range(2):
        word ^= word >> np.uint32(16)
        word *= np.uint32(0x21F0AAAD)
        word ^= word >> np.uint32(15)
        word *= np.uint32(0xD35A2D97)
        word ^= word >> np.uint32(15)
        word += np.uint32(seed & 0xFFFFFFFF)
    return (word >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def climb(values: Single, chance: Single) -> None:
    """Round each value in place to the integer below or above it, stochastically.

    ``chance`` is uniform on [0, 1); the probability of rounding up is the fractional part.
    """
    below = np.floor(values)
    values -= below
    below += chance < values
    values[...] = below
