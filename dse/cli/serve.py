"""``dse serve``: a web server that shows the studies of a storage in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.options import StorageOption, say


def serve(
    *,
    storage: StorageOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but a loopback address needs the token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0: a free one.")] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="DSE_TOKEN",
            help="Token required for changes, and from other machines for reading too; default: "
            "a new one.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name of the server; may be repeated."),
    ] = None,
) -> None:
    """Serve studies to a browser: watch them run, start, pause and compare them.

    Example: dse serve --storage sqlite:///dse.db
    """
    from dse.api.live_view import live_view

    allowed = tuple(allow_host or ())
    live_view(storage, host=host, port=port, token=token, allowed=allowed, say=say)
