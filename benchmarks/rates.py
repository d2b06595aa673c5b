"""Designs a CPU second of the modelled metrics of studies, on the machine at hand, as CSV.

    python benchmarks/rates.py [STUDY ...] [--designs 20000]

Designs are drawn from the study's space; the best of three rounds counts. Rates hang on machine,
load and space, so no page states them: compare two in one run. ``systolic.py`` and
``training_verdicts.py`` run ours beside a peer's, SCALE-Sim and Calculon.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np

from dse.schema.study.plan import plan_of

STUDIES = Path(__file__).parents[1] / "studies"
USUAL = ("llm_training", "carbon_aware", "codesign_accelerator")
ROUNDS = 3


def designs_per_s(study: Path, count: int) -> float:
    """Return the designs whose modelled metrics a CPU second yields."""
    problem = plan_of(study.resolve()).problem
    batch = problem.space.sample(count, np.random.default_rng(0))
    best_s = np.inf
    for _ in range(ROUNDS):
        started = time.process_time()
        problem.known(batch)
        best_s = min(best_s, time.process_time() - started)
    return len(batch) / best_s


def main() -> None:
    """Time, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    usual = [STUDIES / f"{name}.yaml" for name in USUAL]
    parser.add_argument("studies", nargs="*", type=Path, default=usual)
    parser.add_argument("--designs", type=int, default=20_000)
    options = parser.parse_args()
    tell = csv.writer(sys.stdout).writerow
    tell(("study", "designs_per_cpu_s"))
    for study in options.studies:
        tell((study.stem, f"{designs_per_s(study, options.designs):.3g}"))


if __name__ == "__main__":
    main()
