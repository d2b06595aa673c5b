"""Cache of study snapshots, which are read again only when the study's record has grown."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock

from dse.errors import StorageError, nearest
from dse.protocols import Storage
from dse.serve.cached_value import CachedValue
from dse.serve.error_responses import UnknownError
from dse.serve.snapshot import Presence, Snapshot, load_snapshot
from dse.study.storage_access import opened_storage

_MOST_TRIALS = 2_000_000
"""Maximum number of cached trials; beyond it the least recently read studies are evicted."""

_File = tuple[int, int]  # device and inode


class StorageMonitor:
    """Cache of study snapshots, shared by all clients of the server.

    Args:
        storage: a storage or its URL. A file that does not exist yet is looked for at each access.
    """

    def __init__(self, storage: str | Storage) -> None:
        self._opened = ReopenedStorage(storage)
        self._presence = Presence()
        self._names: CachedValue[list[str]] = CachedValue()
        self._entries: OrderedDict[str, CachedValue[Snapshot]] = OrderedDict()
        self._lock = Lock()

    def names(self) -> list[str]:
        """Return the names of all studies.

        Raises:
            StorageError: they cannot be read.
        """
        return self._names.at(lambda _: self._opened.now().studies())

    def snapshot(self, name: str) -> Snapshot:
        """Return the present snapshot of the study's record.

        Raises:
            UnknownError: no study has that name.
            StudyError: its record is not valid.
            StorageError: it cannot be read.
        """
        if name not in self.names() and self._opened.now().spec(name) is None:
            self._leave(name)
            problem = f"there is no study {name[:80]!r}"
            raise UnknownError(problem, hint=nearest(name[:80], self.names()))
        found = self._entry(name).at(
            lambda before: load_snapshot(name, self._opened.now(), self._presence, before)
        )
        self._forget()
        return found

    def close(self) -> None:
        """Close the storage."""
        self._opened.close()

    def _entry(self, name: str) -> CachedValue[Snapshot]:
        with self._lock:
            entry = self._entries.setdefault(name, CachedValue())
            self._entries.move_to_end(name)
            return entry

    def _leave(self, name: str) -> None:
        with self._lock:
            self._entries.pop(name, None)

    def _forget(self) -> None:
        with self._lock:
            held = {
                name: len(entry.value.trials)
                for name, entry in self._entries.items()
                if entry.value
            }
            for name in list(held)[:-1]:
                if sum(held.values()) <= _MOST_TRIALS:
                    return
                del self._entries[name], held[name]


class ReopenedStorage:
    """Holder of an open storage, which is reopened from its URL if the file was replaced.

    A file that does not exist yet holds no studies and is looked for at each access. A file that
    has disappeared is an error: an open connection would keep reading data that no other process
    sees.
    """

    def __init__(self, storage: str | Storage) -> None:
        self._storage_url = storage
        self._storage: Storage | None = None
        self._file: _File | None = None
        self._lock = Lock()

    def now(self) -> Storage:
        """Return the open storage; its methods may be called from any thread.

        Raises:
            StorageError: its file has disappeared, or cannot be opened.
        """
        if not isinstance(self._storage_url, str):
            return self._storage_url
        path = _path(self._storage_url)
        file = _file(path)
        with self._lock:
            if self._file is not None and file is None:
                hint = "bring it back, or end this server and serve another one"
                raise StorageError(f"there is no {path} any more", hint=hint)
            if self._storage is None or file != self._file:
                fresh = opened_storage(self._storage_url)
                self.close()
                self._storage, self._file = fresh, file
            return self._storage

    def close(self) -> None:
        """Close the storage; reads in progress may finish."""
        if self._storage is not None:
            self._storage.close()


def _path(url: str) -> Path | None:
    """Return the SQLite file that a URL names; ``None`` if it names something else."""
    file = url.partition("///")[2].partition("?")[0]
    return Path(file) if url.startswith("sqlite") and file not in ("", ":memory:") else None


def _file(path: Path | None) -> _File | None:
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)
