"""Studies as they stand now: read once, and again only when their record has grown."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from dse.errors import nearest
from dse.protocols import Storage
from dse.serve.cached_value import CachedValue
from dse.serve.errors import UnknownError
from dse.serve.presence import Presence
from dse.serve.reopened_storage import ReopenedStorage
from dse.serve.snapshot import Snapshot, load_snapshot

_MOST_TRIALS = 2_000_000
"""Studies that nobody looked at lately are forgotten from so many trials on, in all."""


class StorageMonitor:
    """Looks at the studies of a storage for everybody who looks on.

    Args:
        storage: a storage or its URL. A file that is not there yet is looked for again.
    """

    def __init__(self, storage: str | Storage) -> None:
        self._opened = ReopenedStorage(storage)
        self._presence = Presence()
        self._names: CachedValue[list[str]] = CachedValue()
        self._seats: OrderedDict[str, CachedValue[Snapshot]] = OrderedDict()
        self._seating = Lock()

    def names(self) -> list[str]:
        """The names of all studies.

        Raises:
            StorageError: they cannot be read.
        """
        return self._names.at(lambda _: self._opened.now().studies())

    def snapshot(self, name: str) -> Snapshot:
        """The study as it stands.

        Raises:
            UnknownError: there is none of that name.
            StudyError: its record cannot be understood.
            StorageError: it cannot be read.
        """
        if name not in self.names() and self._opened.now().spec(name) is None:
            self._leave(name)
            problem = f"there is no study {name[:80]!r}"
            raise UnknownError(problem, hint=nearest(name[:80], self.names()))
        found = self._seat(name).at(
            lambda before: load_snapshot(name, self._opened.now(), self._presence, before)
        )
        self._forget()
        return found

    def close(self) -> None:
        """Let go of the storage."""
        self._opened.close()

    def _seat(self, name: str) -> CachedValue[Snapshot]:
        with self._seating:
            seat = self._seats.setdefault(name, CachedValue())
            self._seats.move_to_end(name)
            return seat

    def _leave(self, name: str) -> None:
        with self._seating:
            self._seats.pop(name, None)

    def _forget(self) -> None:
        with self._seating:
            held = {
                name: len(seat.value.trials) for name, seat in self._seats.items() if seat.value
            }
            for name in list(held)[:-1]:
                if sum(held.values()) <= _MOST_TRIALS:
                    return
                del self._seats[name], held[name]
