"""``dse deploy``: write the compressed model or the settings of a trial for other programs."""

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
            help="File format of a model: safetensors, onnx, gguf, torch or torchao; program of "
            "settings: vllm, sglang, llama.cpp, tensorrt-llm, megatron, deepspeed, accelerate, "
            "kubernetes or dynamo; or a CSV file of flags.",
            metavar="TARGET",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write.", show_default=False)
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            "--trial", help="The trial; default: the only one of the front, or the favourite."
        ),
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option(
            help="The evaluator that compressed the model, or whose inputs are the settings."
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit with 1 if a setting has no flag."),
    ] = False,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Write the compressed model of a trial, or its settings, as a file for other programs.

    The default trial is the only design of the front, or the favourite of `dse choose`. For a
    model, FILE.recipe.json records the design and the format of each tensor. For settings, what no
    flag expresses is printed.

    Example: dse deploy tiny --trial 3 --to safetensors -o model.safetensors
    """
    from dse.errors import StudyError
    from dse.services.studies.deploy import deploy_trial
    from dse.services.studies.deployment_json import deployment_json
    from dse.study.study_engine import StudyEngine

    if check == (file is not None):
        raise StudyError(
            "--check writes no file" if check else "there is no file to write to",
            hint="leave -o out" if check else "-o FILE, or --check to see what has no flag",
        )
    study = StudyEngine.load(name, storage)
    done = deploy_trial(study, to, file, number=trial, evaluator=evaluator)
    if output is OutputFormat.JSON:
        show_json(deployment_json(done))
    else:
        _print_deployment(done)
    if check and done.missing:
        raise typer.Exit(1)


def _print_deployment(done: Deployment) -> None:
    show(f"trial {done.trial.number} of {done.study}, as {done.target}")
    if done.sizes:
        show(f"{'bytes':<12} {'study':>14} {'file':>14}")
    for row in done.sizes:
        show(_size_line(row))
    for name, value in done.flags.items():
        show(f"{name} = {value}")
    for name, reason in done.missing.items():
        show(f"not expressed: {name} = {reason}")
    for note in done.notes:
        show(f"note: {note}")
    for file in done.files:
        say(f"wrote {file}")


def _size_line(row: SizeRow) -> str:
    study = "-" if row.study_bytes is None else f"{row.study_bytes:,.0f}"
    return f"{row.purpose:<12} {study:>14} {row.file_bytes:>14,}"
