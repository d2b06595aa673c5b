"""``dse space``: how large a space is, what is in it, what it looks like."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dse.cli.options import Format, FormatOption, show_json, study_path

SpaceFile = Annotated[str, typer.Argument(help="A space file.", show_default=False)]


def count(file: SpaceFile, *, output: FormatOption = Format.TABLE) -> None:
    """How many legal designs there are.

    Example: dse space count spaces/edge_codesign.yaml
    """
    designs = _space(file).count()
    if output is Format.JSON:
        show_json({"file": file, "designs": designs})
    else:
        typer.echo("not countable: a real parameter" if designs is None else f"{designs:,}")


def sample(
    file: SpaceFile,
    *,
    number: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same designs.")] = 0,
    output: FormatOption = Format.TABLE,
) -> None:
    """Designs drawn uniformly from the legal set.

    Example: dse space sample spaces/edge_codesign.yaml -n 3
    """
    import numpy as np

    designs = _space(file).sample(number, np.random.default_rng(seed)).designs()
    if output is Format.JSON:
        show_json([dict(design) for design in designs])
        return
    for design in designs:
        typer.echo("  ".join(f"{name}={value}" for name, value in design.items()))


def describe(file: SpaceFile, *, output: FormatOption = Format.TABLE) -> None:
    """The parameters, when each is active, and which are coupled by rules.

    Example: dse space describe spaces/edge_codesign.yaml
    """
    from dse.core.parameter import describe as domain

    space = _space(file)
    rows = [
        {
            "parameter": p.name,
            "domain": domain(p),
            "when": space.conditions[p.name].text if p.name in space.conditions else "",
        }
        for p in space.parameters
    ]
    groups: list[dict[str, Any]] = [
        {"parameters": list(c.names), "combinations": None if c.rows is None else len(c.rows)}
        for c in space.legal.components
    ]
    rules = [rule.text for rule in space.constraints]
    if output is Format.JSON:
        show_json({"designs": space.count(), "parameters": rows, "rules": rules, "groups": groups})
        return
    for row in rows:
        active = f"   when {row['when']}" if row["when"] else ""
        typer.echo(f"{row['parameter']}: {row['domain']}{active}")
    for rule in rules:
        typer.echo(f"rule: {rule}")
    for group in groups:
        if len(group["parameters"]) > 1:
            typer.echo(f"coupled: {', '.join(group['parameters'])} ({group['combinations']})")
    designs = space.count()
    typer.echo("designs: " + ("not countable" if designs is None else f"{designs:,}"))


def _space(file: str) -> Any:
    from dse.schema.files import Files
    from dse.schema.space import space_of

    return space_of(study_path(file), Files())
