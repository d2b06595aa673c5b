"""Reader of measured collectives: the output of NCCL's or RCCL's tests, or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from dse.errors import SpecError, nearest
from dse_evaluators.clusters.collectives import COLLECTIVES, Collective
from dse_evaluators.clusters.measured_rows import UNITS

EXAMPLE = "collective,ranks,size_bytes,time_us"
"""Header of a CSV file, for messages."""

PROGRAMS = {
    "all_reduce_perf": "all_reduce",
    "all_gather_perf": "all_gather",
    "reduce_scatter_perf": "reduce_scatter",
    "alltoall_perf": "all_to_all",
    "sendrecv_perf": "send_recv",
}
"""Collectives by the names of the programs of NCCL's tests."""

_MOST_BYTES = 1 << 26
_COLUMNS = ("collective", "ranks", "nodes", "size_bytes")
_TIME = re.compile(r"time(?:_(\w+))?")
_PROGRAM = re.compile(r"\b(\w+_perf)(?:_mpi)?\b")
_DEVICE = re.compile(r"#?\s*Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\b")
_LINE = re.compile(r"^\s*(?:\[\d+(?:,\d+)?\](?:<\w+>:?)?)?\s?")
"""Beginning of a line, which MPI launchers mark with the rank that printed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCollective:
    """Measured collective: line in the file, number of ranks and nodes, array [B] and time [s]."""

    where: str
    collective: Collective
    ranks: int
    nodes: int
    size_bytes: int
    seconds: float


def read_measured_collectives(path: Path) -> list[MeasuredCollective]:
    """Read measured collectives from a file: the printed output of NCCL's tests, or CSV.

    A file may have the output of several programs, one after another. Of the in-place and
    out-of-place times that NCCL's tests print, the latter is taken. The CSV columns are
    ``collective``, ``ranks``, ``size_bytes``, a time with its unit such as ``time_us``, and
    optionally ``nodes``.

    Args:
        path: the file.

    Raises:
        SpecError: the file cannot be read or has no collectives, or a row is invalid.
    """
    hint = f"the output of all_reduce_perf, or a CSV file of {EXAMPLE}"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SpecError(f"{path} is larger than 64 MiB", hint=hint)
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {path}", hint=hint) from error
    except (OSError, UnicodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}", hint="a text file") from error
    is_printed = "busbw" in text or "#" in text[:1]
    found = list(_printed(text, path) if is_printed else _rows(text, path))
    if not found:
        raise SpecError("there are no collectives", where=f"{path}:1", hint=hint)
    return found


@dataclass(slots=True)
class _Run:
    """State of one program's output while its lines are read."""

    program: str = ""
    ranks: list[int] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    time: int | None = None
    """Place of the time among the cells of a row."""


def _printed(text: str, path: Path) -> Iterator[MeasuredCollective]:
    """Yield the collectives that NCCL's tests print.

    Source:
        NVIDIA/nccl-tests, src/util.cu (writeDeviceReport, writeBenchmarkLinePreamble).
    """
    run = _Run()
    for number, raw in enumerate(text.splitlines(), 1):
        line = _LINE.sub("", raw, count=1)
        where = f"{path}:{number}"
        cells = line.lstrip("# ").split()
        device = _DEVICE.match(line)
        if "busbw" in cells and "size" in cells:
            run.time = cells.index("time") if "time" in cells else None
        elif device:
            if run.time is not None:
                run = _Run(program=run.program if not run.ranks else "")
            run.ranks.append(int(device[1]))
            run.hosts.add(device[2])
        elif (named := _PROGRAM.search(line)) and not _is_row(cells):
            if run.time is not None:
                run = _Run()
            run.program = named[1]
        elif run.time is not None and not line.startswith("#") and _is_row(cells):
            yield _collective(run, cells, where, path)


def _is_row(cells: Sequence[str]) -> bool:
    return len(cells) > 4 and cells[0].isdigit() and cells[1].isdigit()


