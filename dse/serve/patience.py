"""Connections on which no whole request arrives are closed: uvicorn itself would wait for ever."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_S = 10.0
"""From a connection's first moment, or from the end of an answer, to the next request's head."""


class Impatient(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting for a request's head."""

    _timer: asyncio.TimerHandle | None = None
    _seen: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close the connection unless a request came since the last look, or is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        answered = cycle is None or cycle.response_complete
        if answered and cycle is self._seen:
            self.transport.close()
            return
        self._seen = cycle
        self._timer = self.loop.call_later(HEAD_S, self._look)
