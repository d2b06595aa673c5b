"""Context manager that silences the log handlers of a library."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(library: str) -> Iterator[None]:
    """Silence the log handlers of a third-party library, such as Optuna.

    The library's log level and other listeners are unchanged.
    """
    handlers = list(logging.getLogger(library).handlers)
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False
