"""Axis ticks at round numbers."""

from __future__ import annotations

import math

_ROUND = (1.0, 2.0, 5.0, 10.0)
_FEW = 3


def ticks(low: float, high: float, *, log: bool, most: int = 5) -> list[float]:
    """Return about ``most`` round numbers within a range; none if the range is not finite."""
    if not 0 < high - low < math.inf:
        return [low] if low == high else []
    if log:
        found = _powers(low, high, most)
        if len(found) >= _FEW:
            return found
    return _multiples(low, high, most)


def tick_text(value: float) -> str:
    """Return the label of a tick: four significant digits, short exponents."""
    return f"{value + 0.0:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def _multiples(low: float, high: float, most: int) -> list[float]:
    step = _step((high - low) / most)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [place * step for place in range(first, last + 1)]


def _step(least: float) -> float:
    """Return the smallest of ..., 1, 2, 5, 10, 20, ... that is at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * one for one in _ROUND if power * one >= least * (1 - 1e-9))


def _powers(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten within the range, with multiples between them if there are few."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    kinds = [
        [mark * 10.0**power for power in range(first, last + 1) for mark in marks]
        for marks in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
    ]
    kinds = [[value for value in kind if low <= value <= high] for kind in kinds]
    few = [kind for kind in kinds if len(kind) <= most + 1]
    powers = kinds[-1]
    return few[0] if few else powers[:: -(-len(powers) // most)]
