"""Storage of the server, which is reopened if its database file was replaced."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from dse.errors import StorageError
from dse.protocols import Storage
from dse.study.study import opened_storage

_File = tuple[int, int]  # device and inode


class ReopenedStorage:
    """Holder of an open storage, which is reopened from its URL if the file was replaced.

    A file that does not exist yet holds no studies and is looked up again. A file that has
    disappeared is an error: an open connection would keep reading data that no other process sees.
    """

    def __init__(self, storage: str | Storage) -> None:
        self._told = storage
        self._storage: Storage | None = None
        self._file: _File | None = None
        self._lock = Lock()

    def now(self) -> Storage:
        """Return the open storage; its methods may be called from any thread.

        Raises:
            StorageError: its file has disappeared, or cannot be opened.
        """
        if not isinstance(self._told, str):
            return self._told
        path = _path(self._told)
        file = _file(path)
        with self._lock:
            if self._file is not None and file is None:
                hint = "bring it back, or end this server and serve another one"
                raise StorageError(f"there is no {path} any more", hint=hint)
            if self._storage is None or file != self._file:
                fresh = opened_storage(self._told)
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
