"""How many designs a modelled study evolves in a minute: ``python benchmarks/evolution.py``.

Prints CSV: all through a study with its storage in memory, over eight parameters of which two are
coupled, with two formulas to evaluate, which cost next to nothing. ``per_minute`` is by the clock,
``per_cpu_minute`` by what this process used of a core.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from dse.study.study_engine import StudyEngine

SPACE = """\
space: evolution
parameters:
  a: {integer: [0, 1000]}
  b: {integer: [0, 1000]}
  c: {ordinal: [1, 2, 4, 8, 16, 32, 64]}
  d: {choice: [p, q, r, s]}
  x: {real: [0.0, 1.0]}
  y: {real: [0.0, 1.0]}
  tp: {ordinal: [1, 2, 4, 8, 16, 32]}
  dp: {ordinal: [1, 2, 4, 8, 16, 32]}
constraints:
  - tp * dp == 32
"""
STUDY = """\
study: evolution
space: space.yaml
evaluators:
  f:
    use: expression
    metrics:
      one: {{formula: "x + a / 1000 + c / tp"}}
      two: {{formula: "(1 - x) ** 2 + (b / 1000 - 0.5) ** 2 + tp / dp + y"}}
objectives:
  - minimize: f.one
  - minimize: f.two
optimizer: {{use: {method}, pop_size: {size}, steady: {steady}}}
budget: {{trials: {trials}}}
storage: memory://
seed: 1
"""
RUNS = (
    ("nsga2", 100, 10_000, False),
    ("nsga2", 1_000, 40_000, False),
    ("nsga2", 4_000, 80_000, False),
    *((name, 100, 5_000, False) for name in ("age-moea2", "ctaea", "moead", "nsga3", "rvea")),
    ("sms-emoa", 100, 5_000, False),
    ("nsga2", 100, 2_000, True),
    ("nsga3", 100, 2_000, True),
    ("sms-emoa", 100, 2_000, True),
)


def main() -> None:
    """Measure every run."""
    print("method,pop_size,steady,trials,seconds,per_minute,per_cpu_minute")
    for method, size, trials, steady in RUNS:
        seconds, cpu_seconds = timed(method, size, trials, steady=steady)
        minutes = trials / seconds * 60, trials / cpu_seconds * 60
        rates = f"{minutes[0]:.0f},{minutes[1]:.0f}"
        print(f"{method},{size},{steady},{trials},{seconds:.2f},{rates}", flush=True)


def timed(method: str, size: int, trials: int, *, steady: bool) -> tuple[float, float]:
    """Seconds by the clock and of the processor for a study of so many trials."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "space.yaml").write_text(SPACE)
        text = STUDY.format(method=method, size=size, trials=trials, steady=str(steady).lower())
        (Path(folder) / "study.yaml").write_text(text)
        study = StudyEngine.open(Path(folder) / "study.yaml")
        started, used = time.perf_counter(), time.process_time()
        study.run()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - used
        assert len(study.finished) == trials
        return seconds, cpu_seconds


if __name__ == "__main__":
    main()
