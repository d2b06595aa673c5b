"""Seconds until a program that uses us, or a command, begins, beside Optuna's, as CSV.

    python benchmarks/startup.py [--rounds 9]

Each is a process of its own; rounds take turns, and the least of each counts, so that what else the
machine does weighs on all alike.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("dse"))
FIRST = """
from dse import Metric, Space, Study, evaluator
@evaluator(Metric("time", "us", goal="minimize"))
def kernel(tile: int, stages: int) -> dict[str, float]:
    return {"time": 1000 / tile + 40 / stages}
space = Space({"tile": [16, 32, 64, 128], "stages": (1, 6)}, ["tile * stages <= 512"])
Study("tiles", space, [kernel], optimizer="random", storage="memory://").run(measurements=3)
"""
FIRST_OF_OPTUNA = """
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
def kernel(trial):
    tile = trial.suggest_categorical("tile", [16, 32, 64, 128])
    return 1000 / tile + 40 / trial.suggest_int("stages", 1, 6)
sampler = optuna.samplers.RandomSampler(seed=0)
optuna.create_study(sampler=sampler).optimize(kernel, n_trials=3)
"""
PROGRAMS: Mapping[str, list[str]] = {
    "python": [sys.executable, "-c", ""],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import optuna": [sys.executable, "-c", "import optuna"],
    "from dse import Metric, Space, Study, evaluator": [
        sys.executable,
        "-c",
        "from dse import Metric, Space, Study, evaluator",
    ],
    "three trials of optuna": [sys.executable, "-c", FIRST_OF_OPTUNA],
    "three trials of dse": [sys.executable, "-c", FIRST],
    "dse --help": [COMMAND, "--help"],
    "dse run --optimizer <Tab>": [COMMAND],
}
COMPLETING = {
    "_DSE_COMPLETE": "complete_bash",
    "COMP_WORDS": "dse\nrun\n--optimizer\n",
    "COMP_CWORD": "3",
}


def seconds(name: str) -> tuple[float, float]:
    """Return the seconds on the wall and of a processor that a program takes."""
    environment = {**os.environ, **(COMPLETING if name.endswith("<Tab>") else {})}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(PROGRAMS[name], env=environment, check=True, stdout=subprocess.DEVNULL)
    wall_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Time, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, own in taken.items():
            own.append(seconds(name))
    tell = csv.writer(sys.stdout).writerow
    tell(("program", "wall_s", "cpu_s"))
    for name, own in taken.items():
        tell((name, *(f"{min(column):.3f}" for column in zip(*own, strict=True))))


if __name__ == "__main__":
    main()
