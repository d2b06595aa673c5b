"""How well the gap bounds the hypervolume that is missing, and when it stops a study.

Run: python benchmarks/gap.py [--problem NAME ...] [--optimizer grey-box] [--seeds 2] [--trials 70]
     [--gap 0.01] [--confidence 0.9] [--data FOLDER]

Each problem has a known front. After each measurement at which a study would estimate the gap, the
bound is compared with the share that is truly missing. ``coverage`` is the share of estimates that
hold, over those at which something is missing. ``99 %`` is the measurement at which the front has
99 % of the hypervolume, ``stop`` that at which the gap ends the study, ``ratio`` the second over
the first. The open tables are left out where the folder has none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.metric import Metrics
from dse.core.parameter import Ordinal
from dse.core.pareto import ParetoSet, hypervolume, nondominated
from dse.core.problem import Problem
from dse.core.recorded_gap import checkpoints
from dse.core.space import DesignSpace
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.hypervolume_gap import GapEstimator
from dse.registry import make
from dse.testing.known import enumerated
from dse.testing.problems import tiny_codesign

OPTIMIZERS = Path(__file__).parent / "optimizers"
TABLES = ("tx2_dvfs", "spector_sobel", "vp8_encoder")
ENOUGH = 0.99


@dataclass(frozen=True, kw_only=True)
class Played:
    """A problem, how designs become trials, and the losses of its front, (k, m)."""

    problem: Problem
    finish: Callable[[list[Design], int], list[Trial]]
    front: Floats


@dataclass(kw_only=True)
class Result:
    """One run: estimates as (share bounded, share missing), and the measurements in question."""

    estimates: list[tuple[float, float]] = field(default_factory=list)
    enough: int | None = None
    stop: int | None = None
    missing: float | None = None
    seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Measurements until the stop over those until 99 %; infinite if it did not stop."""
        if self.enough is None:
            return float("nan")
        return np.inf if self.stop is None else self.stop / self.enough


def grid(levels: int, count: int, function: Callable[[Floats], tuple[Floats, Floats]]) -> Played:
    """A function of the unit cube with two losses, over a grid of designs."""
    values = tuple(float(value) for value in np.linspace(0.0, 1.0, levels))
    names = [f"x{place}" for place in range(count)]
    space = DesignSpace(parameters=tuple(Ordinal(name=name, values=values) for name in names))

    def truth(batch: Batch) -> Metrics:
        first, second = function(np.column_stack([batch[name] for name in names]))
        return Metrics(columns={"f1": first, "f2": second})

    known = enumerated(
        space,
        {"f1": "measured", "f2": "measured"},
        {"f1": "minimize", "f2": "minimize"},
        truth,
    )
    return Played(problem=known.problem, finish=known.finished, front=known.front)


def zdt1(x: Floats) -> tuple[Floats, Floats]:
    """Zitzler, Deb, Thiele, 2000, eq. 7."""
    g = 1 + 9 * x[:, 1:].mean(axis=1)
    return x[:, 0], g * (1 - np.sqrt(x[:, 0] / g))


def dtlz2(x: Floats) -> tuple[Floats, Floats]:
    """Deb, Thiele, Laumanns, Zitzler, 2005, eq. 9, with two objectives."""
    radius, angle = 1 + ((x[:, 1:] - 0.5) ** 2).sum(axis=1), x[:, 0] * np.pi / 2
    return radius * np.cos(angle), radius * np.sin(angle)


def branin_currin(x: Floats) -> tuple[Floats, Floats]:
    """Belakaria, Deshwal, Doppa: Max-value Entropy Search, 2019, appendix."""
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    branin = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2
    branin += 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    fade = 1 - np.where(x[:, 1] > 0, np.exp(-0.5 / np.maximum(x[:, 1], 1e-9)), 0.0)
    a = x[:, 0]
    currin = fade * (2300 * a**3 + 1900 * a**2 + 2092 * a + 60)
    return branin, currin / (100 * a**3 + 500 * a**2 + 4 * a + 20)


def drawn(seed: int, width: float, x: Floats) -> tuple[Floats, Floats]:
    """Two smooth random functions, sums of 200 cosines, that oppose each other in part."""
    rng = np.random.default_rng(seed)
    waves = rng.standard_normal((2, 200, x.shape[1])) / width
    phases, sizes = rng.uniform(0, 2 * np.pi, (2, 200)), rng.standard_normal((2, 200)) / 10
    first, second = (np.cos(x @ waves[k].T + phases[k]) @ sizes[k] for k in (0, 1))
    return first + 2, second - 0.3 * first + 3


def codesign() -> Played:
    """The small co-design problem of the tests: a measured accuracy, modelled time and energy."""
    known = tiny_codesign()
    return Played(problem=known.problem, finish=known.finished, front=known.front)


