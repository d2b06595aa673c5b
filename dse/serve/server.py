"""HTTP server of the live view, with its timeouts and the messages printed at its start."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import uvicorn

from dse.protocols import Storage
from dse.serve.access import AccessRules
from dse.serve.app import application
from dse.serve.context import ServerContext
from dse.serve.idle_timeout import IdleTimeout

_HEAD_BYTES = 32 * 1024


def server(
    storage: str | Storage, gate: AccessRules, host: str, port: int, say: Callable[[str], None]
) -> uvicorn.Server:
    """Return a server of the live view; call its method ``run`` to start it.

    Studies that were started from it are paused when it ends.

    Args:
        storage: a storage or its URL.
        gate: the rules for reading and changing.
        host: the address to listen on.
        port: the port there; 0 is any that is free.
        say: called with the URL to open; its fragment, which is never sent, holds the token.
    """
    app = application(storage, gate)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=IdleTimeout,
        ws="none",
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=_HEAD_BYTES,
    )
    return _Telling(config, app.state.house, host, say)


class _Telling(uvicorn.Server):
    """Uvicorn server that prints its URL when it is ready, and ends event streams at shutdown."""

    def __init__(
        self, config: uvicorn.Config, house: ServerContext, host: str, say: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._house = house
        self._host = f"[{host}]" if ":" in host else host
        self._say = say

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGHUP like SIGINT unless it is ignored: closing the terminal ends the server."""
        with super().capture_signals(), ExitStack() as handled:
            here = threading.current_thread() is threading.main_thread()
            if here and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
                before = signal.signal(signal.SIGHUP, self.handle_exit)
                handled.callback(signal.signal, signal.SIGHUP, before)
            yield

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started and self.servers:
            port = self.servers[0].sockets[0].getsockname()[1]
            gate = self._house.gate
            page = "" if gate.open else "login"
            self._say(f"look at http://{self._host}:{port}/{page}#token={gate.token}")
            self._say("end it with Ctrl-C: studies that were started here are paused")

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._house.listeners.over = True
        await super().shutdown(sockets)  # type: ignore[arg-type]
