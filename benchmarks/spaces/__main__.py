"""Our spaces against those of other tools: time to count, to list and to draw 10,000 designs.

Run: python benchmarks/spaces [--quick] [--limit SECONDS] [--space NAME ...] [-o FILE.csv]

Each cell is measured in its own process, on one thread, from a space stated in memory to the
answer: imports are not timed. Short cells are repeated and the median is told.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cell
from backtracking import BACKTRACKING
from cases import CASES, QUICK
from chain_of_trees import CHAIN_OF_TREES
from forbidden_clauses import FORBIDDEN_CLAUSES
from ours import OURS
from rejection import REJECTION
from rich.console import Console
from rich.table import Table
from summary import summary
from tool import MOST

TOOLS = {t.name: t for t in (OURS, BACKTRACKING, CHAIN_OF_TREES, FORBIDDEN_CLAUSES, REJECTION)}
QUESTIONS = ("count", "list", "draw")
COLUMNS = ("space", "tool", "question", "seconds", "designs", "verdict")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_START_S = 120
"""A process may take so long to start and to check, beside the limit of what is timed."""


def main() -> None:
    """Measure every cell and print one table for each space."""
    chosen = _arguments()
    if chosen.cell:
        cell.run(TOOLS[chosen.cell[0]], chosen.cell[1], chosen.cell[2], chosen.limit)
        return
    names = chosen.space or (QUICK if chosen.quick else tuple(CASES))
    console, rows = Console(), list[dict[str, Any]]()
    for name in names:
        mine = list(_measured(name, chosen.tool or list(TOOLS), chosen.limit))
        console.print(_table(name, mine))
        rows += mine
    for line in summary(rows, OURS.name):
        console.print(line)
    if chosen.o is not None:
        with chosen.o.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="")
            writer.writeheader()
            writer.writerows(rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a cell (60)")
    parser.add_argument("--space", action="append", choices=CASES, help="only this space")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool")
    parser.add_argument("-o", type=Path, help="where to write the cells as CSV")
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(name: str, tools: list[str], limit_s: float) -> Iterator[dict[str, Any]]:
    for tool in tools:
        for question in QUESTIONS:
            answer = _answer(tool, name, question, limit_s)
            yield {"space": name, "tool": tool, "question": question, **answer}


def _answer(tool: str, name: str, question: str, limit_s: float) -> dict[str, Any]:
    """What the cell's process printed, or why it printed nothing."""
    here = str(Path(__file__).parent)
    command = [sys.executable, here, "--limit", str(limit_s), "--cell", tool, name, question]
    alone = {**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=alone,
            timeout=limit_s + _START_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"verdict": f"over {limit_s:g} s"}
    if done.returncode == -14:
        return {"verdict": f"over {limit_s:g} s"}
    if done.returncode:
        raised = [x for x in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", x)]
        last = raised[-1] if raised else f"exit code {done.returncode}"
        return {"verdict": re.sub(r"^[\w.]+\.", "", last)}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    statement = CASES[name]
    title = f"{name}: {statement.designs():,} legal of {statement.combinations:,} combinations"
    table = Table(title=title, caption=statement.source, title_justify="left")
    table.add_column("tool", no_wrap=True)
    listed = f"list {MOST:,}" if statement.designs() > cell.MANY else "list all"
    for words in ("count", listed, f"draw {cell.DRAWN:,}"):
        table.add_column(words, justify="right")
    for tool in dict.fromkeys(row["tool"] for row in rows):
        table.add_row(tool, *(_told(row) for row in rows if row["tool"] == tool))
    return table


def _told(row: dict[str, Any]) -> str:
    """A cell in words: its time, and what is wrong if anything is."""
    if "seconds" not in row:
        return f"[dim]{row['verdict'].partition(':')[0]}[/dim]"
    wrong = "" if row["verdict"] == "ok" else f" [red]{row['verdict']}[/red]"
    return f"{_time(row['seconds'])}{wrong}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


if __name__ == "__main__":
    main()
