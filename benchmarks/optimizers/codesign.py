"""Our co-design problems: one expensive metric, the others modelled, and the true front known.

Run: python benchmarks/optimizers/codesign.py [NAME ...] [--cache DIR]

Measures what the cache lacks, compares all designs, and prints how large each problem is.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from case import Case
from codesign_readings import CACHE, Reading, Study
from codesign_truth import Truth, truth

from dse.core.design import Design, nest_members
from dse.core.pareto import hypervolume
from dse.core.trial import Outcome, State, Trial
from dse.protocols import Task
from dse.schema.study.plan import plan_of

STUDIES = Path(__file__).parent / "codesign"
PROGRAMS = {
    "edge-digits": None,
    "edge-per-layer": ("codesign_denoising", "of_design"),
    "vector-search": ("codesign_search", "recall"),
}
"""The problems, and the function behind the program that a study file runs."""

NAMES = tuple(PROGRAMS)


def study(name: str, cache: Path = CACHE) -> Study:
    """The study of that name."""
    program = PROGRAMS[name]
    return Study(
        plan=plan_of(STUDIES / f"{name.replace('-', '_')}.yaml"),
        cache=cache,
        direct=None if program is None else partial(_direct, *program),
    )


def case(name: str, cache: Path = CACHE, *, tell: bool = False) -> Case:
    """The problem of that name; what the cache lacks is measured and compared first.

    Every reading was measured once and is looked up, so that many designs take seconds.
    """
    chosen = study(name, cache)
    exact = truth(chosen, tell=tell)
    return Case(
        name=name,
        problem=chosen.plan.problem,
        evaluate=partial(measured_outcome, chosen),
        judge=partial(_share, chosen, exact),
    )


def _direct(module: str, function: str, design: Design) -> Reading:
    found: Reading = getattr(importlib.import_module(module), function)(nest_members(design))
    return found


def measured_outcome(chosen: Study, design: Design) -> Outcome:
    """What becomes of a design; its reading is looked up where it is known."""
    given = chosen.readings.get(chosen.parts.key(design), {})
    (outcome,) = chosen.plan.pipeline([Task(number=0, design=design, given=given)])
    return replace(outcome, measured=1) if outcome.state is State.DONE else outcome


def _share(chosen: Study, exact: Truth, trials: Sequence[Trial]) -> float:
    problem = chosen.plan.problem
    losses = problem.trial_losses(trials)[problem.feasible(trials)]
    return hypervolume(losses, exact.reference) / exact.hypervolume


def _told(name: str, cache: Path) -> str:
    chosen = study(name, cache)
    exact = truth(chosen, tell=True)
    inside = (exact.losses < exact.reference).all(axis=1)
    settings, within = len(np.unique(exact.parts)), len(np.unique(exact.parts[inside]))
    signs = [1 if o.goal == "minimize" else -1 for o in chosen.plan.problem.objectives]
    lines = [
        f"{name}: {len(chosen.parts.measured):,} measured settings, {exact.designs:,} designs, "
        f"{exact.feasible / exact.designs:.1%} within the limits",
        f"  front: {len(exact.losses):,} rows of {settings:,} measured settings; "
        f"{inside.sum():,} of {within:,} within the reference",
        f"  hypervolume: {exact.hypervolume:.6g}",
    ]
    for place, objective in enumerate(chosen.plan.problem.objectives):
        column, point = exact.losses[:, place] * signs[place], exact.reference[place] * signs[place]
        lines.append(
            f"  {objective.text}: {column.min():.4g} to {column.max():.4g} {objective.unit}, "
            f"reference {point:.4g}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and compare the chosen problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where readings are ({CACHE})")
    chosen = parser.parse_args()
    for name in chosen.name:
        print(_told(name, chosen.cache))


if __name__ == "__main__":
    main()
