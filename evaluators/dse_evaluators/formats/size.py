"""Storage size of an encoded tensor in bits, by purpose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSize:
    """Storage bits of a tensor: codes, scales, zero points, codebook, and value indices."""

    numbers: int  # number of stored values
    payload: int
    scale: int = 0
    zero_point: int = 0
    codebook: int = 0
    index: int = 0

    @property
    def total(self) -> int:
        """Total bits of all purposes."""
        return self.payload + self.scale + self.zero_point + self.codebook + self.index

    @property
    def total_bytes(self) -> int:
        """Total size in bytes, rounded up."""
        return -(-self.total // 8)

    @property
    def bits_per_number(self) -> float:
        """Average bits per stored value."""
        return self.total / self.numbers
