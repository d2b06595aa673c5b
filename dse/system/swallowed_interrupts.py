"""Keyboard interrupts that other code swallowed; they are raised again.

A ``KeyboardInterrupt`` can be lost. An import in a ``try`` block takes the interrupt for a missing
package, because C extensions replace it by an ``ImportError``, and a callback of a C library ends
as an error of that library. The signal handler marks an interrupt before raising it, and long loops
call :func:`raise_lost_interrupt` at each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_marked: list[int] = []
"""Signals that were raised as ``KeyboardInterrupt`` and have not ended a block yet."""


def mark_interrupt(number: int) -> None:
    """Note that a signal is about to be raised as ``KeyboardInterrupt``."""
    _marked.append(number)


def clear_interrupts() -> None:
    """Forget all keyboard interrupts that :func:`mark_interrupt` noted, lost or not."""
    _marked.clear()


@contextmanager
def interrupts_cleared() -> Iterator[None]:
    """Forget marked keyboard interrupts at the end of the block, so that clean-up can finish.

    Clean-up calls the storage to return the driver's trials; a second interrupt would prevent that.
    """
    try:
        yield
    except KeyboardInterrupt:
        clear_interrupts()
        raise


def raise_lost_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` if one was marked but did not end the program.

    Raises:
        KeyboardInterrupt: an interrupt was swallowed.
    """
    if _marked:
        clear_interrupts()
        raise KeyboardInterrupt
