"""``dse space export``, ``import`` and ``diff``: spaces for other tools, and beside another."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dse.cli.options import OutputOption, say, show_json, study_path
from dse.cli.report import write_whole
from dse.cli.space_options import SpaceFile, Told, ToldOption, space_at, title_of

DIFFERENT = 1


class Target(StrEnum):
    """In which tool's words a space is written."""

    YAML = "yaml"
    CONFIGSPACE = "configspace"
    OPTUNA = "optuna"


class Origin(StrEnum):
    """Which tool wrote a file."""

    CONFIGSPACE = "configspace"
    OPTUNA = "optuna"


def export(
    file: SpaceFile,
    *,
    target: Annotated[
        Target,
        typer.Option(
            "--to", help="yaml: one flat file; configspace, optuna: JSON.", show_default=False
        ),
    ],
    output: OutputOption = None,
    drop_rules: Annotated[
        bool,
        typer.Option("--drop-rules", help="Leave out what the other tool cannot say: a superset."),
    ] = False,
) -> None:
    """Write a space as one flat YAML file, or for ConfigSpace or Optuna.

    What the other tool has no words for is told, never dropped without a word.

    Example: dse space export library:spaces/edge_codesign.yaml --to yaml -o flat.yaml
    """
    space, title = space_at(file), title_of(file)
    if target is Target.YAML:
        from dse.schema.spaces.written import written

        _give(written(space, title["name"], title["description"]), output, [])
        return
    from dse.interchange import configspace, optuna

    found = (
        configspace.write(space, title["name"], drop_rules=drop_rules)
        if target is Target.CONFIGSPACE
        else optuna.write(space, drop_rules=drop_rules)
    )
    _give(found.text, output, found.warnings)


def import_(
    file: Annotated[
        str, typer.Argument(help="JSON of ConfigSpace or of Optuna.", show_default=False)
    ],
    *,
    origin: Annotated[
        Origin | None,
        typer.Option("--from", help="Which tool wrote it; told by its keys.", show_default=False),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Read a space of ConfigSpace or Optuna, and write it as a space file.

    What a space file has no words for, such as weights, is told.

    Example: dse space import configspace.json -o space.yaml
    """
    from dse.interchange import configspace, optuna
    from dse.schema.files import Files
    from dse.schema.spaces.written import written

    path = study_path(file)
    text = Files().text(path)
    told = origin or _origin(text)
    read = configspace.read if told is Origin.CONFIGSPACE else optuna.read
    found = read(text, file)
    _give(written(found.space, found.name or path.stem), output, found.warnings)


def diff(
    old: Annotated[str, typer.Argument(help="A space file.", show_default=False)],
    new: Annotated[str, typer.Argument(help="Another, or a later one.", show_default=False)],
    *,
    output: ToldOption = Told.TABLE,
) -> None:
    """What leads from one space to another: parameters, domains, conditions and rules.

    How the files are laid out makes no difference. The exit code is 1 if the spaces differ.

    Example: dse space diff library:spaces/edge_codesign.yaml my_codesign.yaml
    """
    from dse.core.insight.difference import difference
    from dse.core.insight.fingerprint import fingerprint
    from dse.schema.spaces.spelled import spelled

    before, after = space_at(old), space_at(new)
    told = difference(before, after, spelled)
    if output is Told.JSON:
        prints = {"old": fingerprint(before), "new": fingerprint(after)}
        show_json({"same": not told, "fingerprints": prints, "differences": told})
    else:
        for sentence in told or ["the same space"]:
            typer.echo(sentence)
    if told:
        raise typer.Exit(DIFFERENT)


def _origin(text: str) -> Origin:
    """Which tool wrote the text: ConfigSpace's has a list of hyperparameters."""
    return Origin.CONFIGSPACE if '"hyperparameters"' in text else Origin.OPTUNA


def _give(text: str, output: Path | None, warnings: Any) -> None:
    """The text on the output stream or in the file, the warnings beside it."""
    for warning in warnings:
        say(f"note: {warning}")
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_whole(output, text)
        say(f"wrote {output}")