def _collective(run: _Run, cells: Sequence[str], where: str, path: Path) -> MeasuredCollective:
    """Return the collective of a printed row.

    Raises:
        SpecError: the program or its ranks are not known, results were wrong, or a cell is invalid.
    """
    program = run.program or next((name for name in PROGRAMS if name in path.stem), "")
    if program not in PROGRAMS:
        problem = f"the program is {program}" if program else "nothing names the program"
        hint = f"its command line, such as {', '.join(PROGRAMS)}, before the output"
        raise SpecError(problem, where=where, hint=nearest(program, PROGRAMS) or hint)
    count = len(run.ranks)
    if not count:
        hint = "keep the lines '#  Rank  0 Group  0 Pid ... on HOST device 0'"
        raise SpecError("no line names the ranks", where=where, hint=hint)
    if len(set(run.ranks)) < count:
        problem = f"{count} processes were {len(set(run.ranks))} ranks: each measured alone"
        raise SpecError(problem, where=where, hint="compile NCCL's tests with MPI=1")
    try:
        row = {"size_bytes": cells[0], "time": cells[run.time or 0]}
        wrong = cells[(run.time or 0) + 3]
    except IndexError:
        hint = "a complete line"
        raise SpecError("the row is cut off", where=where, hint=hint) from None
    if wrong.isdigit() and int(wrong):
        problem = f"{wrong} results of {program} were wrong"
        raise SpecError(problem, where=where, hint="repair the run: a wrong result has no time")
    return MeasuredCollective(
        where=where,
        collective=_word(PROGRAMS[program], where),
        ranks=count,
        nodes=len(run.hosts),
        size_bytes=_whole("size", row["size_bytes"], where, least=0),
        seconds=_seconds("time", row["time"], 1e-6, where),
    )


def _rows(text: str, path: Path) -> Iterator[MeasuredCollective]:
    rows = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    try:
        names = list(rows.fieldnames or ())
        column, factor = _time_column(names)
    except (csv.Error, SpecError) as error:
        problem = error.problem if isinstance(error, SpecError) else f"it is no CSV: {error}"
        hint = f"a header such as {EXAMPLE}, or the output of all_reduce_perf"
        raise SpecError(problem, where=f"{path}:1", hint=hint) from error
    for row in rows:
        where = f"{path}:{rows.line_num}"
        if None in row or None in row.values():
            problem = "the row has another number of cells than the header"
            raise SpecError(problem, where=where, hint="check commas")
        yield MeasuredCollective(
            where=where,
            collective=_word(row["collective"], where),
            ranks=_whole("ranks", row["ranks"], where, least=2),
            nodes=_whole("nodes", row.get("nodes") or "1", where, least=1),
            size_bytes=_whole("size_bytes", row["size_bytes"], where, least=0),
            seconds=_seconds(column, row[column], factor, where),
        )


def _time_column(names: Sequence[str]) -> tuple[str, float]:
    """Return the name of the time's column, and its unit in seconds.

    Raises:
        SpecError: a column is missing or unknown, there are two times, or the time has no unit.
    """
    times = [name for name in names if _TIME.fullmatch(name)]
    for name in ("collective", "ranks", "size_bytes"):
        if name not in names:
            raise SpecError(f"there is no column {name!r}")
    if len(times) != 1:
        raise SpecError(f"there are two times: {', '.join(times)}" if times else "there is no time")
    unit = times[0].removeprefix("time").removeprefix("_")
    if unit not in UNITS:
        raise SpecError(f"the unit of column {times[0]!r} is {unit or 'missing'}")
    odd = next((name for name in names if name not in (*_COLUMNS, times[0])), None)
    if odd is not None:
        raise SpecError(f"a column cannot be {odd!r}")
    return times[0], UNITS[unit]


def _word(text: str, where: str) -> Collective:
    found = next((one for one in COLLECTIVES if one == text), None)
    if found is None:
        hint = nearest(text, COLLECTIVES) or ", ".join(COLLECTIVES)
        raise SpecError(f"collective cannot be {text!r}", where=where, hint=hint)
    return found


def _whole(name: str, text: str, where: str, *, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not least <= value < 2**50:
        raise SpecError(f"{name} is {text!r}", where=where, hint=f"a whole number from {least}")
    return value


def _seconds(name: str, text: str, factor: float, where: str) -> float:
    try:
        value = float(text) * factor
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and value > 0):
        raise SpecError(f"{name} is {text!r}", where=where, hint="a number above 0")
    return value
