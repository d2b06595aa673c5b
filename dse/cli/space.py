"""``dse space count``: how many legal designs there are."""

from __future__ import annotations

import typer

from dse.cli.options import Told, ToldOption, show_json
from dse.cli.space_options import SetOption, SpaceFile, part_of, space_at
from dse.report.shapes.space import Counted


def count(file: SpaceFile, *, values: SetOption = None, output: ToldOption = Told.TABLE) -> None:
    """How many legal designs there are.

    Example: dse space count library:spaces/edge_codesign.yaml --set chip.rows=16
    """
    from dse.core.insight.why import obstacle

    space = part_of(space_at(file), values)
    designs = space.count()
    if output is Told.JSON:
        told: Counted = {"file": file, "designs": designs, "reason": obstacle(space)}
        show_json(told)
    else:
        typer.echo(f"{designs:,}" if designs is not None else f"not countable: {obstacle(space)}")
