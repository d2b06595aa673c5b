"""``dse space describe``: summary of a space's parameters, rules and size."""

from __future__ import annotations

from dse.cli.options import JsonOrTableOption, OutputFormat, show_json
from dse.cli.space.space_options import SpaceFile, space_at, title_of


def describe(file: SpaceFile, *, output: JsonOrTableOption = OutputFormat.TABLE) -> None:
    """Describe a space: parameters, rules, what each rule removes, and what is left.

    "forbids" is the share that a rule excludes of the designs that the space has without rules;
    "alone" is the share that only this rule excludes. Shares that cannot be counted are estimated
    from 10,000 draws and marked with a "~".

    Example: dse space describe library:spaces/edge_codesign.yaml
    """
    from dse.cli.space.space_tables import print_space
    from dse.services.space.space_description import space_json

    space = space_at(file)
    if output is OutputFormat.JSON:
        show_json(space_json(space, file, **title_of(file)))
    else:
        print_space(space, **title_of(file))
