"""Axis layout for figures: unit prefix, linear or log scale, and range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.report.words import prefix_unit, truncate_text
from dse.units.units import converted

LOG_FROM = 50.0
"""Ratio of the largest to the smallest positive value above which an axis is logarithmic."""

_TITLE_LETTERS = 40
_ENOUGH_BEST = 3
_LONG_S = {"s": 120.0, "min": 7200.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Quantity along an axis: displayed value = original value * ``factor``, in ``unit``."""

    name: str
    unit: str
    factor: float
    log: bool

    @property
    def title(self) -> str:
        """Name with its unit, truncated to fit along an axis."""
        name = truncate_text(self.name, _TITLE_LETTERS)
        return f"{name} [{self.unit}]" if self.unit else name


def axis_of(
    name: str,
    unit: str,
    values: Floats,  # (n,)
) -> Axis:
    """Return the axis with the unit prefix and the scale that suit these values."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    log = bool(low > 0 and high / low > LOG_FROM)
    told = prefix_unit(float(np.median(finite) if log else max(abs(low), abs(high))), unit)
    return Axis(name=name, unit=told, factor=converted(1.0, unit, told), log=log)


def focus(
    best: Floats,  # (k,)
    others: Floats,  # (n,)
    marked: Floats,  # (b,)
    *,
    log: bool,
) -> tuple[float, float] | None:
    """Return axis ends that frame the best values; ``None`` if no other value is far from them.

    Far means more than one span away from the best values, and also from the middle half of the
    others if there are fewer than three best values. The span is the range of these values, or that
    of the middle half of the others if wider. Marked values, such as limits, are kept in view up to
    two spans away.
    """
    best, others, marked = (_scale_values(each, log=log) for each in (best, others, marked))
    if not len(best):
        return None
    middle = np.quantile(others, [0.25, 0.75]) if len(others) else best[:1]
    told = best if len(best) >= _ENOUGH_BEST else np.concatenate([best, middle])
    low, high = float(told.min()), float(told.max())
    span = max(high - low, float(np.ptp(middle)))
    near = others[(others >= low - span) & (others <= high + span)]
    near_marks = marked[(marked >= low - 2 * span) & (marked <= high + 2 * span)]
    if not span or len(near) + len(near_marks) == len(others) + len(marked):
        return None
    every = np.concatenate([best, near, near_marks])
    margin = 0.04 * float(np.ptp(every) or span)
    ends = float(every.min()) - margin, float(every.max()) + margin
    return (10.0 ** ends[0], 10.0 ** ends[1]) if log else ends


def _scale_values(values: Floats, *, log: bool) -> Floats:
    """Return the finite values; for a log axis, log10 of the positive ones."""
    kept = values[np.isfinite(values) & (values > 0 if log else True)]
    return np.asarray(np.log10(kept) if log else kept)


def seconds_axis(name: str, longest_s: float) -> Axis:
    """Return a time axis in seconds, minutes or hours."""
    unit = next((unit for unit, most in _LONG_S.items() if longest_s < most), "h")
    return Axis(name=name, unit=unit, factor=converted(1.0, "s", unit), log=False)
