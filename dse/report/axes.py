"""Axes of all figures, for plotly, SVG and the terminal: range, log scale, ticks and labels.

Range: the best values and other values near them. In plots whose marks have a size, the fraction
:data:`MARGIN` of the range is added at both ends. Values far from the best are outside of the
range; a caption states their number.

Scale: logarithmic if all values that a reader can see are positive and the largest is more than
:data:`LOG_FROM` times the smallest. In a plotly figure, which can be zoomed out, a reader can see
all values; in a fixed plot, those within its range.

Ticks: about five round numbers, multiples of 1, 2 or 5 times a power of ten. A log axis has powers
of ten, and if these are few also 2 and 5 (or 3) times them. Plotly places its ticks itself by the
same rule, because they change with the zoom. A terminal plot has only its two ends, each with its
unit.

Labels: four significant digits and short exponents, in the unit whose prefix suits the largest
value, or on a log axis the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.report.words import number_text, prefix_unit, truncate_text
from dse.units.units import converted

LOG_FROM = 50.0
"""Ratio of the largest to the smallest positive value above which an axis is logarithmic."""

MARGIN = 0.04
"""Share of its range by which an axis extends beyond its values at each end."""

_TITLE_LETTERS = 40
_ENOUGH_BEST = 3
_LONG_S = {"s": 120.0, "min": 7200.0}

_ROUND = (1.0, 2.0, 5.0, 10.0)
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Axis of a figure, on which values are multiplied by ``factor`` and shown in ``unit``."""

    name: str
    unit: str = ""
    factor: float = 1.0
    log: bool = False

    @property
    def title(self) -> str:
        """Name of the axis with the unit, truncated to fit along the axis."""
        return _title(self.name, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAxis:
    """Axis of a plot with fixed ends, from ``low`` to ``high`` in ``unit``.

    ``aim`` is the end at which values are better.
    """

    name: str
    low: float
    high: float
    unit: str = ""
    factor: float = 1.0
    aim: str = ""
    log: bool = False

    @property
    def title(self) -> str:
        """Name of the axis with the unit, truncated to fit along the axis."""
        return _title(self.name, self.unit)

    @property
    def notes(self) -> str:
        """Note on the axis: the better direction, and a logarithmic scale if there is one."""
        return ", ".join(word for word in (self.aim, "log scale" if self.log else "") if word)

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends of the axis as texts with units; counts have no decimals."""
        low, high = (number_text(end, self.unit) for end in (self.low, self.high))
        return low, high

    @property
    def ticks(self) -> list[float]:
        """Round numbers along the axis, at which it has ticks."""
        return ticks(self.low, self.high, log=self.log)

    def shares(self, values: Floats) -> Floats:
        """Return the positions of values along the axis: 0 at its low end and 1 at its high end."""
        return shares(values, self.low, self.high, log=self.log)


def _title(name: str, unit: str) -> str:
    text = truncate_text(name, _TITLE_LETTERS)
    return f"{text} [{unit}]" if unit else text


def axis_of(
    name: str,
    unit: str,
    values: Floats,  # (n,)
) -> Axis:
    """Return an axis with a unit prefix and a scale (linear or log) that suit these values."""
    finite = values[np.isfinite(values)]
    log = is_log(finite)
    typical = np.median(finite) if log else np.abs(finite).max(initial=0.0)
    prefixed = prefix_unit(float(typical), unit)
    return Axis(name=name, unit=prefixed, factor=converted(1.0, unit, prefixed), log=log)


def is_log(values: Floats) -> bool:
    """Return whether the finite values among these belong on a log axis."""
    finite = values[np.isfinite(values)]
    return bool(len(finite) and 0 < finite.min() < finite.max() / LOG_FROM)


def plot_axis(
    axis: Axis,
    best: Floats,  # (k,), in the axis' unit
    every: Floats,  # (n,), in the axis' unit, including the best
    *,
    aim: str = "",
    margin: float = MARGIN,
) -> PlotAxis:
    """Return an axis with fixed ends that shows the best values and others near them."""
    ends = focus(best, every, np.zeros(0), log=axis.log, margin=margin) or (0.0, 0.0)
    if ends[0] == ends[1]:  # all values near the best may be equal
        finite = every[np.isfinite(every)]
        ends = widen(float(finite.min()), float(finite.max()), log=axis.log, margin=margin)
    return PlotAxis(
        name=axis.name,
        low=ends[0],
        high=ends[1],
        unit=axis.unit,
        factor=axis.factor,
        aim=aim,
        log=axis.log and is_log(np.array(ends)),
    )


def focus(
    best: Floats,  # (k,)
    others: Floats,  # (n,)
    marked: Floats,  # (b,)
    *,
    log: bool,
    margin: float = MARGIN,
) -> tuple[float, float] | None:
    """Return axis limits that zoom in on the best values, unless all values are near the best.

    ``None`` means no zoom. The limits contain a core of values: the best values and, if there are
    fewer than three of them, the middle half of the other values. Other values are left out if they
    are more than one span away from the core, and marked values, such as limits, if they are more
    than two spans away. The span is the range of the core, or that of the middle half of the other
    values if it is wider.
    """
    best, others, marked = (_scale_values(each, log=log) for each in (best, others, marked))
    if not len(best):
        return None
    middle = np.quantile(others, [0.25, 0.75]) if len(others) else best[:1]
    shown_values = best if len(best) >= _ENOUGH_BEST else np.concatenate([best, middle])
    low, high = float(shown_values.min()), float(shown_values.max())
    span = max(high - low, float(np.ptp(middle)))
    near = others[(others >= low - span) & (others <= high + span)]
    near_marks = marked[(marked >= low - 2 * span) & (marked <= high + 2 * span)]
    if not span or len(near) + len(near_marks) == len(others) + len(marked):
        return None
    every = np.concatenate([best, near, near_marks])
    room = margin * float(np.ptp(every) or span)
    ends = float(every.min()) - room, float(every.max()) + room
    return (10.0 ** ends[0], 10.0 ** ends[1]) if log else ends


def _scale_values(values: Floats, *, log: bool) -> Floats:
    """Return the finite values, (k,), or for a log axis log10 of the positive ones."""
    kept = values[np.isfinite(values) & (values > 0 if log else True)]
    return np.asarray(np.log10(kept) if log else kept)


def seconds_axis(name: str, longest_s: float) -> Axis:
    """Return a time axis in the unit that suits the longest time: seconds, minutes or hours."""
    unit = next((unit for unit, most in _LONG_S.items() if longest_s < most), "h")
    return Axis(name=name, unit=unit, factor=converted(1.0, "s", unit))


def widen(low: float, high: float, *, log: bool, margin: float = MARGIN) -> tuple[float, float]:
    """Move both ends of a range outwards by a fraction of it, so that no point is on a border."""
    if not margin:
        return low, high
    if log:
        ratio = (high / low) ** margin
        return low / ratio, high * ratio
    room = margin * (high - low) or 0.1 * abs(low) or 1.0
    return low - room, high + room


def shares(values: Floats, low: float, high: float, *, log: bool) -> Floats:
    """Return the positions of values on an axis: 0 at ``low``, 1 at ``high``; NaN if none."""
    if high == low:  # all values are equal: draw them in the middle
        return np.where(values == low, 0.5, np.nan)
    with np.errstate(all="ignore"):
        start, end = (np.log([low, high]) if log else np.array([low, high])).tolist()
        return np.asarray(((np.log(values) if log else values) - start) / (end - start))


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
    """Return powers of ten within the range; if they are few, also multiples between them."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    kinds = [
        [mark * 10.0**power for power in range(first, last + 1) for mark in marks]
        for marks in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
    ]
    kinds = [[value for value in kind if low <= value <= high] for kind in kinds]
    few = [kind for kind in kinds if len(kind) <= most + 1]
    powers = kinds[-1]
    return few[0] if few else powers[:: -(-len(powers) // most)]
