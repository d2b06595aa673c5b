"""``dse space export``, ``import`` and ``diff``: conversion and comparison of spaces."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    JsonOrTableOption,
    OutputFormat,
    OutputOption,
    say,
    show,
    show_json,
    study_path,
)
from dse.cli.space.space_options import SpaceFile, space_at, title_of
from dse.report.json.atomic_file import write_whole
from dse.report.schemas.space_schema import Translated

DIFFERENT = 1


class ConversionTarget(StrEnum):
    """Format that a space is exported to."""

    YAML = "yaml"
    CONFIGSPACE = "configspace"
    OPTUNA = "optuna"


class Origin(StrEnum):
    """Tool that wrote the file to import."""

    CONFIGSPACE = "configspace"
    OPTUNA = "optuna"
    KERNEL_TUNER = "kernel-tuner"


def export(
    file: SpaceFile,
    *,
    target: Annotated[
        ConversionTarget,
        typer.Option(
            "--to", help="yaml: one flat file; configspace, optuna: JSON.", show_default=False
        ),
    ],
    path: OutputOption = None,
    drop_rules: Annotated[
        bool,
        typer.Option(
            "--drop-rules",
            help="Leave out rules that the other tool cannot express; the result is a superset.",
        ),
    ] = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Write a space as one flat YAML file, or as JSON for ConfigSpace or Optuna.

    Features that the other tool cannot express are reported, never dropped silently.

    Example: dse space export library:spaces/edge_codesign.yaml --to yaml -o flat.yaml
    """
    from dse.services.space.space_conversion import convert_space

    found = convert_space(space_at(file), target.value, drop_rules=drop_rules, **title_of(file))
    _give(found.text, path, found.warnings, output)


def import_(
    file: Annotated[
        str,
        typer.Argument(
            help="JSON file of ConfigSpace, Optuna or Kernel Tuner (T1).", show_default=False
        ),
    ],
    *,
    origin: Annotated[
        Origin | None,
        typer.Option(
            "--from", help="Tool that wrote the file; default: by its keys.", show_default=False
        ),
    ] = None,
    path: OutputOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Read a space of ConfigSpace, Optuna or Kernel Tuner (T1), and write it as a space file.

    Features that a space file cannot express, such as weights, are reported.

    Example: dse space import configspace.json -o space.yaml
    """
    from dse.schema.space.export.space_writer import format_space
    from dse.schema.yaml.files import Files
    from dse.services.space.space_conversion import taken

    source = study_path(file)
    found = taken(Files().text(source), file, None if origin is None else origin.value)
    _give(format_space(found.space, found.name or source.stem), path, found.warnings, output)


def diff(
    old: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.space_files, help="A space file.", show_default=False
        ),
    ],
    new: Annotated[
        str,
        typer.Argument(
            autocompletion=completing.space_files,
            help="Another space file, or a later version.",
            show_default=False,
        ),
    ],
    *,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Show the changes between two spaces: parameters, domains, conditions and rules.

    The layout of the files is ignored. The exit code is 1 if the spaces differ.

    Example: dse space diff library:spaces/edge_codesign.yaml my_codesign.yaml
    """
    from dse.services.space.space_conversion import differing

    differences = differing(space_at(old), space_at(new))
    if output is OutputFormat.JSON:
        show_json(differences)
    else:
        for sentence in differences["differences"] or ["the same space"]:
            show(sentence)
    if not differences["same"]:
        raise typer.Exit(DIFFERENT)


def _give(text: str, path: Path | None, notes: Sequence[str], output: OutputFormat) -> None:
    """Print a text or write it to a file, and print the conversion's notes on the error stream."""
    if path is not None:
        write_whole(path, text)
    if output is OutputFormat.JSON:
        facts: Translated = {
            "text": text,
            "file": None if path is None else str(path),
            "notes": list(notes),
        }
        show_json(facts)
        return
    for note in notes:
        say(f"note: {note}")
    if path is None:
        show(text, line_feed=False)
    else:
        say(f"wrote {path}")
