"""Cache of one value for many threads; one thread at a time reads it anew, at intervals."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from dse.errors import DseError

YOUNG_S = 0.3
"""Minimum age in seconds at which a value is read again."""

_REST = 2.0
"""Minimum age at which a value is read again, as a multiple of its reading time."""

T = TypeVar("T")


class CachedValue(Generic[T]):
    """Cache of the value that was last read, or of the error that reading it raised."""

    def __init__(self) -> None:
        self.value: T | None = None
        self._fault: DseError | None = None
        self._lock = Lock()
        self._at = -float("inf")
        self._took_s = 0.0

    def at(self, read: Callable[[T | None], T]) -> T:
        """Return the cached value; compute it first if it is old and no other thread does so.

        Callers wait for another thread only if no value has been read yet: later, a storage that
        does not respond blocks only the caller that reads it.

        Args:
            read: computes the present value from the previous one.

        Raises:
            DseError: the last reading failed with this error.
        """
        first = self.value is None and self._fault is None
        if self._lock.acquire(blocking=first):
            try:
                if time.monotonic() - self._at >= max(YOUNG_S, _REST * self._took_s):
                    self._read(read)
            finally:
                self._lock.release()
        return self._unwrap()

    def _read(self, read: Callable[[T | None], T]) -> None:
        begun = time.monotonic()
        try:
            self.value, self._fault = read(self.value), None
        except DseError as error:
            self._fault = error
        self._at = time.monotonic()
        self._took_s = self._at - begun if self._fault is None else 0.0

    def _unwrap(self) -> T:
        fault, value = self._fault, self.value
        if fault is not None:
            raise fault.with_traceback(None)
        assert value is not None
        return value
