"""Connection timeouts: idle connections are closed, the longest idle first if there are many."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Iterable

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from dse.serve.connection_limits import PLACE, client_of, compute_connection_limit

HEAD_S = 10.0
"""Seconds from the start of a connection, or the end of a response, to the next request's head."""

SEND_S = 30.0
"""Seconds for which a client may leave a full send buffer (some tens of kilobytes) unread."""

VANISHED_S = 60.0
"""Seconds for which sent data may stay unacknowledged: the peer may have vanished silently."""


class IdleTimeout(H11Protocol):
    """HTTP/1.1 protocol of uvicorn that drops clients which neither send nor read for too long."""

    idle_since: float = 0.0
    _timer: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None
    _seen: RequestResponseCycle | None = None
    _left: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_S, self._look)
        _set_ack_timeout(transport.get_extra_info("socket"))
        if len(self.connections) > compute_connection_limit():
            one = longest_idle(c for c in self.connections if isinstance(c, IdleTimeout))
            one.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._reader):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self.loop.call_later(SEND_S, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader is not None:
            self._reader.cancel()

    @property
    def idle(self) -> bool:
        """Whether the connection has no request that is being answered.

        The last request is incomplete, refused or answered.
        """
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or PLACE not in cycle.scope

    def _look(self) -> None:
        """Drop the connection if it was idle since the last check; else schedule the next check.

        It is kept, too, while its client reads at least half of the unsent data between two checks.
        """
        cycle: RequestResponseCycle | None = self.cycle
        idle = cycle is None or cycle.response_complete or self.transport.is_closing()
        left = self.transport.get_write_buffer_size()
        if idle and cycle is self._seen and not 0 < 2 * left <= self._left:
            self.drop()
            return
        self._seen, self._left = cycle, left
        self._timer = self.loop.call_later(HEAD_S, self._look)

    def drop(self) -> None:
        """Close the connection at once and discard unsent data, also in the kernel's buffers."""
        if self.transport.get_write_buffer_size():
            held = self.transport.get_extra_info("socket")
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def longest_idle(connections: Iterable[IdleTimeout]) -> IdleTimeout:
    """Return the idle connection to close when there are too many.

    The result is the longest idle connection of the client with the most idle connections. A
    connection with unsent data is returned only if all have some.

    Args:
        connections: all connections of the server, at least one of which is idle.
    """
    idle = [one for one in connections if one.idle]
    counts = Counter(client_of(one.client) for one in idle)

    def order(one: IdleTimeout) -> tuple[bool, int, float]:
        unsent = one.transport.get_write_buffer_size() > 0
        return unsent, -counts[client_of(one.client)], one.idle_since

    return min(idle, key=order)


def _set_ack_timeout(held: socket.socket) -> None:
    """Make the kernel close the connection when sent data stays unacknowledged for too long."""
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        limit_ms = int(1000 * VANISHED_S)
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
