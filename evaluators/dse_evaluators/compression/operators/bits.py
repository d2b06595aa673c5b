"""Packing of integer codes of any width into bit sequences, and unpacking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Words

Loose = NDArray[np.uint8]
"""Bits stored one per byte, the least significant bit of each code first."""


def unpack_words(words: Words, width: int) -> Loose:
    """Return the low ``width`` bits of each code as one sequence of bits."""
    table = np.ascontiguousarray(words, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(table, axis=1, bitorder="little")[:, :width].ravel()


def pack_words(bits: Loose, width: int) -> Words:
    """Return the codes that a sequence of ``width`` bits per code represents; empty for width 0."""
    count = len(bits) // width if width else 0
    table = np.zeros((count, 32), dtype=np.uint8)
    table[:, :width] = bits.reshape(count, width)
    packed = np.packbits(table, axis=1, bitorder="little")
    return packed.view("<u4").ravel().astype(np.uint32)


def width_of(most: int) -> int:
    """Return the number of bits that represent every integer from 0 to ``most``."""
    return int(most).bit_length()
