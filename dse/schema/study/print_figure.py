"""Figures published in papers: a number, an interval or a bound."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse.schema.models import Published, Quantity
from dse.units import units

TENTH = 0.1
"""Relative tolerance for agreement with a published figure, where ``accept`` has no window."""

_TIMES = re.compile(r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*x?")
_BOUND = re.compile(r"\s*(<=?|>=?)\s*(\S.*)")
_NONE = re.compile(r"none\b|not told|no figure|by definition", re.IGNORECASE)
_FIGURE = re.compile(r"\d\s*(x\b|%|times\b|percent\b)")
_GRID = 201
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintFigure:
    """Published figure of a paper as an interval; ``low`` equals ``high`` for a number.

    Both are in the unit of the study's own number. For a bound, one end is infinite. ``unit`` is
    the paper's unit, for display.
    """

    low: float
    high: float
    unit: str

    def is_met(self, ours: float) -> bool:
        """Return whether the study's number is in the published interval, widened by 10 %.

        An interval with an infinite end is not widened.
        """
        if math.isinf(self.low) or math.isinf(self.high):
            return self.low <= ours <= self.high
        return self.low - TENTH * abs(self.low) <= ours <= self.high + TENTH * abs(self.high)

    def points(self) -> Floats:
        """Return sample points of the published interval, (n,), including its finite ends."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return np.linspace(self.low, self.high, _GRID)
        end, sign = (self.low, 1.0) if math.isfinite(self.low) else (self.high, -1.0)
        steps = (abs(end) or 1.0) * np.logspace(-6, 6, _GRID)
        return np.concatenate([[end], end + sign * steps])

    def outside(self) -> Floats:
        """Return the ends of the published interval after widening it by a factor of two, (2,).

        An acceptance window that contains neither end counts as a window around the figure. For a
        figure of 0, the ends are -0.5 and 0.5.
        """
        if self.low == self.high == 0:
            return np.array([-_HALF, _HALF])
        low, high = min(self.low / 2, self.low * 2), max(self.high / 2, self.high * 2)
        return np.array([low, high])


def figure_of(published: Published, unit: str) -> PrintFigure | None:
    """Parse a published figure and convert it to ``unit``; ``None`` if it has no number.

    Raises:
        SpecError: the unit has another dimension, or an interval is not two ascending numbers.
    """
    if isinstance(published, list):
        ends = [_number(one, unit) for one in published]
        values = [one[0] for one in ends if one is not None]
        if len(ends) != 2 or len(values) != 2 or values[0] > values[1]:
            raise SpecError(
                f"{published} is not an interval", hint="write two numbers, the lower one first"
            )
        return PrintFigure(low=values[0], high=values[1], unit=ends[0][1] if ends[0] else unit)
    if published is None:
        return None
    bound = _BOUND.fullmatch(published) if isinstance(published, str) else None
    found = _number(bound[2] if bound else published, unit)
    if found is None:
        return None
    value, written = found
    low = -math.inf if bound and bound[1][0] == "<" else value
    high = math.inf if bound and bound[1][0] == ">" else value
    return PrintFigure(low=low, high=high, unit=written)


def is_nothing(published: Published) -> bool:
    """Return whether no figure was published: ``None``, or a text such as ``none``."""
    return published is None or (isinstance(published, str) and bool(_NONE.match(published)))


def hides_figure(published: Published) -> bool:
    """Return whether a text contains a ratio or a percentage that could be a figure.

    An example is ``up to 48x faster``.
    """
    return isinstance(published, str) and bool(_FIGURE.search(published))


def _number(text: Quantity, unit: str) -> tuple[float, str] | None:
    """Return a figure's number in ``unit``, and the unit as written; ``None`` if not a number."""
    value, written = _parse_figure(text)
    if value is None:
        return None
    if not math.isfinite(value):
        raise SpecError(f"{text!r} is not a finite number")
    if not units.same_dimension(written, unit):
        shown = unit or "no unit"
        raise SpecError(
            f"the published figure is {text!r} and ours is in {shown}",
            hint="let 'ours' be the same quantity, or write both in the same unit",
        )
    return units.converted(value, written, unit) if written != unit else value, written


def _parse_figure(text: Quantity) -> tuple[float | None, str]:
    if not isinstance(text, str):
        return float(text), ""
    times = _TIMES.fullmatch(text.strip())
    if times:
        try:
            return float(times[1]), ""
        except ValueError:
            return None, ""
    found = units.quantity(text)
    if found is None:
        return None, ""
    try:
        units.unit(found[1])
    except SpecError:
        return None, ""  # text that begins with a number
    return found
