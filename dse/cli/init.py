"""``dse init``: create a first study from a few questions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, say, show, show_json
from dse.report.schemas.pages import BegunFolder

if TYPE_CHECKING:
    from dse.services.init.answers import MetricAnswer, ParameterAnswer

T = TypeVar("T", bound="ParameterAnswer | MetricAnswer")


class Measured(StrEnum):
    """How the evaluator of a new study gets its metrics: command, table or formula."""

    COMMAND = "command"
    TABLE = "table"
    FORMULA = "formula"


def init(
    folder: Annotated[
        Path, typer.Argument(help="Folder to write to; created if it does not exist.")
    ] = Path(),
    *,
    name: Annotated[str | None, typer.Option(help="The study's name.", show_default=False)] = None,
    question: Annotated[
        str | None,
        typer.Option(help="The question of the study, in your words.", show_default=False),
    ] = None,
    measured: Annotated[
        Measured | None,
        typer.Option(
            help="A program, a table of measured designs, or formulas.", show_default=False
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter", "-p", help="Such as 'threads = 1..16'; may be repeated.", metavar="P"
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Such as 'minimize time ms'; may be repeated.", metavar="M"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A model to compress: net.onnx, net.pt2, a folder, or net.py:make.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="The examples to run --model on: data.npz.", show_default=False),
    ] = None,
    quality: Annotated[
        str | None,
        typer.Option(help="The quality metric of --model: accuracy.", show_default=False),
    ] = None,
    chip: Annotated[
        bool, typer.Option("--chip", help="Choose a chip for --model, too: a systolic array.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing; use examples for missing options.")
    ] = False,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Write a commented space, study and evaluator that run, from a few questions.

    With --model, the study compresses that model, layer by layer; with --chip, it also chooses a
    chip together with the number formats.

    Example: dse init kernels --parameter 'threads = 1..16' --metric 'minimize time ms' --yes
    """
    from dse.services.init.answers import (
        EXAMPLE_METRICS,
        EXAMPLE_PARAMETERS,
        METRIC_HINT,
        PARAMETER_HINT,
        QUESTION,
        InitAnswers,
        parse_metric,
        parse_parameter,
    )
    from dse.services.init.model_study import MODEL_QUESTION, ModelAnswer, write_model_study
    from dse.services.init.study_files import check_free, usual_name, write_study_files

    check_free(folder)
    axes = tuple(map(parse_parameter, parameter or ()))
    metrics = tuple(map(parse_metric, metric or ()))
    usual = usual_name(folder)
    if model is not None or data is not None or quality is not None or chip:
        _check_model_options(model, data, [measured, parameter, metric])
        answer = ModelAnswer(model=model or "", data=data or "", quality=quality, has_chip=chip)
        written = write_model_study(name or usual, question or MODEL_QUESTION, answer, folder)
        _report(name or usual, folder, [*written], output)
        return
    try:
        asked = InitAnswers(
            name=name
            or (usual if yes else typer.prompt("The study's name", default=usual, err=True)),
            question=question
            or (QUESTION if yes else typer.prompt("Its question", default=QUESTION, err=True)),
            measuring=(measured or (Measured.COMMAND if yes else _measuring())).value,
            axes=axes
            or (
                EXAMPLE_PARAMETERS
                if yes
                else _several("parameter", PARAMETER_HINT, parse_parameter)
            )
            or EXAMPLE_PARAMETERS,
            metrics=metrics
            or (EXAMPLE_METRICS if yes else _several("metric", METRIC_HINT, parse_metric))
            or EXAMPLE_METRICS,
        )
    except typer.Abort:
        say("\nnothing was written; --yes skips the questions, and options answer them in advance")
        raise typer.Exit(1) from None
    _report(asked.name, folder, [*write_study_files(asked, folder)], output)


def _report(name: str, folder: Path, files: list[str], output: OutputFormat) -> None:
    """Print the files that were written, and the commands that come next."""
    if output is OutputFormat.JSON:
        facts: BegunFolder = {"study": name, "folder": str(folder), "files": files}
        show_json(facts)
    else:
        _say_how_to_go_on(folder, files)


def _check_model_options(model: str | None, data: str | None, others: Sequence[object]) -> None:
    """Raise UsageError unless --model comes with --data and without the options in ``others``."""
    if model is None or data is None:
        missing = "--model" if model is None else "--data"
        raise typer.BadParameter(f"{missing} is missing: --model net.onnx --data data.npz")
    if any(others):
        raise typer.BadParameter(
            "--model writes its own parameters and metrics: leave out --measured, --parameter "
            "and --metric"
        )


def _measuring() -> Measured:
    say("Where do the metrics come from? command: a program of yours is run for each design;")
    say("table: a CSV file of measured designs; formula: a model in one line")
    choice = typer.prompt("command, table or formula", default=Measured.COMMAND.value, err=True)
    try:
        return Measured(choice.strip().lower())
    except ValueError:
        say(f"{choice!r} is not one of them")
        return _measuring()


def _several(what: str, hint: str, read: Callable[[str], T]) -> tuple[T, ...]:
    """Prompt for entries, one per line, until an empty line; return them.

    An entry that is not valid is reported and not kept.
    """
    from dse.errors import SpecError
    from dse.services.init.answers import check_names

    say(f"Enter one {what} per line, such as {hint}; an empty line ends (first: use an example)")
    values: list[T] = []
    while line := typer.prompt(what, default="", show_default=False, err=True).strip():
        try:
            one = read(line)
            check_names(what, [*values, one])
            values.append(one)
        except SpecError as error:
            say(f"{error}")
    return tuple(values)


def _say_how_to_go_on(folder: Path, files: list[str]) -> None:
    for name in files:
        show(f"wrote {folder / name}")
    study = folder / "study.yaml"
    steps = {
        "check": "validates the files",
        "evaluate": "evaluates one design",
        "run": "Ctrl-C loses nothing; the same command continues",
    }
    commands = {verb: shlex.join(["dse", verb, str(study)]) for verb in steps}
    wide = max(map(len, commands.values()))
    show()
    for verb, why in steps.items():
        show(f"{commands[verb]:<{wide}}  # {why}")
