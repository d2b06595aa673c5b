"""A function that the evaluator ``python`` finds by name."""

from __future__ import annotations


def square(side: float) -> dict[str, float]:
    """The area of a square."""
    return {"area": side**2}
