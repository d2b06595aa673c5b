"""Measured scaling of tasks, seconds by cores, and Amdahl's law fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask
from dse.errors import SpecError, nearest
from dse_evaluators.generic.table_file import TableFile, read_table

_COLUMNS = ("task", "cores", "seconds")
_SPLITS = ("fit", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amdahl:
    """Amdahl's law: seconds on p cores are ``serial_s + parallel_s / p``."""

    serial_s: float
    parallel_s: float

    def seconds(self, cores: Floats) -> Floats:
        """Return the time on each number of cores, (n,)."""
        return self.serial_s + self.parallel_s / cores


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScaling:
    """Seconds of one task by number of cores, each number once; ``is_test`` rows are not fitted."""

    cores: Floats  # (r,)
    seconds: Floats  # (r,)
    is_test: Mask  # (r,)

    def look_up(self, cores: Floats) -> Floats:
        """Return the recorded time on each number of cores, (n,); NaN where there is none."""
        recorded = dict(zip(self.cores.tolist(), self.seconds.tolist(), strict=True))
        return np.array([recorded.get(float(one), np.nan) for one in cores])

    def fit(self) -> Amdahl:
        """Return Amdahl's law with the least squared relative error, without negative times.

        Source:
            Amdahl: Validity of the single processor approach, 1967.
        """
        from scipy.optimize import nnls

        kept = ~self.is_test
        terms = np.stack([np.ones(int(kept.sum())), 1 / self.cores[kept]], axis=1)
        found, _ = nnls(terms / self.seconds[kept, None], np.ones(len(terms)))
        return Amdahl(serial_s=float(found[0]), parallel_s=float(found[1]))

    def error_of(self, law: Amdahl) -> Floats:
        """Return the relative errors of a law on the rows that it was not fitted to, (t,)."""
        measured = self.seconds[self.is_test]
        return np.abs(law.seconds(self.cores[self.is_test]) / measured - 1)


def read_scaling(file: str) -> tuple[Mapping[str, TaskScaling], str]:
    """Return the tasks of a file by name, and a hash of the file.

    Args:
        file: a CSV or Parquet file with the columns ``task``, ``cores`` and ``seconds``, and
            optionally ``split``: ``fit`` or ``test``.

    Raises:
        SpecError: the file cannot be read, a cell is invalid, or a task has one row twice.
    """
    table = read_table(file)
    table.check_columns("a table of scaling", _COLUMNS)
    names = [str(name) for name in table.values("task")]
    cores, seconds = table.numbers("cores"), table.numbers("seconds")
    _check_rows(table, names, cores, seconds)
    is_test = np.array([one == "test" for one in _splits(table, len(names))])
    places = {task: np.array([name == task for name in names]) for task in dict.fromkeys(names)}
    found = {
        task: TaskScaling(cores=cores[rows], seconds=seconds[rows], is_test=is_test[rows])
        for task, rows in places.items()
    }
    for task, one in found.items():
        if (~one.is_test).sum() < 2:
            problem = f"{table.path}: {task} has {(~one.is_test).sum()} rows to fit a law to"
            raise SpecError(problem, hint="measure it on two numbers of cores at least")
    return found, table.digest


def _check_rows(table: TableFile, names: Sequence[str], cores: Floats, seconds: Floats) -> None:
    """Check the cells of a table.

    Raises:
        SpecError: a task is no name, a number is out of range, or a row stands twice.
    """
    seen = dict[tuple[str, float], int]()
    for row, (name, count, time_s) in enumerate(zip(names, cores, seconds, strict=True), start=1):
        where = f"{table.path}, row {row}"
        if not name.isidentifier():
            hint = "write letters, digits and underscores, such as solver"
            raise SpecError(f"{where}: task is {name!r}", hint=hint)
        if count < 1 or count % 1:
            raise SpecError(f"{where}: cores is {count:g}", hint="write a whole number from 1")
        if time_s <= 0:
            raise SpecError(f"{where}: seconds is {time_s:g}", hint="write a time above 0")
        if (name, float(count)) in seen:
            problem = f"{where}: {name} on {count:g} cores stands in row {seen[name, count]}, too"
            raise SpecError(problem, hint="keep one row, such as the median of repeats")
        seen[name, float(count)] = row


def _splits(table: TableFile, size: int) -> Sequence[object]:
    if "split" not in table.columns:
        return ["fit"] * size
    found = table.values("split")
    for row, one in enumerate(found, start=1):
        if one not in _SPLITS:
            hint = nearest(str(one), _SPLITS)
            raise SpecError(f"{table.path}, row {row}: split is {one!r}", hint=hint)
    return found
