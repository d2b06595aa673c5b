"""Queue for expensive requests: a few run at once, some wait, further ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from dse.serve.errors import BusyError

MOST = 2
"""Maximum number of reports and downloads that are made at once."""

WAITING = 8
"""Maximum number of waiting requests; each holds one of the server's forty threads."""

PATIENCE_S = 60.0
"""Maximum waiting time in seconds."""


class WorkQueue:
    """Limit on concurrent reports and downloads, so that one client cannot occupy the machine."""

    def __init__(self) -> None:
        self._work = BoundedSemaphore(MOST)
        self._room = BoundedSemaphore(MOST + WAITING)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait until a report may be built, and count as one for the duration of the block.

        Raises:
            BusyError: too many requests wait, or the wait took too long.
        """
        if not self._room.acquire(blocking=False):
            raise BusyError("too many reports are being made", hint="try again in a minute")
        try:
            if not self._work.acquire(timeout=PATIENCE_S):
                raise BusyError("other reports are taking too long", hint="try again later")
            try:
                yield
            finally:
                self._work.release()
        finally:
            self._room.release()
