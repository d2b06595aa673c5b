"""``dse deploy``: write the compressed model of a trial as a file that other programs load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    say,
    show,
    show_json,
)

if TYPE_CHECKING:
    from dse.services.studies.deploy import Deployment, SizeRow


def deploy(
    name: NameArgument,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="File format: safetensors, onnx, gguf, torch or torchao.",
            metavar="TARGET",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ],
    trial: Annotated[
        int | None,
        typer.Option(
            "--trial", help="The trial; default: the only one of the front, or the favourite."
        ),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option(help="The evaluator that compressed the model, if several can deploy it."),
    ] = None,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Write the compressed model of a trial as a file that other programs load.

    The default trial is the only design of the front, or the favourite of `dse choose`.
    FILE.recipe.json records the design and the format of each tensor.

    Example: dse deploy tiny --trial 3 --to safetensors -o model.safetensors
    """
    from dse.services.studies.deploy import deploy_trial
    from dse.services.studies.deployment_json import deployment_json
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    done = deploy_trial(study, to, file, number=trial, evaluator=evaluator)
    if output is OutputFormat.JSON:
        show_json(deployment_json(done))
    else:
        _print_deployment(done)


def _print_deployment(done: Deployment) -> None:
    show(f"trial {done.trial.number} of {done.study}, as {done.target}")
    show(f"{'bytes':<12} {'study':>14} {'file':>14}")
    for row in done.sizes:
        show(_size_line(row))
    for note in done.notes:
        show(f"note: {note}")
    for file in done.files:
        say(f"wrote {file}")


def _size_line(row: SizeRow) -> str:
    study = "-" if row.study_bytes is None else f"{row.study_bytes:,.0f}"
    return f"{row.purpose:<12} {study:>14} {row.file_bytes:>14,}"
