"""Follow docs/how-to/kernel.md, and compare what 100 trials find with all legal designs.

    python benchmarks/kernel_study.py [--seeds 5] [--trials 100] [--folder FOLDER]

The files of the page are saved, and the study runs with ``auto`` and ``thinking: 5 %`` once for
each seed. For each run it prints the processor time of our own process in ms a trial (imports and
the first tenth of the trials left out, compiler and kernel are processes of their own), the median
ms between the end of a trial and the begin of the next one, and the time of the fastest kernel
found over that of the fastest of all legal designs. These times are taken anew, in rounds that
start each of the candidates once; the least one of each counts, so that a disturbance does not.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import yaml

import dse

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "kernel.md"
METRIC = "kernel.time"
_FILE = re.compile(r'```\w+ title="(?P<name>[^"]+)"\n(?P<text>.*?)```', re.DOTALL)
_FINALISTS = 25
_ROUNDS = 40

Design = Mapping[str, object]


def main() -> None:
    """Print one line for each seed, and the number of legal designs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="keeps files, builds and studies")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = wanted.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        compare(folder, wanted.seeds, wanted.trials)


def compare(folder: Path, seeds: int, trials: int) -> None:
    """Run the study of the page for each seed and exhaustively, and print the comparison."""
    for found in _FILE.finditer(PAGE.read_text(encoding="utf-8")):
        (folder / found["name"]).write_text(found["text"], encoding="utf-8")
    optimizer = {"use": "auto", "thinking": "5 %"}
    runs = [_run(folder, seed, trials, optimizer) for seed in range(seeds)]
    every = _open(folder, "all", {"optimizer": "exhaustive", "budget": {"measurements": 10**6}})
    every.run(progress=False)
    fastest = _sort(every)[:_FINALISTS]
    best = [_sort(study)[0] for study, _ in runs]
    times = _time_again(folder, [*fastest, *best])
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["seed", "trials", "own_cpu_ms", "between_ms", "over_best"])
    for seed, (study, cpu_ms) in enumerate(runs):
        ratio = times[len(fastest) + seed] / min(times)
        between = f"{_between_ms(study):.1f}"
        writer.writerow([seed, len(study.trials), f"{cpu_ms:.1f}", between, f"{ratio:.3f}"])
    print(f"{len(every.trials)} legal designs, the fastest {min(times):.1f} us")


def _run(
    folder: Path, seed: int, trials: int, optimizer: Mapping[str, str]
) -> tuple[dse.Study, float]:
    """Return a study after its trials, and the CPU milliseconds of this process for each."""
    changes = {"optimizer": dict(optimizer), "executor": {"use": "serial"}, "seed": seed}
    study = _open(folder, f"seed-{seed}", changes)
    first = trials // 10
    study.run(measurements=first, progress=False)
    started_s = time.process_time()
    study.run(measurements=trials, progress=False)
    return study, 1e3 * (time.process_time() - started_s) / (trials - first)


def _open(folder: Path, name: str, changes: Mapping[str, object]) -> dse.Study:
    text = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({**text, **changes, "study": name}), encoding="utf-8")
    return dse.Study.open(file, storage=f"sqlite:///{folder / 'dse.db'}")


def _sort(study: dse.Study) -> list[Design]:
    """Return the designs that were measured, the fastest first."""
    done = [trial for trial in study.trials if METRIC in trial.metrics]
    return [trial.design for trial in sorted(done, key=lambda one: one.metrics[METRIC])]


def _between_ms(study: dse.Study) -> float:
    trials = sorted(study.trials, key=lambda trial: trial.begun_at or 0.0)
    gaps = [
        (after.begun_at or 0.0) - (before.finished_at or 0.0) for before, after in pairwise(trials)
    ]
    return 1e3 * statistics.median(gaps)


def _time_again(folder: Path, designs: Sequence[Design]) -> list[float]:
    """Return the least time of each design over rounds in which each is started once."""
    programs = [_build(folder, place, design) for place, design in enumerate(designs)]
    rounds = [[_printed_time(words) for words in programs] for _ in range(_ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _build(folder: Path, place: int, design: Design) -> list[str]:
    names = {"NUMBER": "number", "LANES": "lanes", "UNROLL": "unroll"}
    names |= {"TILE_COLUMNS": "tile_columns", "AHEAD": "ahead"}
    macros = [f"-D{macro}={design[name]}" for macro, name in names.items() if name in design]
    program = str(folder / f"finalist-{place}")
    flags = [f"-O{design['optimize']}", "-march=native", *macros]
    _start(["cc", *flags, "-o", program, str(folder / "kernel.c"), "-lm"])
    return [program, str(design["rows_at_once"]), "20"]


def _printed_time(words: Sequence[str]) -> float:
    time_us: float = json.loads(_start(words))["time"]
    return time_us


def _start(words: Iterable[str]) -> str:
    return subprocess.run([*words], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
