"""How many measurements it takes to know the front where one metric is measured.

`python benchmarks/optimizers/measurements.py -o measurements.csv` plays the grey-box optimizer and
its black-box peers on the three co-design problems and counts until 95 % and 98 % of the true
hypervolume. A run that does not get there counts as its limit. Peers are given every metric of
each design that they ask, and only what they asked counts. Ours is given the same, and its front
is completed after each measurement, as a study's is. The CSV is gone on with if it is there.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import catalogue
import codesign
import numpy as np
from case import Case

from dse.core.pareto import hypervolume
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.front_completion import completed_front
from dse.optimizers.bayesian.measured_settings import MeasuredSplit

OURS = "dse-grey-box"
LEVELS = (0.95, 0.98)
LIMIT = 300
FIELDS = ("problem", "optimizer", "seed", "limit", "to_95", "to_98", "share_at_end", "optimizer_s")


class Completed:
    """The share of the true hypervolume that a record's completed front has."""

    def __init__(self, problem: Problem, true_hypervolume: float) -> None:
        assert problem.fixed_reference is not None
        signs = [1.0 if o.goal == "minimize" else -1.0 for o in problem.objectives]
        self._problem = problem
        self._top = np.array(signs) * np.array(problem.fixed_reference)
        self._whole = true_hypervolume
        self._front_cache = ConditionalFrontCache(problem, MeasuredSplit(problem=problem))

    def __call__(self, trials: Sequence[Trial]) -> float:
        _, losses = completed_front(self._problem, trials, self._front_cache)
        return hypervolume(losses, self._top) / self._whole


def main() -> None:
    """Play what the CSV lacks, then print the medians."""
    chosen = _arguments()
    done = set(_rows(chosen.o))
    for seed in range(chosen.seeds):
        for problem in chosen.problem or codesign.NAMES:
            for optimizer in chosen.optimizer or [OURS, *catalogue.PEERS]:
                if (problem, optimizer, str(seed)) not in done:
                    _play(problem, optimizer, seed, chosen)
    print(_table(chosen.o))


def _play(problem: str, optimizer: str, seed: int, chosen: argparse.Namespace) -> None:
    case = codesign.case(problem, chosen.cache)
    begun = time.process_time()
    reached: dict[float, int] = {}
    share, spent_s = 0.0, 0.0
    for number, now, so_far_s in _shares(case, problem, optimizer, seed, chosen):
        share, spent_s = now, so_far_s
        for level in LEVELS:
            if share >= level:
                reached.setdefault(level, number)
        if len(reached) == len(LEVELS) or time.process_time() - begun > chosen.limit_s:
            break
    counts = [reached.get(level, chosen.trials) for level in LEVELS]
    row = [problem, optimizer, seed, chosen.trials, *counts, f"{share:.4f}", f"{spent_s:.1f}"]
    fresh = not chosen.o.exists()
    with chosen.o.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        writer.writerow(row)
    print(*row, flush=True)


def _shares(
    case: Case, problem: str, optimizer: str, seed: int, chosen: argparse.Namespace
) -> Iterator[tuple[int, float, float]]:
    """After each measurement: how many there were, the share known, the optimizer's seconds."""
    completed = Completed(
        case.problem, codesign.truth(codesign.study(problem, chosen.cache)).hypervolume
    )
    judge = completed if optimizer == OURS else case.judge
    trials: list[Trial] = []
    for step in catalogue.record(optimizer, case, seed, chosen.trials):
        trials.append(step.trial)
        if optimizer == OURS or len(trials) % 10 == 0 or len(trials) == chosen.trials:
            yield len(trials), judge(trials), step.optimizer_s


def _rows(file: Path) -> Iterator[tuple[str, str, str]]:
    if file.exists():
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                yield row["problem"], row["optimizer"], row["seed"]


def _table(file: Path) -> str:
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    lines_ = [
        "| problem | optimizer | seeds | to 95 % | to 98 % | share at the end |",
        "|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((row["problem"], row["optimizer"]) for row in rows):
        own = [row for row in rows if (row["problem"], row["optimizer"]) == key]
        counts = [median(int(row[field]) for row in own) for field in ("to_95", "to_98")]
        share = median(float(row["share_at_end"]) for row in own)
        told = [f"{c:g}" if c < int(own[0]["limit"]) else f">= {c:g}" for c in counts]
        lines_.append(f"| {key[0]} | {key[1]} | {len(own)} | {told[0]} | {told[1]} | {share:.3f} |")
    return "\n".join(lines_)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append", help=f"of {', '.join(codesign.NAMES)}")
    parser.add_argument("--optimizer", action="append", help=f"{OURS} or a peer's name")
    parser.add_argument("--seeds", type=int, default=10, help="how many (10)")
    parser.add_argument("--trials", type=int, default=LIMIT, help=f"at most ({LIMIT})")
    parser.add_argument("--limit-s", type=float, default=1e9, help="of CPU time for each run")
    parser.add_argument("--cache", type=Path, default=codesign.CACHE, help="where readings are")
    parser.add_argument("-o", type=Path, default=Path("measurements.csv"), help="where it is kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
