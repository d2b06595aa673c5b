"""Options that several commands share, and functions that print results and messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer

from dse.cli import completion as completing
from dse.system.credentials import mask
from dse.system.terminal_text import visible


class OutputFormat(StrEnum):
    """Output format of a single result."""

    TABLE = "table"
    JSON = "json"


class ListFormat(StrEnum):
    """Output format of a list of designs."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Format(StrEnum):
    """Output format of a table of trials, on the terminal or in a file."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="DSE_STORAGE",
        help="URL of the storage of studies, such as sqlite:///dse.db (the default).",
        show_default=False,
    ),
]
JsonOrTableOption = Annotated[
    OutputFormat, typer.Option("--format", help="table for people, json for machines.")
]
ListedOption = Annotated[
    ListFormat, typer.Option("--format", help="table for people; json, csv for machines.")
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="table for people; json, csv, parquet for machines.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file instead of the terminal."),
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Allow the programs that the study starts to run here.")
]
NameArgument = Annotated[
    str,
    typer.Argument(
        autocompletion=completing.study_names, help="The study's name.", show_default=False
    ),
]
StudyFile = Annotated[
    str,
    typer.Argument(
        autocompletion=completing.study_files,
        help="A study file, or library:studies/... for a shipped one.",
        show_default=False,
    ),
]


def format_of(output: Format, file: Path | None) -> Format:
    """Return the output format: the requested one, or that of the file's extension.

    Raises:
        StudyError: neither the option nor the file's extension names a file format.
    """
    if output is not Format.TABLE or file is None:
        return output
    from dse.errors import StudyError

    ending = file.suffix.removeprefix(".").lower()
    if ending in (Format.JSON, Format.CSV, Format.PARQUET):
        return Format(ending)
    raise StudyError(f"{file} has no known extension", hint="--format json, csv or parquet")


def study_path(text: str) -> Path:
    """Return the path of a file argument; ``library:`` names the shipped library."""
    from dse.schema.yaml.files import resolve_path

    return resolve_path(text, Path.cwd() / "study.yaml")


def show(message: str = "", *, line_feed: bool = True) -> None:
    """Print a line of a result, with control characters made visible."""
    typer.echo(visible(message), nl=line_feed)


def say(message: str) -> None:
    """Print a message on the error stream: credentials masked, control characters visible."""
    typer.echo(visible(mask(message)), err=True)


def csv_output() -> TextIO:
    """Return the output stream for CSV; on a terminal it makes control characters visible."""
    return cast(TextIO, _Marked(sys.stdout)) if _is_terminal() else sys.stdout


def _is_terminal() -> bool:
    return sys.stdout.isatty()


class _Marked:
    """Stream wrapper that makes control characters visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible(text))


def show_json(value: object) -> None:
    """Print a value as strict JSON with all control characters escaped."""
    print_texts(Format.JSON, [json.dumps(value, indent=2, allow_nan=False), "\n"])


def print_texts(output: Format, texts: Iterable[str]) -> None:
    """Print parts of a CSV (see :func:`csv_output`) or JSON text; escape DEL characters in JSON."""
    if output is Format.CSV:
        stream = csv_output()
        for text in texts:
            stream.write(text)
        return
    sys.stdout.writelines(text.replace("\x7f", "\\u007f") for text in texts)
