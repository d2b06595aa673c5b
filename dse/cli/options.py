"""Options that several commands share, and functions that print results and messages."""

from __future__ import annotations

import json
import shlex
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


_STORAGES = "dse.storages"
"""Key in a command's context: storages of the study files that are named in place of studies."""

_FOLDERS = "dse.folders"
"""Key in a command's context: folders of these study files."""


def name_of_file(context: typer.Context, value: str | None) -> str | None:
    """Return a study's name, or that of a study file; the file's storage becomes the default.

    Raises:
        SpecError: the file is no study file.
    """
    if not (value or "").endswith((".yaml", ".yml")):
        return value
    from dse.errors import SpecError, nearest
    from dse.schema.yaml.files import Files

    if not Path(value or "").is_file():
        beside = [one.name for one in Path(value or "").parent.glob("*.y*ml")]
        hint = nearest(Path(value or "").name, beside)
        raise SpecError(f"there is no file {value}", hint=hint)

    content = Files().source(Path(value or "")).value
    name, storage = content.get("study"), content.get("storage")
    if not isinstance(name, str):
        raise SpecError(f"{value} is no study file", hint="study: NAME is missing")
    context.meta.setdefault(_STORAGES, []).append(storage)
    context.meta.setdefault(_FOLDERS, []).append(Path(value or "").parent)
    return name


def names_of_files(context: typer.Context, values: list[str]) -> list[str]:
    """Return the names of studies, of which some may be given by their files."""
    return [name_of_file(context, one) or one for one in values]


def _storage_of_file(context: typer.Context, value: str | None) -> str | None:
    """Return the storage, or that of the study files in place of names.

    Raises:
        StudyError: two files have different storages, or the default storage is not in the current
            folder but beside the file.
    """
    found: list[str | None] = context.meta.get(_STORAGES, [])
    if value is not None or not found:
        return value
    from dse.errors import StudyError
    from dse.study.storage_access import DEFAULT_STORAGE

    if len(set(found)) > 1:
        raise StudyError(
            "the study files have different storages",
            hint="name the storage of all studies: --storage URL",
        )
    default = Path(DEFAULT_STORAGE.removeprefix("sqlite:///"))
    if found[0] is None and not default.exists():
        for folder in context.meta[_FOLDERS]:
            if (beside := folder / default).exists():
                raise StudyError(
                    f"there is no storage {default} in this folder, but one beside the study file",
                    hint=f"--storage {shlex.quote(f'sqlite:///{beside}')}",
                )
    return found[0]


StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        callback=_storage_of_file,
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
        autocompletion=completing.study_names,
        callback=name_of_file,
        is_eager=True,
        help="The study's name, or its file.",
        show_default=False,
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
