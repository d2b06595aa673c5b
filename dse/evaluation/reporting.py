"""Intermediate reports of evaluators, and the exception that stops a trial early."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from dse.errors import EvaluationError

Listener = Callable[[int, Mapping[str, float]], bool]
"""Function of a step and metrics that returns whether the trial must stop."""

Watcher = Callable[[int, int, Mapping[str, float]], bool]
"""Listener of many trials: a function of a trial's number, a step and metrics by full name."""

_listener: ContextVar[Listener | None] = ContextVar("dse_early_listener", default=None)


class Stopped(BaseException):
    """Exception that stops an evaluator early; the evaluator cleans up and lets it propagate."""


def report(step: int, metrics: Mapping[str, float]) -> None:
    """Report intermediate metrics of a running evaluation, such as the loss after an epoch.

    The study may stop the trial at this point. Outside of a study's run, nothing happens. Call the
    function from the thread in which the evaluator was called.

    Args:
        step: an increasing count of epochs, batches or repeats.
        metrics: values by the evaluator's own metric names, in the declared units.

    Raises:
        Stopped: the trial is stopped early.
        EvaluationError: a value is not finite.
    """
    listener = _listener.get()
    if listener is None:
        return
    values = {str(name): float(value) for name, value in metrics.items()}
    for name, value in values.items():
        if not math.isfinite(value):
            raise EvaluationError(f"{name} is {value} at step {step}")
    if listener(int(step), values):
        raise Stopped


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass each report of intermediate metrics made inside the block to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def unheard(_number: int, _step: int, _metrics: Mapping[str, float]) -> bool:
    """Ignore a report of intermediate metrics, so that the trial continues."""
    return False