def table(name: str, data: Path) -> Played:
    """Other people's measurements of all designs of a space."""
    sys.path.append(str(OPTIMIZERS))
    from open_problems import case

    chosen = case(name, data)

    def finish(designs: list[Design], first: int) -> list[Trial]:
        return [chosen.played(design, first + row) for row, design in enumerate(designs)]

    every = finish(
        [one for batch in chosen.problem.space.enumerate() for one in batch.designs()], 0
    )
    losses, feasible = chosen.problem.judged(every)
    losses = losses[feasible]
    return Played(problem=chosen.problem, finish=finish, front=losses[nondominated(losses)])


PROBLEMS: dict[str, Callable[[], Played]] = {
    "zdt1": partial(grid, 11, 3, zdt1),
    "dtlz2": partial(grid, 11, 3, dtlz2),
    "branin-currin": partial(grid, 31, 2, branin_currin),
    "random-0": partial(grid, 10, 3, partial(drawn, 0, 0.4)),
    "random-1": partial(grid, 10, 3, partial(drawn, 1, 0.25)),
    "random-2": partial(grid, 6, 4, partial(drawn, 2, 0.4)),
    "codesign": codesign,
}


def play(given: Played, optimizer: str, seed: int, chosen: argparse.Namespace) -> Result:
    """Run an optimizer, and estimate the gap at the measurements at which a study would."""
    problem = replace(given.problem, seed=seed)
    made, trials = make("optimizers", optimizer, problem), list[Trial]()
    estimator = GapEstimator(problem, confidence=chosen.confidence)
    steps, run = set(checkpoints(chosen.trials)), Result()
    while len(trials) < chosen.trials and None in (run.stop, run.enough):
        designs = made.ask(1)
        if not designs:
            break
        finished = given.finish(designs, len(trials))
        made.tell(finished)
        trials += finished
        left = _missing(given, problem, trials)
        if left is None:
            continue
        if run.enough is None and left <= 1 - ENOUGH:
            run.enough = len(trials)
        if len(trials) in steps and run.stop is None:
            _compare(run, estimator, trials, left, chosen.gap)
    return run


def _compare(
    run: Result, estimator: GapEstimator, trials: list[Trial], left: float, enough: float
) -> None:
    """Estimate the gap, and note it with the share that is truly missing."""
    began_s = time.process_time()
    found = estimator.estimate(trials)
    run.seconds += time.process_time() - began_s
    if found is None:
        return
    run.estimates.append((found.share, left))
    if found.share <= enough:
        run.stop, run.missing = len(trials), left


def _missing(given: Played, problem: Problem, trials: list[Trial]) -> float | None:
    """The share of the true hypervolume that the trials miss; ``None`` without a reference."""
    front = ParetoSet.of(problem, trials)
    if front.reference is None:
        return None
    whole = hypervolume(given.front, front.reference)
    return max(0.0, 1 - hypervolume(front.losses, front.reference) / whole)


def coverage(results: list[Result]) -> float:
    """The share of estimates that hold, over those at which something is missing."""
    open_ = [(bound, left) for one in results for bound, left in one.estimates if left > 1e-9]
    return float(np.mean([left <= bound for bound, left in open_])) if open_ else float("nan")


def _problems(chosen: argparse.Namespace) -> Iterator[tuple[str, Played]]:
    for name, made in PROBLEMS.items():
        if not chosen.problem or name in chosen.problem:
            yield name, made()
    for name in TABLES:
        if (not chosen.problem or name in chosen.problem) and (
            chosen.data / f"{name}.npz"
        ).exists():
            yield name, table(name, chosen.data)


def main() -> None:
    """Print a line for each run, then the coverage and the median ratio of all runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append")
    parser.add_argument("--optimizer", default="grey-box")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=70)
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--confidence", type=float, default=0.9)
    data = Path(__file__).resolve().parents[2] / "shared/data/open"
    parser.add_argument("--data", type=Path, default=data)
    chosen = parser.parse_args()
    results: list[Result] = []
    print(
        "| problem | seed | estimates | coverage | 99 % | stop | ratio | missing at the stop | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, given in _problems(chosen):
        for seed in range(chosen.seeds):
            one = play(given, chosen.optimizer, seed, chosen)
            results.append(one)
            missing = "-" if one.missing is None else f"{100 * one.missing:.2f} %"
            print(
                f"| {name} | {seed} | {len(one.estimates)} | {coverage([one]):.2f} | "
                f"{one.enough or '-'} | {one.stop or '-'} | {one.ratio:.2f} | {missing} | "
                f"{one.seconds:.1f} |",
                flush=True,
            )
    ratios = [one.ratio for one in results if one.enough is not None]
    stopped = [one.missing for one in results if one.missing is not None]
    print(
        f"coverage {coverage(results):.3f} of {sum(len(one.estimates) for one in results)} "
        f"estimates; median ratio {np.median(ratios):.2f} of {len(ratios)} runs; "
        f"{sum(left <= chosen.gap for left in stopped)} of {len(stopped)} stops missed at most "
        f"{100 * chosen.gap:g} %"
    )


if __name__ == "__main__":
    main()
