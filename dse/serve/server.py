"""HTTP server of the live view: its routes, static files, timeouts and start messages."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache
from importlib.resources import files

import uvicorn
from fastapi import APIRouter, FastAPI
from starlette.responses import Response

from dse import __version__
from dse.protocols import Storage
from dse.serve import api, downloads
from dse.serve.access import AccessRules
from dse.serve.context import ServerContext
from dse.serve.error_responses import UnknownError, add_refusals
from dse.serve.idle_timeout import IdleTimeout
from dse.serve.middleware import RequestMiddleware
from dse.serve.pages import views

_HEAD_BYTES = 32 * 1024

static_files = APIRouter(include_in_schema=False)

_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"

_SCRIPTS = ("shared", "studies", "study", "live", "brush", "design", "tables", "trial", "login")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _own(name: str) -> Callable[[], str]:
    return lambda: files("dse.serve").joinpath("assets", name).read_text(encoding="utf-8")


_ASSETS: dict[str, tuple[str, Callable[[], str]]] = {
    **{f"{name}.js": (_SCRIPT, _own(f"{name}.js")) for name in _SCRIPTS},
    "icon.svg": ("image/svg+xml", _own("icon.svg")),
    "live.css": (_STYLE, _own("live.css")),
    "page.css": (_STYLE, lambda: files("dse.report.html").joinpath("page.css").read_text("utf-8")),
    "plotly.js": (_SCRIPT, _plotly),
}


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
    return _AnnouncingServer(config, app.state.house, host, say)


class _AnnouncingServer(uvicorn.Server):
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
        """Inside the block, handle SIGHUP like SIGINT unless it is ignored.

        Closing the terminal then ends the server.
        """
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


def application(storage: str | Storage, gate: AccessRules) -> FastAPI:
    """Return the web application for the studies of a storage.

    Args:
        storage: a storage or its URL.
        gate: the rules for reading and changing.
    """
    house = ServerContext.of(storage, gate)

    @asynccontextmanager
    async def lived_in(_: FastAPI) -> AsyncIterator[None]:
        yield
        house.close()

    app = FastAPI(
        title="dse",
        version=__version__,
        description="The studies of a storage: show, run, pause and extend them.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # that page loads scripts from another site
        redoc_url=None,
        lifespan=lived_in,
    )
    app.state.house = house
    add_refusals(app)
    for router in (api.router, api.changing, views.router, downloads.router, static_files):
        app.include_router(router)
    app.add_middleware(RequestMiddleware, gate=gate, requests=house.requests, streams=house.streams)
    return app


@cache
def _content(name: str) -> bytes:
    return _ASSETS[name][1]().encode()


@static_files.get("/assets/{name}")
async def asset(name: str) -> Response:
    """Return a script or style sheet of the pages.

    The route is asynchronous, so it responds even while other requests hold all threads.
    """
    if name not in _ASSETS:
        raise UnknownError(f"there is no {name[:80]!r}")
    lasting = {"cache-control": "max-age=86400" if name == "plotly.js" else "no-cache"}
    return Response(_content(name), media_type=_ASSETS[name][0], headers=lasting)
