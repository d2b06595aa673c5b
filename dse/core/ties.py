"""Ties: equality of values up to the rounding error of floating-point sums."""

from __future__ import annotations

import math

TIE = 1e-9
"""Relative tolerance of a tie. Sums of thousands of terms in different orders differ by about
1e-10, which must not decide between designs. It is wider than the tolerance of limits, because it
only affects what is reported, while limits decide feasibility."""


def is_tie(one: float, other: float, size: float = 0.0) -> bool:
    """Return whether two values are equal up to rounding errors, so that they count as a tie.

    Args:
        one: a value.
        other: another value in the same unit.
        size: the typical magnitude in this unit, to which the tolerance is relative if it is larger
            than the magnitude of both values.
    """
    return math.isclose(one, other, rel_tol=TIE, abs_tol=TIE * size)
