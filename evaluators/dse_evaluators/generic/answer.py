"""Validation of what user code returns for a design: metric values, or a fault."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dse.core.metric import Failure, Metrics
from dse.core.values import Floats

_SHOWN = 200
"""Number of characters of an invalid answer that an error message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """Value of a metric, with its standard error if known; ``why`` is the reason if it is NaN."""

    value: float
    spread: float | None = None
    why: str = ""


Answer = Mapping[str, MetricValue] | Failure
"""Values of all declared metrics of one design, or the fault of a failed evaluation."""


def readings(
    given: object,  # {"power": 3.1}, {"power": {"value": 3.1, "spread": 0.2}}, {"power": (3.1, 0)}
    names: Sequence[str],
) -> Answer:
    """Check what user code returned for a design; return its metrics, or why it is malformed.

    Only the metrics ``names`` are returned; a missing one is NaN with the reason.
    """
    if not isinstance(given, Mapping):
        like = f" such as {{{names[0]!r}: 1.5}}" if names else ""
        return invalid(f"expected a mapping from metrics to numbers{like}, got {shown(given)}")
    found: dict[str, MetricValue] = {}
    for name in names:
        if name not in given:
            has = ", ".join(map(str, given)) or "nothing"
            found[name] = _without(f"the metric {name!r} is missing; there is {has[:_SHOWN]}")
            continue
        reading = _reading(name, given[name])
        if isinstance(reading, Failure):
            return reading
        found[name] = reading
    return found


def invalid(reason: str) -> Failure:
    """Return the failure of kind ``invalid``, for user code that returned no valid metrics."""
    return Failure(kind="invalid", reason=reason)


def shown(value: object) -> str:
    """Return a value's ``repr`` for an error message, cut to ``_SHOWN`` characters.

    The type is appended where the text does not show it.
    """
    text = repr(value)
    cut = f"{text[:_SHOWN]}..." if len(text) > _SHOWN else text
    is_evident = isinstance(value, str | int | float | list | dict | tuple) or value is None
    return cut if is_evident else f"{cut} ({type(value).__name__})"


def columns_of(answers: Sequence[Answer], names: Sequence[str]) -> Metrics:
    """Return the results of n designs as one array (n,) per metric, with failures by index.

    Values of failed designs and unknown standard errors are NaN.
    """
    failures = {row: answer for row, answer in enumerate(answers) if isinstance(answer, Failure)}
    spread = {name: _column(answers, name, "spread") for name in names}
    return Metrics(
        columns={name: _column(answers, name, "value") for name in names},
        spread={name: column for name, column in spread.items() if not np.isnan(column).all()},
        failures=failures,
        undefined={
            name: {
                row: answer[name].why
                for row, answer in enumerate(answers)
                if not isinstance(answer, Failure) and answer[name].why
            }
            for name in names
        },
    )


def _without(why: str) -> MetricValue:
    """Return a metric value of NaN with the reason ``why``."""
    return MetricValue(value=math.nan, why=why)


def _column(answers: Sequence[Answer], name: str, what: str) -> Floats:
    values = [None if isinstance(a, Failure) else getattr(a[name], what) for a in answers]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _reading(name: str, given: Any) -> MetricValue | Failure:
    if isinstance(given, Mapping) and "value" not in given:
        return invalid(f"{name} is {shown(given)}, which has no 'value'")
    value, spread = given, None
    if isinstance(given, Mapping):
        value, spread = given["value"], given.get("spread")
    elif isinstance(given, tuple) and len(given) == 2:
        value, spread = given
    if value is None:
        return _without(f"{name} is {shown(value)}, which is no number")
    number = _number(name, value)
    if isinstance(number, Failure):
        return number
    if not math.isfinite(number):
        return _without(f"{name} is {shown(value)}, which is not finite")
    return MetricValue(value=number) if spread is None else _spread_out(name, number, spread)


def _spread_out(name: str, value: float, spread: Any) -> MetricValue | Failure:
    error = _number(f"the spread of {name}", spread)
    if isinstance(error, Failure):
        return error
    if not math.isfinite(error):
        return invalid(f"the spread of {name} is {shown(spread)}, which is not finite")
    if error < 0:
        return invalid(f"the spread of {name} is {error}, which is below zero")
    return MetricValue(value=value, spread=error)


def _number(name: str, given: Any) -> float | Failure:
    if getattr(given, "ndim", None) == 0 and hasattr(given, "item"):
        given = given.item()  # a scalar of numpy or torch
    if isinstance(given, bool) or not isinstance(given, Real):
        return invalid(f"{name} is {shown(given)}, which is no number")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    return number
