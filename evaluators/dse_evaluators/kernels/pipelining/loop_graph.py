"""Loop as a graph of operations: its file, and lower bounds of its initiation interval."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.errors import SpecError, nearest

_TABLE = Path(__file__).with_name("loops.csv")
_NUMBERS = ("latency", "occupancy", "blocks", "registers")
_REQUIRED = ("operation", "unit", "latency")
_LONGEST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOperation:
    """Operation in the body of a loop, with the functional unit that it occupies.

    Args:
        name: name of the operation.
        unit: the functional unit that it occupies.
        latency: cycles until its result can be used.
        occupancy: cycles for which it occupies its unit.
        blocks: cycles for which its warp can issue no other operation.
        registers: registers that hold its result.
    """

    name: str
    unit: str
    latency: int
    occupancy: int
    blocks: int
    registers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """Dependence in a loop: ``use`` reads the result of ``source`` of an earlier iteration.

    That iteration is ``distance`` iterations before.
    """

    source: int
    use: int
    distance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopGraph:
    """Data-dependence graph of a loop: operations of the body, and dependences between them."""

    operations: tuple[LoopOperation, ...]
    dependences: tuple[Dependence, ...]

    @property
    def sequential(self) -> int:
        """Cycles of one iteration if its operations run one after another."""
        return sum(max(one.latency, one.occupancy) for one in self.operations)

    @property
    def resource_bound(self) -> int:
        """Least initiation interval for which each unit has enough cycles."""
        busy: dict[str, int] = {}
        for one in self.operations:
            busy[one.unit] = busy.get(one.unit, 0) + one.occupancy
        return max(*busy.values(), 1)

    @property
    def recurrence_bound(self) -> int:
        """Least initiation interval that the cycles of dependences allow.

        Source:
            Rau: Iterative Modulo Scheduling, 1994, section 2.2 (MinDist).
        """
        low, high = 1, max(self.sequential, 1)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._allows(middle) else (middle + 1, high)
        return low

    def _allows(self, interval: int) -> bool:
        """Return whether no cycle of dependences needs more than the interval."""
        longest = np.full((len(self.operations),) * 2, -np.inf)
        for one in self.dependences:
            needs = self.operations[one.source].latency - interval * one.distance
            longest[one.source, one.use] = max(longest[one.source, one.use], needs)
        for over in range(len(self.operations)):
            through = longest[:, over, None] + longest[None, over, :]
            np.maximum(longest, through, out=longest)
        return bool((np.diag(longest) <= 0).all())


def shipped_loops() -> tuple[str, ...]:
    """Return the names of the loops of the table that comes with the evaluator."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(dict.fromkeys(row["loop"] for row in csv.DictReader(file)))


def load_loop(value: str) -> LoopGraph:
    """Return a built-in loop by name, or the loop that a user's CSV file describes.

    Args:
        value: the name, or the path of a file with a row for each operation and the columns
            operation, unit, latency, occupancy, blocks, registers and after.

    Raises:
        SpecError: there is no such loop or file, or a row is not valid.
    """
    known = shipped_loops()
    if value in known:
        return _graph([row for row in _rows(_TABLE) if row[1]["loop"] == value], _TABLE)
    if not value.endswith(".csv"):
        hint = f"{nearest(value, known)}; a loop of yours is a CSV file, such as loop: ./loop.csv"
        raise SpecError(f"there is no loop {value!r}", hint=hint, part=["loop"])
    return _graph(_rows(Path(value)), Path(value))


def _rows(path: Path) -> list[tuple[int, Mapping[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
            columns = reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{path} cannot be read: {error}", part=["loop"]) from error
    missing = [one for one in _REQUIRED if one not in columns]
    if missing or not rows:
        lack = f"column {missing[0]!r}" if missing else "rows"
        hint = f"columns: {', '.join((*_REQUIRED, *_NUMBERS[1:], 'after'))}"
        raise SpecError(f"{path} has no {lack}", hint=hint, part=["loop"])
    return [(line, {k: (v or "").strip() for k, v in row.items() if k}) for line, row in rows]


def _graph(rows: Sequence[tuple[int, Mapping[str, str]]], path: Path) -> LoopGraph:
    operations = [_operation(row, f"{path}:{line}") for line, row in rows]
    places: dict[str, int] = {}
    for place, (one, (line, _)) in enumerate(zip(operations, rows, strict=True)):
        if one.name in places:
            raise SpecError(f"there are two operations {one.name!r}", where=f"{path}:{line}")
        places[one.name] = place
    dependences = [
        _dependence(word, place, places, f"{path}:{line}")
        for place, (line, row) in enumerate(rows)
        for word in row.get("after", "").split()
    ]
    graph = LoopGraph(operations=tuple(operations), dependences=tuple(dependences))
    if not graph._allows(_LONGEST * len(rows)):  # noqa: SLF001 - of this module
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
    name, _, distance = word.partition("/")
    if name not in places:
        raise SpecError(f"there is no operation {name!r}", where=where, hint=nearest(name, places))
    if distance and not distance.isdecimal():
        raise SpecError(f"the distance {distance!r} is no number", where=where, hint=f"{name}/1")
    return Dependence(source=places[name], use=use, distance=int(distance or 0))
