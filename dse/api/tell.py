"""Results that the caller of a study reports for designs: metric values, or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from dse.core.metric import Fault
from dse.core.trial import Trial
from dse.errors import InfeasibleError, SpecError, nearest
from dse.study.study_engine import StudyEngine

Told = Mapping[str, float | tuple[float, float]]
"""Values by metric, each a number or ``(value, standard error)``."""

Reason = str | BaseException
"""Reason why there are no metrics: a text, or the exception that was caught."""

_ONE_OF_THEM = (
    'tell(trial, {"time": 3.1}), tell(trial, failed="why") or tell(trial, infeasible=...)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Result reported by the caller: metric values with standard errors, or a fault.

    Metrics are keyed by the names that the caller used.
    """

    values: Mapping[str, float]
    spread: Mapping[str, float]
    fault: Fault | None

    @staticmethod
    def of(told: Told | None, failed: Reason | None, infeasible: Reason | None) -> Said:
        """Return the validated result: metrics, or the reason of a failure or infeasibility.

        Raises:
            SpecError: none or several of the three are given, or a value is not finite.
        """
        if told is not None:  # with metrics, an empty reason is ignored: failed=message or ""
            failed, infeasible = failed or None, infeasible or None
        said = [one for one in (told, failed, infeasible) if one is not None]
        if len(said) != 1:
            many = "more than one thing is" if said else "nothing is"
            raise SpecError(f"{many} reported for the design", hint=_ONE_OF_THEM)
        if failed is not None:
            return Said(values={}, spread={}, fault=Fault(kind="raised", reason=_reason(failed)))
        if infeasible is not None:
            fault = Fault(kind="infeasible", reason=_reason(infeasible))
            return Said(values={}, spread={}, fault=fault)
        if not isinstance(told, Mapping):
            problem = f"{told!r} is no mapping from metrics to numbers"
            raise SpecError(problem, hint=_ONE_OF_THEM)
        pairs = {name: _pair(name, one) for name, one in told.items()}
        spread = {name: error for name, (_, error) in pairs.items() if error is not None}
        return Said(values={n: v for n, (v, _) in pairs.items()}, spread=spread, fault=None)


def number_of(trial: Trial | int) -> int:
    """Return the number of a trial that is given as a trial or by its number.

    Raises:
        SpecError: the argument is neither a trial nor an integer.
    """
    number = trial.number if isinstance(trial, Trial) else whole(trial)
    if number is None:
        raise SpecError(f"{trial!r} is no trial", hint="for trial in study.ask(4): ...")
    return number


def full_metric_name(study: StudyEngine, name: str) -> str:
    """Return a metric's full name, ``evaluator.metric``, given that name or only ``metric``.

    Args:
        study: the study.
        name: the name that the caller used.

    Raises:
        SpecError: there is no such metric, or several.
    """
    known = study.problem.metrics
    found = [one for one in known if one == name] or [
        f"{bound.name}.{own}"
        for bound in study.plan.pipeline.bound
        for own in bound.evaluator.provides
        if own == name
    ]
    if len(found) != 1:
        raise SpecError(f"there is no metric {name!r}", hint=nearest(name, known))
    return found[0]


def whole(number: object) -> int | None:
    """Return an integer, also a numpy one, as ``int``; ``None`` for any other value."""
    try:
        return index(number)  # type: ignore[arg-type] # any type may come
    except TypeError:
        return None


def _reason(told: Reason) -> str:
    """Return the reason of a failure as text; an exception is formatted as an evaluator's is."""
    if isinstance(told, InfeasibleError):
        return told.problem
    if isinstance(told, BaseException):
        return f"{type(told).__name__}: {told}"
    if not isinstance(told, str):
        raise SpecError(f"{told!r} is no reason", hint='failed="out of memory", or an exception')
    return told.strip() or "no reason given"


def _pair(name: str, told: Any) -> tuple[float, float | None]:
    """Return a metric value and its standard error (``None`` without one), as floats.

    Raises:
        SpecError: the value is not finite, or the error is negative.
    """
    value, error = told if isinstance(told, tuple) and len(told) == 2 else (told, None)
    number, known = _number(value), None if error is None else _number(error)
    if number is None or (error is not None and known is None):
        raise SpecError(
            f"{name} is {told!r}", hint='a finite number; else tell(trial, failed="why")'
        )
    if known is not None and known < 0:
        raise SpecError(f"{name} is {told!r}", hint="a standard error is zero or more")
    return number, known


def _number(told: Any) -> float | None:
    """Return a value as a finite float; ``None`` for others, including strings and booleans."""
    if isinstance(told, str | bytes | bool | np.bool_):
        return None
    try:
        number = float(told)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
