"""Protocol of value grids: the finite sets of numbers that codes can represent."""

from __future__ import annotations

from typing import Protocol

from dse_evaluators.formats.arrays import Single, Words


class Grid(Protocol):
    """Set of representable numbers before scaling, each with a code of ``bits`` bits.

    Laws: ``snap`` is idempotent; decoding the code of a snapped number gives that number, and the
    same sign of zero.
    """

    @property
    def bits(self) -> int:
        """Number of bits of a code."""

    @property
    def top(self) -> float:
        """Largest finite number on the grid."""

    @property
    def has_nan(self) -> bool:
        """Whether a code represents NaN."""

    def snap(self, values: Single, chance: Single | None) -> None:
        """Round each value in place to the nearest number of the grid, or stochastically.

        ``chance``, one uniform random number on [0, 1) per value, selects one of the two
        neighbouring numbers; ``None`` rounds to nearest.
        """

    def codes(self, snapped: Single) -> Words:
        """Return the code of each number; all numbers must be on the grid."""

    def values(self, codes: Words) -> Single:
        """Return the number that each code represents."""
