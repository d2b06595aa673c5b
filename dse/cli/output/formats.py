"""Results in machine-readable formats, printed or written to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dse.cli.options import Format, print_texts


def write_result(
    output: Format, file: Path | None, facts: Mapping[str, object], sheet: Callable[[], Any]
) -> None:
    """Print a result in a machine-readable format, or write it to a file.

    Raises:
        StudyError: the format is Parquet, and no file is given.
        StorageError: the file cannot be written.
    """
    import json

    from dse.errors import StudyError
    from dse.report.json.atomic_file import write_whole
    from dse.report.json.columns import csv_texts, parquet_bytes

    if output is Format.JSON:
        write_texts(output, file, [json.dumps(facts, indent=2, allow_nan=False) + "\n"])
    elif output is Format.CSV:
        write_texts(output, file, csv_texts([sheet()]))
    elif file is None:
        raise StudyError("Parquet cannot be printed as text", hint="name a file: -o FILE")
    else:
        write_whole(file, parquet_bytes(sheet()))


def write_texts(output: Format, file: Path | None, texts: Iterable[str]) -> None:
    """Print the parts of a text in order, or write them to one file.

    Raises:
        StorageError: the file cannot be written.
    """
    from dse.report.json.atomic_file import write_whole

    if file is None:
        print_texts(output, texts)
    else:
        write_whole(file, texts)
