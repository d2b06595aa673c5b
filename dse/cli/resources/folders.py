"""Output on assets and environments: where they are, which are installed or removed."""

from __future__ import annotations

from collections.abc import Sequence

from dse.cli.options import OutputFormat, say, show, show_json
from dse.report.schemas.resources import Places, Removed


def show_places(where: Places, output: OutputFormat) -> None:
    """Print where those are that were named; where none was, the folder of all."""
    if output is OutputFormat.JSON:
        show_json(where)
        return
    for path in [one["path"] for one in where["places"]] or [where["folder"]]:
        show(path)


def show_removals(told: Sequence[Removed], output: OutputFormat) -> None:
    """Print which assets or environments were removed, and which were not there."""
    if output is OutputFormat.JSON:
        show_json(told)
        return
    for one in told:
        say(f"{one['name']} is {'removed' if one['removed'] else 'not there'}")
