"""Layer as its number format stores it, and what is read after flips in its codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dse.core.values import Ints
from dse_evaluators.compression.operators.dense import axis_of
from dse_evaluators.faults.code_bits import CodeBits, code_bits
from dse_evaluators.faults.protections import Masks, Protection
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.names import format_of


@dataclass(frozen=True)
class StoredLayer:
    """Weights of a layer, encoded in a number format.

    Args:
        text: name of the format; ``keep`` is single precision.
        weight: the weights, (outputs, inputs, ...).
    """

    text: str
    weight: Single

    @cached_property
    def form(self) -> Format:
        return format_of(self.text)

    @cached_property
    def code(self) -> CodeBits:
        """Bit fields of the codes in which the layer's weights are stored."""
        return code_bits(self.text)

    @cached_property
    def encoded(self) -> Encoded:
        return self.form.encode(self.weight, axis_of(self.weight.shape))

    @cached_property
    def values(self) -> Single:
        """Weights as they are read without faults, in the shape of the layer."""
        return self.form.decode(self.encoded)

    @property
    def size_bits(self) -> int:
        """Stored bits without protection: codes, scales, zero points and codebooks."""
        return self.form.bits(self.weight.shape, axis_of(self.weight.shape)).total

    @cached_property
    def ends(self) -> tuple[np.float32, np.float32]:
        """Least and largest weight of the layer."""
        return self.values.min(), self.values.max()

    def read(
        self,
        protection: Protection,
        places: Ints,  # (k,), of distinct weights
        flips: Masks,  # (k,)
        copies: Masks,  # (copies, k)
    ) -> Single:
        """Return the weights at some places as they are read after flips, (k,).

        Args:
            protection: the protection of the layer.
            places: indices of the flattened weights.
            flips: flipped bits of their codes.
            copies: flipped bits of the protection's copies.
        """
        words = protection.read(flips, copies, self.code)
        decoded = self._decode(places, words.flips.astype(np.uint32))
        low, high = self.ends
        zeroed = words.zeroed
        if protection.outside == "end":
            zeroed = zeroed | np.isnan(decoded)
            decoded = np.clip(decoded, low, high)
        if protection.outside == "zero":
            zeroed = zeroed | ~((low <= decoded) & (decoded <= high))
        return np.where(zeroed, np.float32(0), decoded).astype(np.float32)

    def _decode(self, places: Ints, flips: Words) -> Single:
        """Return the values of some codes after flips, (k,)."""
        if not self.encoded.sides:  # without scales, a code is a value by itself
            codes = self.encoded.codes[places] ^ flips
            part = replace(self.encoded, codes=codes, shape=(len(places),), axis=-1)
            return self.form.decode(part)
        codes = self.encoded.codes.copy()
        codes[places] ^= flips
        return self.form.decode(replace(self.encoded, codes=codes)).reshape(-1)[places]
