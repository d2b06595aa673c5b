"""``dse environments``: programs with conflicting pins, each in its own virtual environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import OutputFormat, ToldOption, say, show_json
from dse.cli.resources.folders import show_places, show_removals
from dse.report.schemas.resources import Placed
from dse.resources.environment import Environment
from dse.services.resources import catalogues as shelves

INTERRUPTED = 3


def list_environments(*, output: ToldOption = OutputFormat.TABLE) -> None:
    """List the environments: purpose, size and licence, and whether each is installed.

    Example: dse environments list
    """
    environments = shelves.environments.known()
    if output is OutputFormat.JSON:
        show_json(shelves.environments.listed())
        return
    from dse.report.text.terminal_table import print_lines

    lines = list[str]()
    wide = max(map(len, environments), default=0)
    for name, one in environments.items():
        there = "installed" if one.installed else "-"
        users = ", ".join(one.used_by)
        lines.append(f"{name:<{wide}}  {there:<9}  {_size(one):>6}  {users}: {one.purpose}")
        lines.append(f"{'':<{wide}}  {'':<9}  {'':>6}  {one.package} {one.version}, {one.licence}")
    print_lines(lines)
    missing = [name for name, one in environments.items() if not one.installed]
    if missing:
        say(f"dse environments install {missing[0]}    installs one; without a name, all")


def install_environments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completing.environments,
            help="Names of environments; default: all.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    *,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Create virtual environments and install their pinned packages, verified by hash.

    The package index is the one that pip is configured for. Installed ones are not changed.

    Example: dse environments install scalesim
    """
    told = list[Placed]()
    for one in shelves.environments.chosen(*names or ()):
        say(f"{one.name}: {one.package} {one.version} and its dependencies, {_size(one)} on disk")
        try:
            with _working(one) as watch:
                new = shelves.environments.bring(one, watch)
        except KeyboardInterrupt:
            say(f"interrupted; {one.name} is not installed, those before it are")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{one.name} {one.version} is {'installed' if new else 'already installed'}")
        told.append(shelves.environments.placed(one, new=new))
    if output is OutputFormat.JSON:
        show_json(told)


def where_environments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=completing.environments,
            help="Environments by name.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    *,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Print the Python interpreters of environments; without a name, the folder of all.

    Example: dse environments where scalesim
    """
    show_places(shelves.environments.where(*names or ()), output)


def remove_environments(
    names: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.environments,
            help="Environments by name.",
            metavar="NAME",
            show_default=False,
        ),
    ],
    *,
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Delete environments and the packages in them.

    Example: dse environments remove zigzag
    """
    show_removals(shelves.environments.remove(*names), output)


def _size(one: Environment) -> str:
    return f"{one.size_bytes / 1e6:.0f} MB"


@contextmanager
def _working(one: Environment) -> Iterator[Callable[[str], None]]:
    """Show pip's latest line on the error stream; yield a function that takes each line."""
    from rich.markup import escape

    from dse.report.text.console import SafeConsole

    console = SafeConsole(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(f"{one.name}: creating the environment") as status:

        def watch(line: str) -> None:
            status.update(f"{one.name}: {escape(line[: console.width - len(one.name) - 6])}")

        yield watch
