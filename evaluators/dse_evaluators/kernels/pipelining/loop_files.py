"""Loops of the shipped table, of CSV files and of Triton's modulo scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_records import read_rows
from dse_evaluators.csv_files.csv_rows import CsvRow, read_csv_rows
from dse_evaluators.kernels.pipelining.loop_graph import Dependence, LoopGraph, LoopOperation
from dse_evaluators.kernels.pipelining.triton_graph import read_triton_graph

_TABLE = Path(__file__).with_name("loops.csv")
_NUMBERS = ("latency", "occupancy", "blocks", "registers")
_REQUIRED = ("operation", "unit", "latency")
_LONGEST = 100_000


def shipped_loops() -> tuple[str, ...]:
    """Return the names of the loops of the table that comes with the evaluator."""
    return tuple(dict.fromkeys(row["loop"] for row in read_rows(_TABLE)))


def load_loop(value: str) -> LoopGraph:
    """Return a built-in loop by name, or the loop that a file of a user describes.

    Args:
        value: the name, or the path of a CSV file with a row for each operation and the columns
            operation, unit, latency, occupancy, blocks, registers and after, or of a JSON file
            of Triton's modulo scheduler (``TRITON_MODULO_DUMP_DDG``).

    Raises:
        SpecError: there is no such loop or file, or a row is not valid.
    """
    known = shipped_loops()
    if value in known:
        return _graph([row for row in _read_rows(_TABLE) if row.cells["loop"] == value], _TABLE)
    if value.endswith(".json"):
        return read_triton_graph(Path(value))
    if not value.endswith(".csv"):
        hint = f"{nearest(value, known)}; a loop of yours is a CSV file, such as loop: ./loop.csv"
        raise SpecError(f"there is no loop {value!r}", hint=hint, part=["loop"])
    return _graph(_read_rows(Path(value)), Path(value))


def _read_rows(path: Path) -> list[CsvRow]:
    example = ",".join((*_REQUIRED, *_NUMBERS[1:], "after"))
    return list(read_csv_rows(path, _REQUIRED, example=example, part=["loop"]))


def _graph(rows: Sequence[CsvRow], path: Path) -> LoopGraph:
    operations = [_operation(row.cells, row.place) for row in rows]
    places: dict[str, int] = {}
    for place, (one, row) in enumerate(zip(operations, rows, strict=True)):
        if one.name in places:
            raise SpecError(f"there are two operations {one.name!r}", where=row.place)
        places[one.name] = place
    dependences = [
        _dependence(word, place, places, row.place)
        for place, row in enumerate(rows)
        for word in row.cells.get("after", "").split()
    ]
    graph = LoopGraph(operations=tuple(operations), dependences=tuple(dependences))
    if not graph.allows(_LONGEST * len(rows)):
        raise SpecError(
            f"operations of {path} wait for one another in one iteration",
            hint="a result of an earlier iteration is written as name/1",
        )
    return graph


def _operation(row: Mapping[str, str], where: str) -> LoopOperation:
    usual = {"latency": "", "occupancy": "1", "blocks": row["latency"], "registers": "0"}
    found: dict[str, int] = {}
    for name in _NUMBERS:
        text = row.get(name) or usual[name]
        if not text.isdecimal() or int(text) > _LONGEST:
            raise SpecError(
                f"the {name} {text!r} is no number of at most {_LONGEST:,}", where=where
            )
        found[name] = int(text)
    return LoopOperation(name=row["operation"], unit=row["unit"], **found)


def _dependence(word: str, use: int, places: Mapping[str, int], where: str) -> Dependence:
    name, _, rest = word.partition("/")
    distance, _, latency = rest.partition(":")
    if name not in places:
        raise SpecError(f"there is no operation {name!r}", where=where, hint=nearest(name, places))
    if distance and not distance.isdecimal():
        raise SpecError(f"the distance {distance!r} is no number", where=where, hint=f"{name}/1")
    if latency and not latency.isdecimal():
        hint = f"{word.rpartition(':')[0]}:9 is ready 9 cycles after its start"
        raise SpecError(f"the latency {latency!r} is no number", where=where, hint=hint)
    return Dependence(
        source=places[name],
        use=use,
        distance=int(distance or 0),
        latency=int(latency) if latency else None,
    )
