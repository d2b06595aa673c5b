"""Local web server that shows the studies of a storage in a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dse.errors import PluginError

if TYPE_CHECKING:
    from dse.protocols import Storage

LOCAL = "127.0.0.1"
PORT = 8321
_SHORTEST = 16


def live_view(
    storage: str | Storage | None = None,
    *,
    host: str = LOCAL,
    port: int = PORT,
    token: str | None = None,
    allowed: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Serve a web page on which studies can be watched, started, paused and compared.

    The call blocks until it is interrupted; in a notebook, run it in a process of its own.

    Example:
        ``live_view("sqlite:///dse.db")``

    Args:
        storage: a storage or its URL; default: ``sqlite:///dse.db``.
        host: the address to listen on; on any but a loopback address, reading needs the token.
        port: the port; 0 selects a free one.
        token: the access token for changes, and for reading from other machines; default: a new
            random one.
        allowed: additional host names under which the server is reached.
        say: called with the address to open.

    Raises:
        PluginError: the live view is not installed, or the token is too short.
    """
    try:
        from dse.serve.access import AccessRules  # they need an extra
        from dse.serve.server import server
        from dse.study.storage_access import DEFAULT_STORAGE
    except ImportError as error:
        problem = f"the live view needs {error.name}"
        raise PluginError(problem, hint="pip install 'dse-engine[serve]'") from error
    if token is not None and len(token) < _SHORTEST:
        raise PluginError(
            "the token is so short that it could be guessed", hint="use 16 characters or more"
        )
    gate = AccessRules.at(host, token=token, allowed=tuple(allowed))
    with suppress(KeyboardInterrupt):  # the regular way to end it
        server(storage or DEFAULT_STORAGE, gate, host, port, say).run()
