"""``dse serve``: the studies of a storage in a browser."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from dse.cli.options import StorageOption, say


def serve(
    *,
    storage: StorageOption = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's own is guarded.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: any.")] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DSE_TOKEN",
            help="What changes need, and looking too from elsewhere; made anew without.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name that the server is called by; may be repeated."),
    ] = None,
) -> None:
    """Look at studies while they run, in a browser: start, pause and compare them.

    Example: dse serve --storage sqlite:///dse.db
    """
    from dse.errors import PluginError
    from dse.study import DEFAULT_STORAGE

    try:
        from dse.serve.gate import Gate
        from dse.serve.server import server
    except ImportError as error:
        problem = f"the live view needs {error.name}"
        raise PluginError(problem, hint="pip install 'dse-engine[serve]'") from error
    if token is not None and len(token) < 16:
        raise PluginError(
            "the token is so short that it could be guessed", hint="16 characters or more"
        )
    gate = Gate.at(host, token=token, allowed=tuple(allow_host or ()))
    with suppress(KeyboardInterrupt):  # which is how it is ended
        server(storage or DEFAULT_STORAGE, gate, host, port, say).run()
