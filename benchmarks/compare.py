"""What ``dse compare`` takes of two large studies: ``python benchmarks/compare.py [TRIALS]``.

Two studies of three objectives are written to a SQLite file, one drawn at random and one that
comes nearer to its front with every trial; then the command runs in a process of its own. Prints
CSV: seconds, of them on a processor, and the most memory of that process.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.core.values import Floats
from dse.study.study_engine import StudyEngine

TRIALS = 1_000_000
BATCH = 10_000

SPACE = """
space: cube
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
  z: {real: [0, 1]}
"""

STUDY = """
study: large
space: space.yaml
evaluators:
  m:
    use: expression
    metrics: {a: {formula: x}, b: {formula: y}, c: {formula: z}}
objectives:
  - minimize: m.a
  - minimize: m.b
  - minimize: m.c
reference: {m.a: 1, m.b: 1, m.c: 1}
optimizer: random
"""


def main() -> None:
    """Write the studies, compare them and print what it took."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    print("what,trials,seconds,cpu_s,peak_mb")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "space.yaml").write_text(SPACE)
        (folder / "study.yaml").write_text(STUDY)
        url = f"sqlite:///{folder}/large.db"
        rng = np.random.default_rng(0)
        started = time.perf_counter()
        write(folder, url, "random", rng.random((size, 3)))
        write(folder, url, "nearing", nearing(rng, size))
        print(f"write two studies,{size},{time.perf_counter() - started:.1f},,", flush=True)
        for ending in ("", ".json", ".html"):
            timed(folder, url, size, ending)


def write(folder: Path, url: str, name: str, values: Floats) -> None:
    """Keep the values as the trials of a study."""
    study = StudyEngine.open(folder / "study.yaml", name=name, storage=url)
    for at in range(0, len(values), BATCH):
        rows = values[at : at + BATCH].tolist()
        designs = [Design({"x": x, "y": y, "z": z}) for x, y, z in rows]
        trials = study.storage.add(name, designs)
        study.storage.finish(
            name,
            {
                trial.number: Outcome(
                    state=State.DONE,
                    metrics=dict(zip(("m.a", "m.b", "m.c"), row, strict=True)),
                    cost_s=0.001,
                )
                for trial, row in zip(trials, rows, strict=True)
            },
        )


def nearing(rng: np.random.Generator, size: int) -> Floats:
    """Points that come nearer to a small eighth of a sphere as they go."""
    ways = np.abs(rng.normal(size=(size, 3)))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    return np.asarray(ways * (0.05 + 0.9 * np.linspace(1, 0.02, size) * rng.random(size))[:, None])


def timed(folder: Path, url: str, size: int, ending: str) -> None:
    """Run the command once and print its row."""
    words = ["compare", "random", "nearing", "--storage", url]
    words += ["-o", str(folder / f"compared{ending}")] if ending else []
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "dse", *words], check=True, capture_output=True)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = f"{size},{seconds:.1f},{cpu_s:.1f},{after.ru_maxrss / 1024:.0f}"
    print(f"compare {ending or 'table'},{row}", flush=True)


if __name__ == "__main__":
    main()
