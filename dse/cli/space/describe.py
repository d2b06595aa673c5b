"""``dse space describe``: a space's parameters, rules and size in one look."""

from __future__ import annotations

from dse.cli.options import OutputFormat, ToldOption, show_json
from dse.cli.space.options import SpaceFile, space_at, title_of


def describe(file: SpaceFile, *, output: ToldOption = OutputFormat.TABLE) -> None:
    """Parameters, rules and what each removes, and how much is left.

    A rule "forbids" a share of the designs that there would be without any rule; "alone" it
    removes those of them that keep all other rules. What cannot be counted is estimated from
    10,000 draws, and marked with a "~".

    Example: dse space describe library:spaces/edge_codesign.yaml
    """
    from dse.cli.space.tables import print_space
    from dse.services.space.describe import space_json

    space = space_at(file)
    if output is OutputFormat.JSON:
        show_json(space_json(space, file, **title_of(file)))
    else:
        print_space(space, **title_of(file))
