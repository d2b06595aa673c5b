"""How fast studies are stored and read, and how much memory it takes; Optuna in the same run.

Run: python benchmarks/storage [--trials 1000000] [--peer-trials 100000] [--batch 1000]
                               [--studies 200] [--only large|many|peer] [--folder FOLDER] [-o FILE]

Prints CSV. Each deed has a process of its own, on one thread, with a new SQLite database in the
folder, or in that for temporary files: how fast trials are added one by one is its disk's figure.
``seconds`` pass on the clock; ``cpu_s``, and ``memory_mib`` at its most, are those of the whole
process, imports included.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ("tool", "what", "trials", "seconds", "trials_per_s", "cpu_s", "memory_mib")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_DEED = (sys.executable, str(Path(__file__).parent / "deed.py"))
_DSE = (sys.executable, "-m", "dse")


@dataclass(frozen=True)
class Spent:
    """What a process printed and used."""

    said: str
    seconds: float
    cpu_s: float
    memory_mib: float


def main() -> None:
    """Measure everything; a row is printed as soon as it is known."""
    chosen = _arguments()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        out = sys.stdout if chosen.o is None else chosen.o.open("w", newline="")
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for part in _PARTS if chosen.only is None else (chosen.only,):
            for row in _PARTS[part](Path(name), chosen):
                writer.writerow(row)
                out.flush()


def _large(folder: Path, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One large study: written, read by commands, checked, and exported in both forms."""
    trials, batch = chosen.trials, chosen.batch
    where = ("--storage", f"sqlite:///{folder}/stored.db")
    half = trials // 2
    yield from _deed("dse", "ours", "fill", folder, "many", trials, batch)
    yield _command("status", trials, "many", *where)
    yield _command("front", trials, "many", *where)
    for form in ("csv", "json"):
        file = str(folder / f"trials.{form}")
        yield _command("trials", trials, "many", *where, "-o", file, what=f"dse trials as {form}")
    for form in ("jsonl", "parquet"):
        words = "export", "many", "-o", str(folder / f"many.{form}"), *where
        what = f"dse studies export as {form}"
        yield _command("studies", trials, *words, what=what)
        yield _command("studies", trials, *words, "--salvage", what=f"{what}, salvaged")
    yield _command("doctor", trials, *where)
    for name in ("one", "other"):
        _spent(_DEED, "ours", "fill", folder, name, half, batch)
    yield _command("compare", 2 * half, "one", "other", *where)


def _many(folder: Path, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Many studies with as many trials in all: listed."""
    apart = folder / "apart"
    apart.mkdir()
    _spent(_DEED, "ours", "fill_many", apart, chosen.studies, chosen.trials)
    where = ("--storage", f"sqlite:///{apart}/stored.db")
    yield _command("studies", chosen.trials, "list", *where, what="dse studies list")


def _peer(folder: Path, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A study that our storage and Optuna's open."""
    peer_trials = chosen.peer_trials
    _spent(_DEED, "ours", "fill", folder, "few", peer_trials, chosen.batch)
    yield from _deed("dse", "ours", "open_", folder, "few")
    yield from _deed("optuna", "peer", "fill", folder, peer_trials)
    yield from _deed("optuna", "peer", "open_", folder)


_PARTS = {"large": _large, "many": _many, "peer": _peer}


def _deed(tool: str, *words: object) -> Iterator[dict[str, Any]]:
    """A row for each part of a deed; CPU time and memory are told with the last."""
    spent = _spent(_DEED, *words)
    parts = [json.loads(line) for line in spent.said.splitlines()]
    for place, (what, trials, seconds) in enumerate(parts):
        last = spent if place == len(parts) - 1 else None
        yield _row(tool, what, trials, seconds, last)


def _command(verb: str, trials: int, *words: str, what: str = "") -> dict[str, Any]:
    spent = _spent(_DSE, verb, *words)
    return _row("dse", what or f"dse {verb}", trials, spent.seconds, spent)


def _row(tool: str, what: str, trials: int, seconds: float, spent: Spent | None) -> dict[str, Any]:
    return {
        "tool": tool,
        "what": what,
        "trials": trials,
        "seconds": f"{seconds:.3f}",
        "trials_per_s": f"{trials / seconds:.0f}",
        "cpu_s": f"{spent.cpu_s:.2f}" if spent else "",
        "memory_mib": f"{spent.memory_mib:.0f}" if spent else "",
    }


def _spent(command: tuple[str, ...], *words: object) -> Spent:
    """Run it to its end.

    Raises:
        SystemExit: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict.fromkeys(_THREADS, "1")},
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(process.args)} failed")  # type: ignore[arg-type]
    cpu_s = used.ru_utime + used.ru_stime
    return Spent(said, time.perf_counter() - started, cpu_s, used.ru_maxrss / 1024)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1_000_000, help="of our largest study")
    parser.add_argument("--peer-trials", type=int, default=100_000, help="of the study both open")
    parser.add_argument("--batch", type=int, default=1000, help="trials added at once")
    parser.add_argument("--studies", type=int, default=200, help="that are listed")
    parser.add_argument("--only", choices=_PARTS, help="measure only this part")
    parser.add_argument("--folder", type=Path, help="where the databases are for a while")
    parser.add_argument("-o", type=Path, help="write the CSV here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
