"""``dse init``: a first study from a few questions."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dse.cli.options import say

T = TypeVar("T")


class Measured(StrEnum):
    """Where a first study's numbers come from."""

    COMMAND = "command"
    TABLE = "table"
    FORMULA = "formula"


def init(
    folder: Annotated[
        Path, typer.Argument(help="Where to write; made if it is not there.")
    ] = Path(),
    *,
    name: Annotated[str | None, typer.Option(help="The study's name.", show_default=False)] = None,
    question: Annotated[
        str | None, typer.Option(help="What is asked, in your words.", show_default=False)
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
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing; take an example for what is not told.")
    ] = False,
) -> None:
    """Write a commented space, a study and an evaluator that run, from a few questions.

    Example: dse init kernels --parameter 'threads = 1..16' --metric 'minimize time ms' --yes
    """
    from dse.beginning.answers import (
        EXAMPLE_AXES,
        EXAMPLE_WISHES,
        METRIC_HINT,
        PARAMETER_HINT,
        Beginning,
        axis_of,
        wish_of,
    )
    from dse.beginning.files import files

    taken = [file for file in ("space.yaml", "study.yaml") if (folder / file).exists()]
    _check_free(folder, taken)
    axes = tuple(map(axis_of, parameter or ()))
    wishes = tuple(map(wish_of, metric or ()))
    usual = (folder.resolve().name or "mine").replace(" ", "-")
    asked = Beginning(
        name=name or (usual if yes else typer.prompt("The study's name", default=usual)),
        question=question
        or (_QUESTION if yes else typer.prompt("What is asked", default=_QUESTION)),
        measuring=(measured or (Measured.COMMAND if yes else _measuring())).value,
        axes=axes
        or (EXAMPLE_AXES if yes else _several("parameter", PARAMETER_HINT, axis_of))
        or EXAMPLE_AXES,
        wishes=wishes
        or (EXAMPLE_WISHES if yes else _several("metric", METRIC_HINT, wish_of))
        or EXAMPLE_WISHES,
    )
    written = files(asked)
    _check_free(folder, [file for file in written if (folder / file).exists()])
    _write(folder, written)
    _say_how_to_go_on(folder, written)


_QUESTION = "Which design is best?"


def _measuring() -> Measured:
    say("Where do the numbers come from? command: a program of yours is run for each design;")
    say("table: a CSV file of designs that were measured; formula: a model in a line")
    choice = typer.prompt("command, table or formula", default=Measured.COMMAND.value)
    try:
        return Measured(choice.strip().lower())
    except ValueError:
        say(f"{choice!r} is none of them")
        return _measuring()


def _several(what: str, hint: str, read: Callable[[str], T]) -> tuple[T, ...]:
    """What is told line by line, until an empty one."""
    from dse.errors import SpecError

    say(f"One {what} a line, such as {hint}; an empty line ends, at once for an example")
    told: list[T] = []
    while line := typer.prompt(what, default="", show_default=False).strip():
        try:
            told.append(read(line))
        except SpecError as error:
            say(f"{error}")
    return tuple(told)


def _check_free(folder: Path, taken: list[str]) -> None:
    """Nothing, if no file would be overwritten.

    Raises:
        StudyError: one would be.
    """
    from dse.errors import StudyError

    if taken:
        raise StudyError(
            f"{folder / taken[0]} is there already",
            hint="name another folder: dse init FOLDER",
        )


def _write(folder: Path, written: dict[str, str]) -> None:
    """All files, judged as a whole; none stays if they are no study.

    Raises:
        SpecErrors: what was told makes no study, such as an unknown unit.
        StorageError: the folder cannot be written.
    """
    from dse.errors import DseError, StorageError
    from dse.schema.plan import plan_of

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        plan_of((folder / "study.yaml").resolve())
    except DseError:
        for name in written:
            (folder / name).unlink()
        raise


def _say_how_to_go_on(folder: Path, written: dict[str, str]) -> None:
    for name in written:
        typer.echo(f"wrote {folder / name}")
    study = folder / "study.yaml"
    typer.echo(f"\ndse check {study}     # judges the files")
    typer.echo(f"dse run {study}       # Ctrl-C loses nothing; the same words go on")
