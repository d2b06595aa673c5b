"""State shared by all routes: study snapshots, processes that run studies, and access rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from dse.protocols import Storage
from dse.serve.access import AccessRules
from dse.serve.limits import CONNECTIONS, REQUESTS, STREAMS, ClientSlots, compute_connection_limit
from dse.serve.queue import WorkQueue
from dse.serve.runners import Runners
from dse.serve.stream import Listeners
from dse.serve.watch import StorageMonitor
from dse.system.credentials import mask_url


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """State shared by the routes of one server."""

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

        A storage object, unlike a URL, cannot be opened by other processes.
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
