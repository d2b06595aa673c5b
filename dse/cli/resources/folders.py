"""Output of the ``where`` and ``remove`` commands of assets and environments."""

from __future__ import annotations

from collections.abc import Sequence

from dse.cli.options import OutputFormat, say, show, show_json
from dse.report.schemas.resources import Places, Removed


def show_places(where: Places, output: OutputFormat) -> None:
    """Print the paths of the named assets or environments; if none was named, the folder of all."""
    if output is OutputFormat.JSON:
        show_json(where)
        return
    for path in [one["path"] for one in where["places"]] or [where["folder"]]:
        show(path)


def show_removals(told: Sequence[Removed], output: OutputFormat) -> None:
    """Print which assets or environments were removed, and which were not installed."""
    if output is OutputFormat.JSON:
        show_json(told)
        return
    for one in told:
        say(f"{one['name']} is {'removed' if one['removed'] else 'not installed'}")
