"""Our optimizers against those of other tools: hypervolume regret by trial, and what it cost.

Run: python benchmarks/optimizers [--problem NAME ...] [--optimizer NAME ...] [--seeds N]
     [--trials N] [--limit-s SECONDS] [--data FOLDER] [-o cells.csv]
     python benchmarks/optimizers summary | figures | cost [--help]

Each run is a process of its own on one thread. A run that is in the file already is skipped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import catalogue
import open_problems
import records
from running import Run, apart, play

WORDS = ("summary", "figures", "cost")
"""Modules with a command line of their own."""


def main() -> None:
    """Play, or do what the first word says."""
    if sys.argv[1:2] and sys.argv[1] in WORDS:
        importlib.import_module(sys.argv[1]).main(sys.argv[2:])
        return
    chosen = _arguments().parse_args()
    if chosen.play:
        problem, optimizer, seed, into = chosen.play
        run = Run(problem=problem, optimizer=optimizer, seed=int(seed), trials=chosen.trials)
        Path(into).write_text(json.dumps(play(run, chosen.data, chosen.limit_s)))
    else:
        _play_all(chosen)


def _play_all(chosen: argparse.Namespace) -> None:
    """What is not in the file yet, seed by seed, so that a part of it is balanced."""
    if any(name in open_problems.NAMES for name in chosen.problem or open_problems.NAMES):
        open_problems.check_data(chosen.data)
    have = records.finished(chosen.o)
    runs = [run for run in _runs(chosen) if have.get(run.key, 0) < run.trials]
    begun = time.monotonic()
    for place, run in enumerate(runs):
        _played(run, chosen)
        took = time.monotonic() - begun
        left_s = took / (place + 1) * (len(runs) - place - 1)
        print(f"  {place + 1} of {len(runs)}, {left_s / 60:.0f} min left", flush=True)


def _runs(chosen: argparse.Namespace) -> Iterator[Run]:
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        for problem in chosen.problem or open_problems.NAMES:
            for optimizer in chosen.optimizer or ["auto"]:
                yield Run(problem=problem, optimizer=optimizer, seed=seed, trials=chosen.trials)


def _played(run: Run, chosen: argparse.Namespace) -> None:
    print(f"{run.problem} {run.optimizer} seed {run.seed}", flush=True)
    options = ["--trials", str(run.trials), "--data", str(chosen.data)]
    options += ["--limit-s", str(chosen.limit_s)]
    with tempfile.TemporaryDirectory() as folder:
        played = apart(run, options, chosen.limit_s, Path(folder) / "run.json")
    if played is None:
        return
    records.add(chosen.o, run.key, played)
    about, last = played["about"], played["rows"][-1]
    print(
        f"  regret {1 - last['share']:.4f} after {about['trials']} trials, "
        f"{about['optimizer_s']:.1f} s, {about['memory_bytes'] >> 20} MiB",
        flush=True,
    )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append", help="only this problem")
    own = f"auto, {catalogue.OWN}<plug-in>"
    names = f"{own}, {', '.join(catalogue.PEERS)}"
    parser.add_argument("--optimizer", action="append", help=f"one of {names} (auto)")
    parser.add_argument("--seeds", type=int, default=10, help="how many (10)")
    parser.add_argument("--first-seed", type=int, default=0, help="and from which on (0)")
    parser.add_argument("--trials", type=int, default=200, help="of each run (200)")
    parser.add_argument("--limit-s", type=float, default=7200, help="of each run (7200)")
    parser.add_argument("--data", type=Path, default=open_problems.DATA, help="the open data")
    parser.add_argument("-o", type=Path, default=Path("cells.csv"), help="where the runs end")
    parser.add_argument("--play", nargs=4, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
