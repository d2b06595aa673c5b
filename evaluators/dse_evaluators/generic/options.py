"""Validation of generic evaluators' options: metrics, units, parameters to read, and kind.

Options come unchecked from YAML, so their types are not assumed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from dse.core.metric import Kind, Metric
from dse.errors import PluginError, SpecError, nearest
from dse.protocols import EVERYTHING
from dse.units.units import converted, factor, quantity

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


_FLAT = "write one list of texts, without lists or mappings in it"


def metrics_of(units: Any) -> dict[str, Metric]:
    """Return the metrics that an option ``{name: unit}`` declares.

    Raises:
        PluginError: there are no metrics, or a name could not be used in an expression.
        SpecError: a unit is unknown.
    """
    if not isinstance(units, Mapping) or not units:
        raise _no_metrics(units)
    for name, unit in units.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise PluginError(
                f"a metric cannot be called {name!r}",
                hint="use letters, digits and _, so that objectives can name it",
                part=["metrics", str(name)],
            )
        if not isinstance(unit, str):
            raise PluginError(
                f"the unit of {name!r} is {unit!r}, which is not a text",
                hint="write a unit such as W, or '' for none",
                part=["metrics", name],
            )
        _check_unit(unit, ["metrics", name])
    return {name: Metric(name=name, unit=unit) for name, unit in units.items()}


def _no_metrics(found: Any) -> PluginError:
    """Return the error for an option that is not a mapping of metrics, or is empty."""
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    shown = ", ".join(f"{name}: UNIT" for name in names if isinstance(name, str))
    hint = f"write metrics: {{{shown}}}, with '' for no unit" if shown else ""
    if isinstance(found, Mapping):
        problem = "metrics is empty: it names at least one metric with its unit"
    else:
        problem = f"metrics names each metric with its unit, and is {found!r}"
    return PluginError(problem, hint=hint or "write metrics: {power: W, hits: ''}")


def _check_unit(unit: str, part: Sequence[str]) -> None:
    """Raise SpecError unless the unit is known; ``part`` is the path of the option in the error."""
    try:
        factor(unit)
    except SpecError as error:
        raise SpecError(f"{part[-1]}: {error.problem}", hint=error.hint, part=part) from error


def reads_of(reads: Any) -> frozenset[str]:
    """Return the inputs in the option ``reads``; if it is absent, all parameters of the space.

    Raises:
        PluginError: the option is not a list of names.
    """
    if reads is None:
        return frozenset({EVERYTHING})
    return frozenset(texts_of("reads", reads))


def units_of(units: Any, readings: frozenset[str]) -> dict[str, str]:
    """Return the unit in which each input is passed to user code.

    Unnamed inputs stay in coherent SI units.

    Raises:
        PluginError: the option is not a mapping from inputs to units.
        SpecError: a unit is unknown.
    """
    if units is not None and not isinstance(units, Mapping):
        raise PluginError(f"units is {units!r}", hint="write units: {clock: MHz}")
    for name, unit in (units or {}).items():
        if not isinstance(unit, str):
            raise PluginError(f"the unit of {name!r} is {unit!r}", hint="write a unit such as MHz")
        if name not in readings and EVERYTHING not in readings:
            raise PluginError(
                f"units names {name!r}, which is not an input of the evaluator",
                hint=nearest(name, readings),
                part=["units", name],
            )
        _check_unit(unit, ["units", name])
    return dict(units or {})


def texts_of(option: str, given: Any) -> tuple[str, ...]:
    """Return the texts of an option that must be a list of texts.

    Raises:
        PluginError: the option is not a list, or an item is not a text.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        words = given.split() if isinstance(given, str) else []
        hint = f"write {option}: [{', '.join(words) or 'a, b'}]"
        raise PluginError(f"{option} is {given!r} and no list", hint=hint, part=[option])
    odd = next((item for item in given if not isinstance(item, str)), "")
    if odd != "":
        shown = "null" if odd is None else str(odd).lower() if isinstance(odd, bool) else str(odd)
        problem = f"{option} holds {shown}, which is no text"
        hint = f'put it in quotes: "{shown}"' if not isinstance(odd, list | dict) else _FLAT
        raise PluginError(problem, hint=hint, part=[option])
    return tuple(given)


def kind_of(kind: Any) -> Kind:
    """Return an evaluator's kind, checked to be ``measured`` or ``modelled``.

    Raises:
        PluginError: the option is neither.
    """
    for known in get_args(Kind):
        if kind == known:
            return known
    raise PluginError(f"an evaluator cannot be {kind!r}", hint=nearest(str(kind), get_args(Kind)))


def seconds_of(option: str, given: Any) -> float:
    """Return a duration in seconds, from a number of seconds or a text such as ``5 min``.

    Raises:
        PluginError: the value is not a duration, or not positive and finite.
        SpecError: the unit is unknown, or not a unit of time.
    """
    stated = quantity(given) if isinstance(given, str) else (given, "s")
    if stated is None or isinstance(stated[0], bool) or not isinstance(stated[0], int | float):
        problem = f"{option} is {given!r}, which is not a duration"
        raise PluginError(problem, hint="write 60 s or 5 min", part=[option])
    try:
        span_s = converted(stated[0], stated[1], "s")
    except SpecError as error:
        raise SpecError(f"{option}: {error.problem}", hint=error.hint, part=[option]) from error
    if not 0 < span_s < math.inf:
        raise PluginError(f"{option} is {given!r}", hint="it must be above 0 s", part=[option])
    return span_s
