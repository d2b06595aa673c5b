"""Intermediate reports of an evaluator, and the exception that ends its trial early."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from dse.errors import EvaluationError

Listener = Callable[[int, Mapping[str, float]], bool]
"""Told a step and metrics; true if the trial need not go on."""

Watcher = Callable[[int, int, Mapping[str, float]], bool]
"""A listener to many trials: told the trial's number first, and metrics in the study's words."""

_listener: ContextVar[Listener | None] = ContextVar("dse_early_listener", default=None)


class Stopped(BaseException):
    """Ends an evaluator whose trial is certain to be dominated: tidy up, and let it pass."""


def report(step: int, metrics: Mapping[str, float]) -> None:
    """Report metrics after a step of an evaluation that continues: a loss after an epoch.

    A study may end the trial there. Where no study listens, nothing happens. Call it from the
    thread that the evaluator was called in.

    Args:
        step: rises: epochs, batches, repeats.
        metrics: the evaluator's own names, in the units that it declares.

    Raises:
        Stopped: the trial need not go on.
        EvaluationError: a number is not finite.
    """
    listener = _listener.get()
    if listener is None:
        return
    told = {str(name): float(value) for name, value in metrics.items()}
    for name, value in told.items():
        if not math.isfinite(value):
            raise EvaluationError(f"{name} is {value} at step {step}")
    if listener(int(step), told):
        raise Stopped


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear what is reported inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def unheard(_number: int, _step: int, _metrics: Mapping[str, float]) -> bool:
    """Ignore the report, and stop nothing."""
    return False
