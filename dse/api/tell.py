"""Results that the caller of a study reports for designs: metric values, or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from dse.core.metric import Failure
from dse.core.trial import Trial
from dse.errors import InfeasibleError, SpecError, nearest
from dse.study.study_engine import StudyEngine

MetricValues = Mapping[str, float | tuple[float, float]]
"""Values by metric, each a number or ``(value, standard error)``."""

Reason = str | BaseException
"""Reason why there are no metrics: a text, or the exception that was caught."""

_ONE_OF_THEM = (
    'tell(trial, {"time": 3.1}), tell(trial, failed="why") or tell(trial, infeasible=...)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedResult:
    """Result reported by the caller: metric values with standard errors, or a failure.

    Metrics are keyed by the names that the caller used.
    """

    values: Mapping[str, float]
    spread: Mapping[str, float]
    failure: Failure | None

    @staticmethod
    def of(
        metrics: MetricValues | None, failed: Reason | None, infeasible: Reason | None
    ) -> ReportedResult:
        """Return the validated result: metrics, or the reason of a failure or infeasibility.

        Raises:
            SpecError: none or several of these are given, or a value is not finite.
        """
        if metrics is not None:  # with metrics, an empty reason is ignored: failed=message or ""
            failed, infeasible = failed or None, infeasible or None
        given = [one for one in (metrics, failed, infeasible) if one is not None]
        if len(given) != 1:
            many = "more than one thing is" if given else "nothing is"
            raise SpecError(f"{many} reported for the design", hint=_ONE_OF_THEM)
        if failed is not None:
            return ReportedResult(
                values={}, spread={}, failure=Failure(kind="raised", reason=_reason(failed))
            )
        if infeasible is not None:
            failure = Failure(kind="infeasible", reason=_reason(infeasible))
            return ReportedResult(values={}, spread={}, failure=failure)
        if not isinstance(metrics, Mapping):
            problem = f"{metrics!r} is no mapping from metrics to numbers"
            raise SpecError(problem, hint=_ONE_OF_THEM)
        pairs = {name: _pair(name, one) for name, one in metrics.items()}
        spread = {name: error for name, (_, error) in pairs.items() if error is not None}
        return ReportedResult(
            values={n: v for n, (v, _) in pairs.items()}, spread=spread, failure=None
        )


def number_of(trial: Trial | int) -> int:
    """Return a trial's number, given the trial or the number itself.

    Raises:
        SpecError: the argument is neither a trial nor an integer.
    """
    number = trial.number if isinstance(trial, Trial) else whole(trial)
    if number is None:
        raise SpecError(f"{trial!r} is no trial", hint="for trial in study.ask(4): ...")
    return number


def full_metric_name(study: StudyEngine, name: str) -> str:
    """Return a metric's full name, ``evaluator.metric``; the given name may be ``metric`` alone.

    Args:
        study: the study.
        name: the name that the caller used.

    Raises:
        SpecError: no metric has this name, or several evaluators have one.
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
    """Return an integer, also a numpy one, as ``int``; ``None`` for other types."""
    try:
        return index(number)  # type: ignore[arg-type] # any type may come
    except TypeError:
        return None


def _reason(reason: Reason) -> str:
    """Return the reason of a failure as a string.

    An exception is formatted as if an evaluator had raised it.
    """
    if isinstance(reason, InfeasibleError):
        return reason.problem
    if isinstance(reason, BaseException):
        return f"{type(reason).__name__}: {reason}"
    if not isinstance(reason, str):
        raise SpecError(f"{reason!r} is no reason", hint='failed="out of memory", or an exception')
    return reason.strip() or "no reason given"


def _pair(name: str, given: Any) -> tuple[float, float | None]:
    """Return a metric value and its standard error (``None`` without one), as floats.

    Raises:
        SpecError: the value is not finite, or the error is negative.
    """
    value, error = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    number, known = _number(value), None if error is None else _number(error)
    if number is None or (error is not None and known is None):
        raise SpecError(
            f"{name} is {given!r}", hint='a finite number; else tell(trial, failed="why")'
        )
    if known is not None and known < 0:
        raise SpecError(f"{name} is {given!r}", hint="a standard error is zero or more")
    return number, known


def _number(given: Any) -> float | None:
    """Return a finite number as a float; ``None`` for other values, also strings and booleans."""
    if isinstance(given, str | bytes | bool | np.bool_):
        return None
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
