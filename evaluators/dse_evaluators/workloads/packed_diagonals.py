"""Diagonals of a layer whose channels are packed into the slots of ciphertexts.

A ciphertext holds several channels, one image each. A product of ciphertexts pairs each channel
with one filter; pairs of equal distance, of all input ciphertexts, form a *diagonal* of an output
ciphertext. Its sum is rotated once, except that of distance 0.
"""

from __future__ import annotations

import numpy as np

from dse.core.values import Ints


def count_held_channels(*, pixels: int, channels: int, filters: int, slots: int) -> int:
    """Return the number of channels of an image that one ciphertext holds.

    As many channels as fit are packed, and no more than needed.

    Args:
        pixels: pixels of the image of one channel.
        channels: input channels of the layer.
        filters: output channels.
        slots: slots of a ciphertext.
    """
    needed = 1 << (max(channels, filters) - 1).bit_length()
    return max(min(slots // pixels, needed), 1)


def label_diagonals(channels: int, filters: int, held: int) -> Ints:
    """Return the diagonal of each pair of a filter and a channel, (filters, channels).

    Diagonal ``d`` of output ciphertext ``o`` has the number ``o * held + d``; multiples of ``held``
    need no rotation.
    """
    output, place = np.divmod(np.arange(filters)[:, None], held)
    return output * held + (np.arange(channels) % held - place) % held


def count_rotations(filters: int, held: int) -> int:
    """Return the number of rotations of a layer's partial sums, one for each diagonal."""
    return (held - 1) * -(-filters // held)
