"""A result in a machine's format, on the terminal or in a file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dse.cli.options import Format, csv_output, show_json


def write_result(
    output: Format, file: Path | None, told: Mapping[str, object], sheet: Callable[[], Any]
) -> None:
    """Print or write a result in a machine's format.

    Raises:
        StudyError: Parquet is asked for on a terminal.
        StorageError: the file cannot be written.
    """
    import json

    from dse.errors import StudyError
    from dse.report.sheet import parquet_bytes, write_csv
    from dse.report.whole_file import write_whole

    if file is None:
        if output is Format.PARQUET:
            raise StudyError("Parquet is no text for a terminal", hint="name a file: -o FILE")
        if output is Format.CSV:
            write_csv(sheet(), csv_output())
        else:
            show_json(told)
    elif output is Format.PARQUET:
        write_whole(file, parquet_bytes(sheet()))
    elif output is Format.CSV:
        text = io.StringIO()
        write_csv(sheet(), text)
        write_whole(file, text.getvalue())
    else:
        write_whole(file, json.dumps(told, indent=2, allow_nan=False) + "\n")
