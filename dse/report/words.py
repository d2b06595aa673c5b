"""Text formatting of values, units, durations and counts for tables, figures and pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.values import Value
from dse.units.units import converted, shown

_LEGIBLE = 1e-3, 1e6
"""Range of absolute values that are written without an exponent."""

_MOST_DECIMALS = 6


@lru_cache(maxsize=65_536, typed=True)  # tables and figures format the same values repeatedly
def value_text(value: Value | None, unit: str = "") -> str:
    """Return a parameter's value as text; a dash where it is inactive."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int) and unit in ("", "1"):
        return str(value)
    return shown(value, unit)


@lru_cache(maxsize=65_536)
def number_text(
    value: float | None, unit: str = "", spread: float | None = None, written: str = ""
) -> str:
    """Return a metric's value with unit and, if known, standard error; a dash without a value.

    The unit ``written`` by the user is used unless the number would be very small or large in it.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if written and _LEGIBLE[0] <= abs(converted(value, unit, written)) < _LEGIBLE[1]:
        error = f" ± {converted(spread, unit, written):.2g}" if spread else ""
        return f"{converted(value, unit, written):.4g}{error} {written}"
    if not spread or not math.isfinite(spread):
        return shown(value, unit)
    prefixed = prefix_unit(value, unit)
    factor = converted(1.0, unit, prefixed)
    return f"{factor * value:.4g} ± {factor * spread:.2g} {prefixed}".rstrip()


def metric_text(value: float | None, metric: Metric, spread: float | None = None) -> str:
    """Return a metric as text: its label if the metric has labels, else number and unit."""
    return word_of(value, metric) or number_text(value, metric.unit, spread, metric.written)


def word_of(value: float | None, metric: Metric) -> str | None:
    """Return the label of a categorical metric's value; ``None`` if it has no label."""
    if value is None or not metric.words or value not in range(len(metric.words)):
        return None
    return metric.words[int(value)]


def prefix_unit(typical: float, unit: str) -> str:
    """Return the unit with the prefix that suits a typical value: ``mJ`` for 0.003 J."""
    return shown(typical, unit).partition(" ")[2] if unit and typical else unit


def design_text(
    design: Mapping[str, Value],
    names: Iterable[str],
    units: Mapping[str, str],
    most: int | None = None,
) -> str:
    """Return a design as ``name=value`` pairs of its active parameters.

    Only the first ``most`` pairs are listed, followed by the number of pairs left out.
    """
    pairs = [
        f"{truncate_text(n)}={truncate_text(value_text(design[n], units.get(n, '')))}"
        for n in names
        if n in design
    ]
    more = 0 if most is None else len(pairs) - most
    return ", ".join([*pairs[:most], f"and {more} more"] if more > 0 else pairs)


def truncate_text(words: str, letters: int = 80) -> str:
    """Return the beginning of a long text, at most ``letters`` characters with an ellipsis."""
    return words if len(words) <= letters else words[: letters - 1] + "…"


def parameter_units(problem: Problem) -> dict[str, str]:
    """Return the unit of each parameter by name."""
    return {parameter.name: parameter.unit for parameter in problem.space.parameters}


def broken_text(problem: Problem, broken: Mapping[str, float]) -> str:
    """Return which limits a design violates, and by how much, as text.

    The amount is in percent of the bound if the bound is a constant.
    """
    bounded = {limit.text for limit in problem.limits if limit.scale != 1.0}
    reasons = {
        text: percent_text(amount, 3) if text in bounded else f"{amount:.3g}"
        for text, amount in broken.items()
    }
    return "; ".join(f"{text} is missed by {amount}" for text, amount in reasons.items())


def percent_text(share: float, digits: int = 2) -> str:
    """Return a fraction as a percentage with ``digits`` significant digits: ``280 %``.

    Exponents are never used.
    """
    percent = 100 * share
    if 0 < abs(percent) < 1e-3:
        return "less than 0.001 %"
    rounded = float(f"{percent:.{digits}g}")  # 99.9 becomes 100, which :.2g writes as 1e+02
    return f"{rounded:,.0f} %" if abs(rounded) >= 10**digits else f"{rounded:.{digits}g} %"


def join_list(words: Iterable[str], last: str = "and") -> str:
    """Return the items as a list in prose: ``a, b and c``."""
    *front, end = list(words) or [""]
    return f"{', '.join(front)} {last} {end}" if front else end


def reference_text(objectives: Iterable[Objective], point: Iterable[float]) -> str:
    """Return a reference point as text: ``chip.energy 1 mJ, quality.accuracy 0.5``.

    Objectives whose logarithms count in the hypervolume are marked: ``1 mJ (log scale)``.
    """
    pairs = zip(objectives, point, strict=True)
    return ", ".join(
        f"{o.name} {number_text(value, o.unit, written=o.written)}{' (log scale)' * o.log}"
        for o, value in pairs
    )


def volume_text(front: ParetoSet) -> str:
    """Return the front's share of the hypervolume (:func:`share_text`); a dash if unknown."""
    return share_text(front.hypervolume_share, estimated=not front.hypervolume_is_exact)


def share_text(share: float | None, *, estimated: bool = False) -> str:
    """Return a share of a hypervolume in percent, with two digits of what is missing to 100 %.

    Args:
        share: the share, from 0 to 1; a dash stands for ``None``.
        estimated: whether ``≈`` precedes the number.
    """
    if share is None or not math.isfinite(share):
        return "-"
    about, percent = "≈" if estimated else "", 100 * share
    if not 99 < percent < 100:
        return f"{about}{percent_text(share, 3)}"
    digits = min(1 - math.floor(math.log10(100 - percent)), _MOST_DECIMALS)
    cut = math.floor(percent * 10**digits) / 10**digits  # rounding could yield 100
    return f"{about}{cut:.{digits}f} %"


def moment_text(at: float) -> str:
    """Return a Unix time in seconds as a date and time: 2026-01-31 09:05:00 UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def seconds_text(seconds: float) -> str:
    """Return a duration as text: ``12.3 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if seconds < 60:
        return shown(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"
