"""Size of a tensor in bits, by purpose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSize:
    """Bits of the codes, of what they need to be read, and of where they stand."""

    numbers: int  # how many are stored
    payload: int
    scale: int = 0
    zero_point: int = 0
    codebook: int = 0
    index: int = 0

    @property
    def total(self) -> int:
        """All bits."""
        return self.payload + self.scale + self.zero_point + self.codebook + self.index

    @property
    def total_bytes(self) -> int:
        """Whole bytes that hold all bits."""
        return -(-self.total // 8)

    @property
    def bits_per_number(self) -> float:
        """All bits over the numbers."""
        return self.total / self.numbers
