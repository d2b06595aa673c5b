"""Reader of measured services and training steps: CSV, or results of ``vllm bench serve``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_rows import check_columns, find_time_column, parse_csv, read_text
from dse_evaluators.reading_table import ChoiceInput, Flag, Reading, Readings

_WORDS: Mapping[str, Value] = {"true": True, "yes": True, "false": False, "no": False}
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """Columns of a table of measured serving or training times.

    Args:
        time: name of the measured time, to which its unit is appended: ``tpot`` as ``tpot_ms``.
        options: columns besides the model that are options of the evaluator, with their defaults;
            ``None`` for a required column.
        inputs: columns that are inputs of the evaluator.
        required: inputs that each row has.
        example: a header, for messages.
    """

    time: str
    options: Mapping[str, int | None]
    inputs: Mapping[str, Reading]
    required: tuple[str, ...]
    example: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table of measurements, without the column of the time."""
        return ("model", *self.options, *self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """Measured time of a service or training step, with its design and its line in the file."""

    where: str
    model: str
    options: Mapping[str, int]
    design: Mapping[str, Value]
    seconds: float


def read_measured_rows(path: Path, form: RowFormat) -> list[MeasuredRow]:
    """Read measurements from a CSV file or from results of ``vllm bench serve``.

    A file whose content is JSON is read as results of ``--save-result``. A result needs its model,
    its parallel degrees and its formats, which ``--metadata model=llama3-8b tp=1
    weight_format=bf16`` writes.

    Args:
        path: the file.
        form: columns of the file.

    Raises:
        SpecError: the file cannot be read or has no rows, or a row is invalid.
    """
    text = read_text(path, form.example, most_bytes=_MOST_BYTES)
    is_json = text.lstrip()[:1] in ("{", "[")
    found = list(_json_rows(text, path, form) if is_json else _csv_rows(text, path, form))
    if not found:
        raise SpecError("there are no rows", where=f"{path}:2", hint=f"rows of {form.example}")
    return found


def _csv_rows(text: str, path: Path, form: RowFormat) -> Iterator[MeasuredRow]:
    table = parse_csv(text, path, form.example)
    column, factor = find_time_column(table.names, path, words=[form.time])
    _check_columns(table.names, form, column, path)
    for row in table.rows:
        yield _row(row.cells, row.cells[column], factor, form, row.place)


def _json_rows(text: str, path: Path, form: RowFormat) -> Iterator[MeasuredRow]:
    if form.time != "tpot":
        hint = f"a CSV file of {form.example}"
        raise SpecError("a JSON file has no training steps", where=f"{path}:1", hint=hint)
    for line, one in _objects(text, path):
        where = f"{path}:{line}"
        if "mean_tpot_ms" not in one:
            hint = "a result of vllm bench serve --save-result"
            raise SpecError("the result has no 'mean_tpot_ms'", where=where, hint=hint)
        try:
            row = _bench_row(one)
        except SpecError as error:
            raise error.at(where) from error
        yield _row(row, str(one["mean_tpot_ms"]), 1e-3, form, where)


def _objects(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each JSON object of a text, with its line.

    The text is an object, a list of objects, or objects one after another as written by
    ``vllm bench serve --append-result``.
    """
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        line = text.count("\n", 0, at) + 1
        try:
            one, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            problem = f"it cannot be read as JSON: {error}"
            raise SpecError(problem, where=f"{path}:{line}", hint="one object a result") from error
        for part in one if isinstance(one, list) else [one]:
            if not isinstance(part, Mapping):
                hint = "a result of vllm bench serve --save-result"
                raise SpecError("a result is no object", where=f"{path}:{line}", hint=hint)
            yield line, part


def _bench_row(one: Mapping[str, Any]) -> dict[str, str]:
    """Return a result of ``vllm bench serve`` as a row of texts.

    Raises:
        SpecError: a count is missing, or requests failed.

    Source:
        vllm-project/vllm, vllm/benchmarks/serve.py: the keys that --save-result writes.
    """
    counts = {}
    for name in ("completed", "total_input_tokens", "total_output_tokens", "max_concurrency"):
        value = one.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            hint = "vllm bench serve --save-result --max-concurrency 32"
            raise SpecError(f"{name} of the result is {value!r}", hint=hint)
        counts[name] = value
    asked = one.get("num_prompts", counts["completed"])
    if asked != counts["completed"]:
        problem = f"{counts['completed']} of {asked} requests were completed"
        raise SpecError(problem, hint="a run without failed requests")
    row = {name: str(value) for name, value in one.items() if isinstance(value, str | int | float)}
    done = counts["completed"]
    row |= {
        "model": str(one.get("model") or one.get("model_id") or ""),
        "batch": str(min(counts["max_concurrency"], done)),
        "isl": str(round(counts["total_input_tokens"] / done)),
        "osl": str(round(counts["total_output_tokens"] / done)),
    }
    if "tp" not in one:
        hint = "vllm bench serve --metadata model=llama3-8b tp=1 weight_format=bf16"
        raise SpecError("the result has no 'tp'", hint=hint)
    return row


def _check_columns(names: Sequence[str], form: RowFormat, time: str, path: Path) -> None:
    needed = ("model", *(name for name, usual in form.options.items() if usual is None))
    check_columns(names, (*needed, *form.required), path, form.example)
    odd = next((name for name in names if name not in (*form.columns, time)), None)
    if odd is not None:
        hint = nearest(odd, form.columns) or f"known: {', '.join(form.columns)}"
        raise SpecError(f"a column cannot be {odd!r}", where=f"{path}:1", hint=hint)


def _row(
    row: Mapping[str, str], time: str, factor: float, form: RowFormat, where: str
) -> MeasuredRow:
    try:
        seconds = _time(time, factor, form)
        options = {
            name: _whole(name, row[name]) if row.get(name) else int(usual or 0)
            for name, usual in form.options.items()
        }
        design = dict(Readings(form.inputs).defaults)
        design |= {
            name: _value(name, row[name], reading)
            for name, reading in form.inputs.items()
            if row.get(name)
        }
    except SpecError as error:
        raise error.at(where) from error
    if not row.get("model"):
        raise SpecError("the row has no model", where=where, hint="llama3-8b")
    return MeasuredRow(
        where=where, model=row["model"], options=options, design=design, seconds=seconds
    )


def _time(text: str, factor: float, form: RowFormat) -> float:
    try:
        seconds = float(text) * factor
    except ValueError:
        seconds = float("nan")
    if not (isfinite(seconds) and seconds > 0):
        raise SpecError(f"{form.time} is {text!r}", hint="a number above 0")
    return seconds


def _whole(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value < 2**31:
        raise SpecError(f"{name} is {text!r}", hint="a whole number from 1")
    return value


def _value(name: str, text: str, reading: Reading) -> Value:
    """Return a cell as the value of an input, which the evaluator's table of inputs accepts."""
    value: Value = text
    if isinstance(reading, Flag):
        value = _WORDS.get(text.lower(), text)
    elif not isinstance(reading, ChoiceInput):
        try:
            value = float(text)
        except ValueError:
            raise SpecError(f"{name} is {text!r}", hint="a number") from None
        value = int(value) if value.is_integer() else value
    Readings({name: reading}).check({name: (value,)})
    return value
