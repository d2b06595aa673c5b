"""Equality of values whose difference is the rounding error of floating-point sums."""

from __future__ import annotations

import math

TIE = 1e-9
"""Relative: sums over thousands of terms in another order differ by some 1e-10, and no design is
chosen for that. It is wider than what limits compare by, which decides and does not only tell."""


def is_tie(one: float, other: float, size: float = 0.0) -> bool:
    """Return whether two values are reported as equal.

    Args:
        one: a value.
        other: another in the same unit.
        size: what is large in this unit; the larger of the two without it.
    """
    return math.isclose(one, other, rel_tol=TIE, abs_tol=TIE * size)
