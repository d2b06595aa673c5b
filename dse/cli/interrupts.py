"""Ctrl-C, SIGTERM and SIGHUP: before anything runs, while it runs, and where Python loses them.

It is imported before all else, and imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import FrameType

from dse.system.interrupts import clear_interrupts, mark_interrupt

STATUS = 130
"""Of a command that was interrupted with nothing to keep: 128 and SIGINT, as in shells."""

INTERRUPTED = "interrupted"
"""What it prints then."""

_AGAIN_S = 0.05

Handler = Callable[[int, FrameType | None], object]


def leave(_number: int, _frame: FrameType | None) -> None:
    """End the process at once, with a line: nothing is under way that has to be given back."""
    with suppress(OSError):
        os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(STATUS)


@contextmanager
def handled_by(handler: Handler, number: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """Let a signal do this within the block, unless whoever started the process had it ignored.

    So does ``nohup`` with SIGHUP, and a shell with SIGINT for what runs in its background.
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

    An exception that comes out of an import is not always the one that went in: C extensions put
    an ``ImportError`` in its place. After an interrupt each is taken for it, but for the exit of a
    command that has dealt with the interrupt itself.
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
    """Let Ctrl-C, SIGTERM and SIGHUP raise ``KeyboardInterrupt``, so that trials are given back."""
    return interruptible(signal.SIGTERM, signal.SIGHUP)


def hear_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Send an interrupt again that came in a callback, where Python would print and forget it."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    again.daemon = True
    again.start()
