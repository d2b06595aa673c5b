"""``dse environments``: programs whose pins conflict with ours, each installed by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from dse.assets.environment import Environment, environments_folder
from dse.cli.brought import brought
from dse.cli.brought import chosen as brought_by_name
from dse.cli.options import say, show_json
from dse.cli.space_options import Told, ToldOption

INTERRUPTED = 3


def list_environments(*, output: ToldOption = Told.TABLE) -> None:
    """What each environment is for, its size and licence, and whether it is there.

    Example: dse environments list
    """
    environments = known()
    if output is Told.JSON:
        show_json([_facts(one) for one in environments.values()])
        return
    wide = max(map(len, environments), default=0)
    for name, one in environments.items():
        there = "installed" if one.installed else "-"
        users = ", ".join(one.used_by)
        typer.echo(f"{name:<{wide}}  {there:<9}  {_size(one):>6}  {users}: {one.purpose}")
        typer.echo(f"{'':<{wide}}  {'':<9}  {'':>6}  {one.package} {one.version}, {one.licence}")
    missing = [name for name, one in environments.items() if not one.installed]
    if missing:
        say(f"dse environments install {missing[0]}    makes one; without a name, all")


def install_environments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Environments by name; all of them where there is none.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a virtual environment for each and install its pinned packages, checked by hash.

    The index is the one that pip is set up for. What is there already is left as it is.

    Example: dse environments install scalesim
    """
    from dse.assets.building import build

    for one in chosen(names):
        say(f"{one.name}: {one.package} {one.version} and what it needs, {_size(one)} on disk")
        try:
            with _working(one) as watch:
                new = build(one, watch)
        except KeyboardInterrupt:
            say(f"interrupted; nothing of {one.name} is kept, what came before it is")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{one.name} {one.version} is {'installed' if new else 'there already'}")


def where_environments(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Environments by name.", metavar="NAME", show_default=False),
    ] = None,
) -> None:
    """The Python of environments; without a name, the folder that they all lie in.

    Example: dse environments where scalesim
    """
    if not names:
        typer.echo(environments_folder())
    for one in chosen(names) if names else ():
        one.check_installed()
        typer.echo(one.python)


def remove_environments(
    names: Annotated[
        list[str],
        typer.Argument(help="Environments by name.", metavar="NAME", show_default=False),
    ],
) -> None:
    """Delete environments.

    Example: dse environments remove zigzag
    """
    from dse.assets.building import demolish

    for one in chosen(names):
        say(f"{one.name} is {'removed' if demolish(one) else 'not there'}")


def known() -> Mapping[str, Environment]:
    """The environments of every package that brings some, by name."""
    return brought("environments", "environment")


def chosen(names: Sequence[str] | None) -> list[Environment]:
    """The environments of these names, or all."""
    return brought_by_name(names, known(), "environment", {})


def _facts(one: Environment) -> dict[str, object]:
    return {
        "name": one.name,
        "used_by": list(one.used_by),
        "purpose": one.purpose,
        "licence": one.licence,
        "package": one.package,
        "version": one.version,
        "size_bytes": one.size_bytes,
        "installed": one.installed,
        "folder": str(one.folder),
        "python": str(one.python),
    }


def _size(one: Environment) -> str:
    return f"{one.size_bytes / 1e6:.0f} MB"


@contextmanager
def _working(one: Environment) -> Iterator[Callable[[str], None]]:
    """A line on the error stream that shows what pip is at."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(f"{one.name}: making the environment") as status:

        def watch(line: str) -> None:
            status.update(f"{one.name}: {escape(line[: console.width - len(one.name) - 6])}")

        yield watch
