"""Seconds that effects of many trials take, and how far those of a sample are from those of all.

    python benchmarks/effects.py [--trials 100000] [--parameters 20] [--samples 1000 10000 30000]

The study is made up: real parameters, of which each third is linear in one metric, a few pairs
multiply, and a fifth of the variance is noise. Prints CSV: for all trials and for each sample the
seconds of a processor and, over all main effects and interactions, the mean and the largest
difference of a share from that of all trials, in percent of the variance.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping

import numpy as np

from dse.analysis.effects import Effects, estimate_effects
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Real
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.core.trials import Trials


def problem_of(parameters: int) -> Problem:
    """Return the question, with real parameters between 0 and 1."""
    names = [f"p{place}" for place in range(parameters)]
    return Problem(
        space=DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in names)),
        sources={"y": Source(metric=Metric(name="y"), kind="modelled", reads=frozenset(names))},
        objectives=(Objective(expression=parse("y"), goal="minimize"),),
        seed=7,
    )


def trials_of(problem: Problem, count: int) -> Trials:
    """Return trials at designs drawn evenly."""
    rng = np.random.default_rng(1)
    names = [parameter.name for parameter in problem.space.parameters]
    points = rng.random((count, len(names)))
    plain = points @ np.linspace(3.0, 0.0, len(names))
    crossed = 4 * points[:, 0] * points[:, 1] + 2 * points[:, 1] * points[:, 2]
    clean = plain + crossed
    values = clean + rng.normal(scale=clean.std() / 2, size=count)
    return Trials.of(
        [
            Trial(
                number=number,
                design=Design(dict(zip(names, point, strict=True))),
                state=State.DONE,
                metrics={"y": value},
            )
            for number, (point, value) in enumerate(
                zip(points.tolist(), values.tolist(), strict=True)
            )
        ],
        order=range(count),
    )


def shares(found: Effects) -> Mapping[tuple[str, ...], float]:
    """Return all shares, in percent."""
    told = {(one.parameter,): one.share for one in found.main}
    told |= {tuple(sorted(one.parameters)): one.share for one in found.interactions}
    return {names: 100 * (share or 0.0) for names, share in told.items()}


def main() -> None:
    """Estimate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--parameters", type=int, default=20)
    parser.add_argument("--samples", type=int, nargs="*", default=[1_000, 10_000, 30_000])
    options = parser.parse_args()
    problem = problem_of(options.parameters)
    trials = trials_of(problem, options.trials)
    tell = csv.writer(sys.stdout).writerow
    tell(("trials", "cpu_s", "mean_off_percent", "most_off_percent"))
    exact: Mapping[tuple[str, ...], float] = {}
    for rows in (options.trials, *options.samples):
        started = time.process_time()
        (found,) = estimate_effects(problem, trials, ["y"], rows=rows)
        spent = time.process_time() - started
        near = shares(found)
        exact = exact or near
        off = [abs(near[names] - exact[names]) for names in exact]
        tell((found.trials, f"{spent:.1f}", f"{np.mean(off):.3f}", f"{max(off):.3f}"))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
