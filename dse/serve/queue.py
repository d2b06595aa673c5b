"""Work that takes seconds and much memory: a few at once, some wait, others come again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from dse.serve.errors import BusyError

MOST = 2
"""How many reports and downloads are made at once."""

WAITING = 8
"""How many wait; each holds a thread, of which the server has forty."""

PATIENCE_S = 60.0
"""How long one waits."""


class WorkQueue:
    """Queue for building reports, so that one client cannot take the machine from others."""

    def __init__(self) -> None:
        self._work = BoundedSemaphore(MOST)
        self._room = BoundedSemaphore(MOST + WAITING)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A block that is entered when it is its turn.

        Raises:
            BusyError: too many wait, or it took too long.
        """
        if not self._room.acquire(blocking=False):
            raise BusyError("too many reports are being made", hint="try again in a minute")
        try:
            if not self._work.acquire(timeout=PATIENCE_S):
                raise BusyError("other reports take long to be made", hint="try again later")
            try:
                yield
            finally:
                self._work.release()
        finally:
            self._room.release()
