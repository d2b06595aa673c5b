"""Files of runs: tables, exports of studies, and folders of either."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.generic.table_file import locate_row, read_table

MOST_RUNS = 20_000
"""Most runs that a model is fitted to; of more, this many are drawn to bound time and memory."""

_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")
_EXPORT = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsFile:
    """Runs as columns of plain values, of r runs each; ``None`` is an absent value.

    ``metric_units`` and ``input_units`` are those that the file states: an export of a study does.
    ``total`` is the number of runs in the file, of which at most MOST_RUNS are in the columns.
    ``left_out`` is the number of trials without metrics in exports, by state, such as ``failed``.
    ``origins`` has, for each run of a table, its file and its row there, counted from 0.
    """

    path: Path
    digest: str
    columns: Mapping[str, Sequence[Any]]
    total: int
    metric_units: Mapping[str, str] = field(default_factory=dict)
    input_units: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    origins: Sequence[tuple[Path, int]] = ()

    def locate(self, run: int) -> str:
        """Return the place of a run, counted from 0, for messages: file and line if known."""
        return locate_row(*self.origins[run]) if self.origins else f"{self.path}, run {run + 1}"

    @property
    def size(self) -> int:
        """Number of runs in the columns."""
        return len(next(iter(self.columns.values())))

    def find(self, name: str, option: str) -> str:
        """Return the column of a name; in exports of studies ``time`` finds ``bench.time``.

        Args:
            name: the name as the study writes it.
            option: the option that names it, for the error.

        Raises:
            SpecError: there is no such column, or several.
        """
        if name in self.columns:
            return name
        ends = [one for one in self.metric_units if one.rpartition(".")[2] == name]
        if len(ends) == 1:
            return ends[0]
        problem = f"{self.path} has no column {name!r}, which {option} names"
        if ends:
            problem = f"{self.path} has several columns {name!r}: {', '.join(ends)}"
        raise SpecError(problem, hint=nearest(name, [*self.columns]), part=[option])


def read_runs(file: str) -> RunsFile:
    """Read runs from a table, an exported study, or a folder of such files with equal columns.

    Raises:
        SpecError: there is no such file, it cannot be read, or it has no run.
    """
    path = Path(file)
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == _EXPORT and path.is_file():
        return _read_export(path)
    table = read_table(file)
    total = table.arrow.num_rows
    arrow, rows = table.arrow, np.arange(total)
    if total > MOST_RUNS:
        rows = draw_runs(total)
        arrow = arrow.take(rows)
    columns = {name: arrow.column(name).to_pylist() for name in table.columns}
    return RunsFile(
        path=path,
        digest=table.digest,
        columns=columns,
        total=total,
        origins=[(path, row) for row in rows.tolist()],
    )


def draw_runs(total: int) -> Any:
    """Return the sorted indices of a random sample of the runs, drawn with seed 0."""
    return np.sort(np.random.default_rng(0).permutation(total)[:MOST_RUNS])


def _read_folder(folder: Path) -> RunsFile:
    names = (*_TABLES, _EXPORT)
    files = sorted(one for one in folder.iterdir() if one.name.endswith(names))
    if not files:
        raise SpecError(
            f"{folder} has no file of runs", hint=f"known extensions: {', '.join(names)}"
        )
    parts = [read_runs(str(one)) for one in files]
    first = parts[0]
    for one in parts[1:]:
        odd = sorted(first.columns.keys() ^ one.columns.keys())
        if odd:
            raise SpecError(
                f"{first.path} and {one.path} do not have the same columns: {', '.join(odd[:5])}",
                hint="keep only files of the same space and metrics in the folder",
            )
        if (one.metric_units, one.input_units) != (first.metric_units, first.input_units):
            raise SpecError(
                f"{first.path} and {one.path} state different units",
                hint="export studies with the same units",
            )
    columns = {name: [v for one in parts for v in one.columns[name]] for name in first.columns}
    total, size = sum(one.total for one in parts), len(next(iter(columns.values())))
    origins = [each for one in parts for each in one.origins]
    if len(origins) < size:  # runs of exports have no lines
        origins = []
    if size > MOST_RUNS:
        kept = draw_runs(size).tolist()
        columns = {name: [values[at] for at in kept] for name, values in columns.items()}
        origins = [origins[at] for at in kept if origins]
    return RunsFile(
        path=folder,
        digest=_digest(*(one.digest for one in parts)),
        columns=columns,
        total=total,
        metric_units=first.metric_units,
        input_units=first.input_units,
        left_out=sum((Counter(one.left_out) for one in parts), Counter()),
        origins=origins,
    )


def _read_export(path: Path) -> RunsFile:
    """Read the finished trials of an exported study; the file is data, and nothing of it runs."""
    content = path.read_bytes()
    try:
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        header = lines[0]["study"]
        trials = [line["trial"] for line in lines if "trial" in line]
        done = [one for one in trials if one["state"] == "done"]
        rows = [{**one["design"], **one["metrics"]} for one in done]
        metric_units = {name: str(one["unit"]) for name, one in header["metrics"].items()}
        input_units = {name: str(one["unit"]) for name, one in header["parameters"].items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise SpecError(
            f"{path} is no export of a study", hint=f"dse studies export NAME -o {path.name}"
        ) from error
    if not rows:
        raise SpecError(f"{path} has no finished trial", hint="export the study when it has run")
    total = len(rows)
    if total > MOST_RUNS:
        rows = [rows[at] for at in draw_runs(total).tolist()]
    names = [*input_units, *metric_units]
    columns = {name: [row.get(name) for row in rows] for name in names}
    return RunsFile(
        path=path,
        digest=_digest(content.decode("utf-8", "replace")),
        columns={name: values for name, values in columns.items() if any_present(values)},
        total=total,
        metric_units=metric_units,
        input_units=input_units,
        left_out=Counter(one["state"] for one in trials if one["state"] != "done"),
    )


def any_present(values: Sequence[Any]) -> bool:
    """Return whether any value of a column is present."""
    return any(value is not None for value in values)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
