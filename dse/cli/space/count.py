"""``dse space count``: the number of legal designs of a space."""

from __future__ import annotations

from dse.cli.options import JsonOrTableOption, OutputFormat, show, show_json
from dse.cli.space.space_options import SetOption, SpaceFile, part_of, space_at


def count(
    file: SpaceFile, *, values: SetOption = None, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """Count the legal designs.

    If they cannot be counted, print an estimate from random draws, with its 95 % interval and an
    upper bound that holds for certain.

    Example: dse space count library:spaces/edge_codesign.yaml --set chip.rows=16
    """
    from dse.core.inspection.rule_check import obstacle
    from dse.report.text.space_words import estimate_text
    from dse.services.space.size import count_json

    space = part_of(space_at(file), values)
    designs = space.count()
    if output is OutputFormat.JSON:
        show_json(count_json(space, file))
    elif designs is not None:
        show(f"{designs:,}")
    else:
        estimate = space.estimate()
        show(f"not countable: {obstacle(space)}")
        if estimate is not None:
            show(estimate_text(estimate))
