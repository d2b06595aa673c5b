"""Stochastic rounding: a chance that depends on the seed and the place alone."""

from __future__ import annotations

import numpy as np

from dse_evaluators.formats.arrays import Single, Words


def dither(
    seed: int,
    places: Words,  # any shape
) -> Single:
    """Evenly spread over [0, 1), one for each place; the same place gives the same number.

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
    """Moves each value to the whole number below or above it, the nearer the likelier."""
    below = np.floor(values)
    values -= below
    below += chance < values
    values[...] = below
