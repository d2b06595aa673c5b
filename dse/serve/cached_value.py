"""A value that many want to see: read by one at a time, and not again at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from dse.errors import DseError

YOUNG_S = 0.3
"""What was read so lately is not read again, however many look on."""

_REST = 2.0
"""What took long to read is left alone for so many times as long."""

T = TypeVar("T")


class CachedValue(Generic[T]):
    """The value as it was read last, or why it could not be."""

    def __init__(self) -> None:
        self.value: T | None = None
        self._fault: DseError | None = None
        self._lock = Lock()
        self._at = -float("inf")
        self._took_s = 0.0

    def at(self, read: Callable[[T | None], T]) -> T:
        """The value, read anew unless that was done a moment ago or is being done.

        Nobody waits for another's reading but for the very first: a storage that does not answer
        keeps one of those who ask, not all.

        Args:
            read: gives the value of now from the one before.

        Raises:
            DseError: the last reading failed so.
        """
        first = self.value is None and self._fault is None
        if self._lock.acquire(blocking=first):
            try:
                if time.monotonic() - self._at >= max(YOUNG_S, _REST * self._took_s):
                    self._read(read)
            finally:
                self._lock.release()
        return self._told()

    def _read(self, read: Callable[[T | None], T]) -> None:
        begun = time.monotonic()
        try:
            self.value, self._fault = read(self.value), None
        except DseError as error:
            self._fault = error
        self._at = time.monotonic()
        self._took_s = self._at - begun if self._fault is None else 0.0

    def _told(self) -> T:
        fault, value = self._fault, self.value
        if fault is not None:
            raise fault.with_traceback(None)
        assert value is not None
        return value
