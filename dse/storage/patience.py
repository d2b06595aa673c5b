"""Retries of calls while a storage is unavailable, up to a time limit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from dse.errors import OutageError, StorageRefusedError, StorageUnavailableError
from dse.system.swallowed_interrupts import raise_lost_interrupt

PATIENCE_S = 15 * 60.0
"""Default time for which a run waits for an unavailable storage."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 10.0
_SECONDS_UP_TO = 120.0

R = TypeVar("R")


class Retrier:
    """Retrier of storage calls while the storage is unavailable.

    The retrier reports once when an outage begins, and once when the outage ends.

    Args:
        patience_s: the time in seconds for which calls are retried; 0 disables retries.
        on_notice: called with a message when the storage becomes unavailable, and when it is back.
        on_away: called when an outage begins.
    """

    def __init__(
        self,
        patience_s: float,
        on_notice: Callable[[str], None],
        on_away: Callable[[], None] = lambda: None,
    ) -> None:
        self.patience_s = patience_s
        self.was_away = False
        self._on_notice = on_notice
        self._on_away = on_away
        self._since: float | None = None
        self._has_written = False
        self._is_over = False

    @property
    def is_away(self) -> bool:
        """Whether the last call found the storage unavailable."""
        return self._since is not None

    def read(self, call: Callable[[], R]) -> R:
        """Return the result of a read call; repeat the call while the storage is unavailable."""
        return self._call(call, call)

    def write(self, first: Callable[[], R], again: Callable[[], R]) -> R:
        """Return the result of a write call; repeat the call while the storage is unavailable.

        Args:
            first: the function that writes.
            again: the function for repetitions, which must allow that an earlier call has taken
                effect.

        Raises:
            OutageError: the time limit has passed.
            StorageRefusedError: the storage refuses writes, and has never accepted one.
        """
        done = self._call(first, again)
        self._has_written = True
        return done

    def _call(self, first: Callable[[], R], again: Callable[[], R]) -> R:
        call, pauses = first, _pauses()
        while True:
            try:
                done = call()
            except StorageUnavailableError as error:
                raise_lost_interrupt()  # a database driver may report it as its own error
                self._note_away(error)
                time.sleep(next(pauses))
                call = again
            else:
                self._note_back()
                return done

    def _note_away(self, error: StorageUnavailableError) -> None:
        if isinstance(error, StorageRefusedError) and not self._has_written:
            raise error
        begins, self._since = self._since is None, self._since or time.monotonic()
        if begins:
            self.was_away = True
            self._on_away()
        away_s = time.monotonic() - self._since
        if self._is_over or away_s >= self.patience_s:
            self._is_over = True
            raise OutageError(
                f"the storage was away for {duration(away_s)}: {error.problem}",
                where=error.where,
                hint=error.hint,
            ) from error
        if begins:
            left = duration(self.patience_s)
            self._on_notice(f"the storage is away ({error.problem}): trying again for {left}")

    def _note_back(self) -> None:
        if self._since is not None:
            away_s, self._since, self._is_over = time.monotonic() - self._since, None, False
            self._on_notice(f"the storage is back after {duration(away_s)}")


def duration(seconds: float) -> str:
    """Format a duration in seconds or, if it is long, in minutes."""
    if seconds < _SECONDS_UP_TO:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.3g} min"


def _pauses() -> Iterator[float]:
    """Yield the seconds between retries: exponential backoff with jitter.

    Source:
        Brooker: Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
    """
    longest_s = _FIRST_PAUSE_S
    while True:
        yield random.uniform(longest_s / 2, longest_s)  # noqa: S311 - no secret
        longest_s = min(2 * longest_s, _LONGEST_PAUSE_S)
