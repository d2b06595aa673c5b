"""Table of block latencies: a CSV file that evaluations read, and extend by what they measure."""

from __future__ import annotations

import csv
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dse_evaluators.csv_files.csv_rows import parse_number, parse_positive, read_csv_rows

HEADER = ("block", "batch", "machine", "latency", "stderr")
_NEEDED = ("block", "latency")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBlock:
    """Measured latency of a network block in seconds, and its standard error."""

    latency_s: float
    stderr_s: float


def read_block_table(path: Path, batch: int, machine: str) -> dict[str, MeasuredBlock]:
    """Return the time of each block of a table, by its text; the last row of a block counts.

    Rows of another batch or machine are left out; a table without these columns is valid for all.

    Raises:
        SpecError: the file lacks a column, or a latency is no number above 0.
    """
    rows = read_csv_rows(path, _NEEDED, example=f"{','.join(HEADER)}; latency is in seconds")
    wanted = {"batch": str(batch), "machine": machine}
    return {
        " ".join(row.cells["block"].split()): MeasuredBlock(
            latency_s=parse_positive(row, "latency"),
            stderr_s=parse_number(row, "stderr", 0) if row.cells.get("stderr") else 0.0,
        )
        for row in rows
        if all((row.cells.get(name) or value) == value for name, value in wanted.items())
    }


def append_block(path: Path, block: str, batch: int, machine: str, time: MeasuredBlock) -> None:
    """Add a measured block latency to a table file; create the file if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        if is_new:
            writer.writerow(HEADER)
        writer.writerow([block, batch, machine, f"{time.latency_s:.6g}", f"{time.stderr_s:.3g}"])


@lru_cache(maxsize=1)
def this_machine() -> str:
    """Return the processor and PyTorch's version, for which a measured latency is valid."""
    from importlib.metadata import version

    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (one.partition(":")[2].strip() for one in lines if one.startswith("model name"))
    return f"{next(names, platform.processor())}; torch {version('torch')}"


def sum_times(times: Mapping[str, MeasuredBlock], blocks: tuple[str, ...]) -> MeasuredBlock:
    """Return the total time of blocks; the errors of repeated blocks are equal and add up."""
    each = [times[one] for one in blocks]
    counts = {one: blocks.count(one) for one in blocks}
    variance = sum((count * times[one].stderr_s) ** 2 for one, count in counts.items())
    return MeasuredBlock(latency_s=sum(one.latency_s for one in each), stderr_s=variance**0.5)
