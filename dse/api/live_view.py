"""The studies of a storage in a browser, served until it is interrupted."""

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
    """Look at studies while they run, in a browser: start, pause and compare them.

    It returns when it is interrupted; in a notebook, run it in a process of its own.

    Example:
        ``live_view("sqlite:///dse.db")``

    Args:
        storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.
        host: the address to listen on; any but this machine's own is guarded.
        port: the port; 0 is any that is free.
        token: what changes need, and looking too from elsewhere; made anew without.
        allowed: other names that the server is called by.
        say: told where to look.

    Raises:
        PluginError: the live view is not installed, or the token could be guessed.
    """
    try:
        from dse.serve.access import AccessRules  # they need an extra
        from dse.serve.server import server
        from dse.study.study import DEFAULT_STORAGE
    except ImportError as error:
        problem = f"the live view needs {error.name}"
        raise PluginError(problem, hint="pip install 'dse-engine[serve]'") from error
    if token is not None and len(token) < _SHORTEST:
        raise PluginError(
            "the token is so short that it could be guessed", hint="16 characters or more"
        )
    gate = AccessRules.at(host, token=token, allowed=tuple(allowed))
    with suppress(KeyboardInterrupt):  # which is how it is ended
        server(storage or DEFAULT_STORAGE, gate, host, port, say).run()
