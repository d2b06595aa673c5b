"""Reader of measured collectives: the output of NCCL's or RCCL's tests, or CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dse.errors import SpecError, nearest
from dse_evaluators.clusters.collectives import COLLECTIVES, Collective
from dse_evaluators.csv_files.csv_rows import (
    CsvRow,
    check_columns,
    find_time_column,
    parse_csv,
    parse_positive,
    parse_whole,
    read_text,
)

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
_REQUIRED = ("collective", "ranks", "size_bytes")
_EXAMPLES = f"{EXAMPLE}, or the output of all_reduce_perf"
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
    text = read_text(path, _EXAMPLES, most_bytes=_MOST_BYTES)
    is_printed = "busbw" in text or "#" in text[:1]
    found = list(_printed(text, path) if is_printed else _rows(text, path))
    if not found:
        hint = f"a CSV file of {_EXAMPLES}"
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
        row = CsvRow(where, {"size": cells[0], "time": cells[run.time or 0]})
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
        size_bytes=parse_whole(row, "size", 0),
        seconds=parse_positive(row, "time") * 1e-6,
    )


def _rows(text: str, path: Path) -> Iterator[MeasuredCollective]:
    table = parse_csv(text, path, _EXAMPLES)
    check_columns(table.names, _REQUIRED, path, _EXAMPLES)
    column, factor = find_time_column(table.names, path)
    known = (*_REQUIRED, "nodes", column)
    odd = next((name for name in table.names if name not in known), None)
    if odd is not None:
        hint = nearest(odd, known) or f"columns are {_EXAMPLES}"
        raise SpecError(f"a column cannot be {odd!r}", where=f"{path}:1", hint=hint)
    for row in table.rows:
        yield MeasuredCollective(
            where=row.place,
            collective=_word(row.cells["collective"], row.place),
            ranks=parse_whole(row, "ranks", 2),
            nodes=parse_whole(row, "nodes", 1) if row.cells.get("nodes") else 1,
            size_bytes=parse_whole(row, "size_bytes", 0),
            seconds=parse_positive(row, column) * factor,
        )


def _word(text: str, where: str) -> Collective:
    found = next((one for one in COLLECTIVES if one == text), None)
    if found is None:
        hint = nearest(text, COLLECTIVES) or ", ".join(COLLECTIVES)
        raise SpecError(f"collective cannot be {text!r}", where=where, hint=hint)
    return found
