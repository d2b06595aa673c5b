"""Connections on which nothing moves are dropped: uvicorn itself would wait for them for ever."""

from __future__ import annotations

import asyncio
import socket
import struct

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEAD_S = 10.0
"""From a connection's first moment, or from the end of an answer, to the next request's head."""

SEND_S = 30.0
"""How long a reader may let a full buffer wait: some tens of kilobytes."""


class Impatient(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting for who does not ask or not read."""

    _timer: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    _seen: RequestResponseCycle | None = None
    _left: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._reader):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self.loop.call_later(SEND_S, self._drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader is not None:
            self._reader.cancel()

    def _look(self) -> None:
        """Drop the connection unless a request came since the last look, or is being answered.

        While its reader takes at least half of what is left from look to look, it stays.
        """
        cycle: RequestResponseCycle | None = self.cycle
        idle = cycle is None or cycle.response_complete or self.transport.is_closing()
        left = self.transport.get_write_buffer_size()
        if idle and cycle is self._seen and not 0 < 2 * left <= self._left:
            self._drop()
            return
        self._seen, self._left = cycle, left
        self._timer = self.loop.call_later(HEAD_S, self._look)

    def _drop(self) -> None:
        """End the connection with all that waits to be read, in the system's buffers too."""
        if self.transport.get_write_buffer_size():
            held = self.transport.get_extra_info("socket")
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
