"""``dse space count``: how many legal designs there are."""

from __future__ import annotations

import typer

from dse.cli.options import show_json
from dse.cli.space_options import SetOption, SpaceFile, Told, ToldOption, part_of, space_at


def count(file: SpaceFile, *, values: SetOption = None, output: ToldOption = Told.TABLE) -> None:
    """How many legal designs there are.

    Example: dse space count library:spaces/edge_codesign.yaml --set chip.rows=16
    """
    from dse.core.insight.why import obstacle

    space = part_of(space_at(file), values)
    designs = space.count()
    if output is Told.JSON:
        show_json({"file": file, "designs": designs, "reason": obstacle(space)})
    else:
        typer.echo(f"{designs:,}" if designs is not None else f"not countable: {obstacle(space)}")
