"""``dse space explain``: whether designs are legal, and which rules exclude them."""

from __future__ import annotations

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, show, show_json
from dse.cli.space.space_options import SetOption, SpaceFile, space_at

ILLEGAL = 1


def explain(
    file: SpaceFile, *, values: SetOption = None, output: JsonOrTableOption = OutputFormat.TABLE
) -> None:
    """Explain why designs are possible or not, rule by rule.

    For a complete design, list each rule that it violates. For some values, print how many legal
    designs have them or, if there are none, a minimal set of rules and values that contradict
    one another. The exit code is 1 if there is no legal design.

    Example: dse space explain library:spaces/edge_codesign.yaml --set chip.rows=64
    """
    from dse.cli.settings import settings
    from dse.services.space.why import DesignExplanation

    space = space_at(file, may_be_empty=True)
    verdict = DesignExplanation.of(space, settings(values or [], space))
    if output is OutputFormat.JSON:
        show_json(verdict.json())
    else:
        for line in verdict.lines():
            show(line)
    if verdict.why.example is None:
        raise typer.Exit(ILLEGAL)
