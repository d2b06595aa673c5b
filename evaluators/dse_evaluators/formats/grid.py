"""The numbers that a code can stand for: what every kind of them can do."""

from __future__ import annotations

from typing import Protocol

from dse_evaluators.formats.arrays import Single, Words


class Grid(Protocol):
    """A set of numbers, each with a code of ``bits`` bits.

    Laws: what was snapped stays when it is snapped again; the value of the code of a snapped
    number is that number, and its sign of zero.
    """

    @property
    def bits(self) -> int:
        """Bits of a code."""

    @property
    def top(self) -> float:
        """The largest finite number."""

    @property
    def has_nan(self) -> bool:
        """True if a code stands for what is no number."""

    def snap(self, values: Single, chance: Single | None) -> None:
        """Moves each value to the nearest number, or by ``chance`` to one of its neighbours."""

    def codes(self, snapped: Single) -> Words:
        """The code of each number of the grid."""

    def values(self, codes: Words) -> Single:
        """The number of each code."""
