"""State shared by all routes: the watched studies, the drivers and the access rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from dse.protocols import Storage
from dse.serve.access import Gate
from dse.serve.limits import CONNECTIONS, REQUESTS, STREAMS, Places, compute_connection_limit
from dse.serve.queue import Turns
from dse.serve.runners import Runners
from dse.serve.stream import Listeners
from dse.serve.watch import Watch
from dse.system.credentials import mask_url


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One server's things."""

    storage: str
    watch: Watch
    runners: Runners
    gate: Gate
    requests: Places
    streams: Places
    listeners: Listeners = field(default_factory=Listeners)
    turns: Turns = field(default_factory=Turns)

    @staticmethod
    def of(storage: str | Storage, gate: Gate) -> House:
        """The house over a storage; one that is no URL lives in this process alone."""
        url = storage if isinstance(storage, str) else "memory://"
        allowed = compute_connection_limit()
        return House(
            storage=mask_url(url),
            watch=Watch(storage),
            runners=Runners(url=url),
            gate=gate,
            requests=Places(REQUESTS * allowed // CONNECTIONS),
            streams=Places(STREAMS * allowed // CONNECTIONS),
        )

    def close(self) -> None:
        """Pause what was started here, and let go of the storage."""
        self.runners.close()
        self.watch.close()


def house_of(request: Request) -> House:
    """The house that the request came to."""
    found: House = request.app.state.house
    return found


Here = Annotated[House, Depends(house_of)]
