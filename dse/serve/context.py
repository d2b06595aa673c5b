"""State shared by all routes: study snapshots, processes that run studies, and access rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Annotated

from fastapi import Depends, Request

from dse.protocols import Storage
from dse.serve.access import AccessRules
from dse.serve.connection_limits import (
    CONNECTIONS,
    REQUESTS,
    STREAMS,
    ClientSlots,
    compute_connection_limit,
)
from dse.serve.error_responses import BusyError
from dse.serve.runners import Runners
from dse.serve.server_sent_events import Listeners
from dse.serve.snapshot_cache import StorageMonitor
from dse.system.credentials import mask_url

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
        """Wait for a free slot to build a report or download, and occupy it during the block.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """State shared by the routes of one server: snapshots of studies, processes, access rules."""

    storage: str
    watch: StorageMonitor
    runners: Runners
    gate: AccessRules
    requests: ClientSlots
    streams: ClientSlots
    listeners: Listeners = field(default_factory=Listeners)
    turns: WorkQueue = field(default_factory=WorkQueue)

    @staticmethod
    def of(storage: str | Storage, gate: AccessRules) -> ServerContext:
        """Return the context of a server for this storage.

        With a storage object instead of a URL, studies cannot be started, because other processes
        cannot open it.
        """
        url = storage if isinstance(storage, str) else "memory://"
        allowed = compute_connection_limit()
        return ServerContext(
            storage=mask_url(url),
            watch=StorageMonitor(storage),
            runners=Runners(url=url),
            gate=gate,
            requests=ClientSlots(REQUESTS * allowed // CONNECTIONS),
            streams=ClientSlots(STREAMS * allowed // CONNECTIONS),
        )

    def close(self) -> None:
        """Pause the studies that were started here, and close the storage."""
        self.runners.close()
        self.watch.close()


def house_of(request: Request) -> ServerContext:
    """Return the context of the server that received the request."""
    found: ServerContext = request.app.state.house
    return found


Here = Annotated[ServerContext, Depends(house_of)]
