"""Handlers of Ctrl-C, SIGTERM and SIGHUP for the command line.

This module is imported before all others, so it imports as little as possible.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import FrameType

from dse.system.swallowed_interrupts import clear_interrupts, mark_interrupt

STATUS = 130
"""Exit status of a command interrupted with nothing to keep: 128 + SIGINT, as in shells."""

INTERRUPTED = "interrupted"
"""Message that such a command prints."""

_AGAIN_S = 0.05

Handler = Callable[[int, FrameType | None], object]


def leave(_number: int, _frame: FrameType | None) -> None:
    """Exit at once with a message; only for use while the process holds no running trial."""
    with suppress(OSError):
        os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(STATUS)


@contextmanager
def handled_by(handler: Handler, number: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """Handle a signal by ``handler`` within the block, unless the signal was already ignored.

    ``nohup`` ignores SIGHUP, and shells ignore SIGINT for background jobs. Outside the main thread
    nothing is changed, because Python sets handlers only there.
    """
    before = signal.getsignal(number)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def interruptible(*more: signal.Signals) -> Iterator[None]:
    """Let Ctrl-C, and the signals ``more``, raise ``KeyboardInterrupt`` out of the block.

    While C extensions are imported, they may replace it by an ``ImportError``. So after an
    interrupt any other exception is re-raised as ``KeyboardInterrupt``, except ``typer.Exit``: a
    command that raises it has handled the interrupt itself.
    """
    heard: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        heard.append(number)
        mark_interrupt(number)
        raise KeyboardInterrupt

    try:
        with ExitStack() as handlers:
            for number in (*more, signal.SIGINT):
                handlers.enter_context(handled_by(interrupt, number))
            yield
    except Exception as error:
        from typer import Exit

        if heard and not isinstance(error, Exit):
            raise KeyboardInterrupt from error
        raise
    finally:
        clear_interrupts()


def stoppable() -> AbstractContextManager[None]:
    """Return a context in which Ctrl-C, SIGTERM and SIGHUP raise ``KeyboardInterrupt``.

    The driver (process that runs a study) can then release its running trials.
    """
    return interruptible(signal.SIGTERM, signal.SIGHUP)


def hear_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send SIGINT again if an interrupt was raised in a callback, where Python only prints it."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()
