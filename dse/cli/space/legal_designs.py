"""``dse space sample``, ``neighbours`` and ``enumerate``: legal designs as rows."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dse.cli.options import ListedOption, ListFormat, say, show_json
from dse.cli.space.space_options import (
    SeedOption,
    SetOption,
    SpaceFile,
    allow_early_close,
    part_of,
    space_at,
)
from dse.report.schemas.space_schema import Neighbours


class Method(StrEnum):
    """Sampling method of designs."""

    UNIFORM = "uniform"
    SOBOL = "sobol"
    STRATIFIED = "stratified"


def sample(
    file: SpaceFile,
    *,
    number: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of designs.")] = 5,
    seed: SeedOption = 0,
    method: Annotated[
        Method,
        typer.Option(
            help="uniform: independent draws; sobol: an evenly spread sequence that can be "
            "extended; stratified: a Latin hypercube, with as many strata as designs."
        ),
    ] = Method.UNIFORM,
    values: SetOption = None,
    output: ListedOption = ListFormat.TABLE,
) -> None:
    """Sample legal designs: independent uniform draws, or evenly spread ones.

    Example: dse space sample library:spaces/edge_codesign.yaml -n 3 --method sobol
    """
    from dse.cli.settings import settings
    from dse.cli.space.rows import show_rows
    from dse.services.space.sample import draw, part_with, too_few

    space = space_at(file)
    part = part_with(space, settings(values or [], space))
    batch = draw(part, number, seed, method.value)
    if len(batch) < number:
        say(too_few(part, len(batch), number))
    with allow_early_close():
        show_rows(space, batch, output.value)


def neighbours(
    file: SpaceFile,
    *,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            help="A value of the design; parameters that are not set are drawn at random.",
            metavar="K=V",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random values.")] = 0,
    output: ListedOption = ListFormat.TABLE,
) -> None:
    """List the legal designs that are one small move away from a design.

    Parameters that are coupled by rules move together.

    Example: dse space neighbours library:spaces/edge_codesign.yaml --set chip.rows=16
    """
    from dse.cli.settings import settings
    from dse.cli.space.rows import changes, plain_rows, show_rows
    from dse.report.text.space_words import design_text, entries, format_count
    from dse.report.text.terminal_table import print_lines
    from dse.services.space.sample import design_with

    space = space_at(file)
    design = design_with(space, settings(values or [], space), seed)
    near = space.neighbours(design)
    if output is ListFormat.JSON:
        facts: Neighbours = {"design": dict(design), "neighbours": list(plain_rows(space, near))}
        show_json(facts)
        return
    with allow_early_close():
        if output is ListFormat.CSV:
            show_rows(space, near, output.value)
            return
        known = entries(space)
        moves = (f"  {line}" for line in changes(space, design, near))
        print_lines(
            [f"of {design_text(known, design)}", *moves, format_count(len(near), "neighbour")]
        )


def enumerate_(
    file: SpaceFile,
    *,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many.", show_default=False)
    ] = None,
    values: SetOption = None,
    output: ListedOption = ListFormat.TABLE,
) -> None:
    """List all legal designs in a fixed order, one per line.

    With --format json each line is an object. Memory use does not grow with the number of designs.

    Example: dse space enumerate library:spaces/edge_codesign.yaml --limit 1000 --format csv
    """
    from dse.cli.space.rows import stream

    space = part_of(space_at(file), values)
    with allow_early_close():
        stream(space, limit, output.value)
