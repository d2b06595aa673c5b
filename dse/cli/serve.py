"""``dse serve``: the studies of a storage in a browser."""

from __future__ import annotations

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
    from dse.api.live_view import live_view

    allowed = tuple(allow_host or ())
    live_view(storage, host=host, port=port, token=token, allowed=allowed, say=say)
