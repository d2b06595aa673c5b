"""Candidate designs: legal, unseen and, if possible, within all modelled limits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.core.variation import cross_parents, mutate_designs
from dse.optimizers.support.constraints import known_admissible, known_violations
from dse.optimizers.support.level_coverage import LevelCoverage
from dse.optimizers.support.unseen_designs import fresh, unseen

POOL = 1_024
"""Number of candidates; a space of at most this many designs is used in full."""

_SPARE = 64
"""Extra draws, so that enough of them keep the modelled limits."""

_REPAIRS = 12
_LEAST = 8

_BREED = 8
"""Offspring for each design wanted, as some were evaluated before or violate limits."""

_STEPS = 24
"""Moves tried from each design in a local search."""


def candidates(
    problem: Problem, best: Sequence[Design], taken: Collection[Design], rng: np.random.Generator
) -> list[Design]:
    """Return candidate designs: half drawn uniformly, half bred or mutated from the best designs.

    Up to 64 more are drawn in equal numbers from rare levels (parameter values that few legal
    designs have), which uniform draws hardly reach. In a small space, all are drawn uniformly.
    """
    space = problem.space
    total = space.count()
    if not best or (total is not None and total <= POOL):
        return admissible(problem, fresh(space, POOL, rng, taken), taken, rng)
    uniform = fresh(space, POOL // 2, rng, taken)
    parents = space.batch(best)
    mothers, fathers = rng.integers(len(best), size=(2, POOL // 4))
    children = cross_parents(space, parents.take(mothers), parents.take(fathers), rng)
    bred = unseen(mutate_designs(space, children, rng), {*taken, *uniform})
    moved = _step_from_best(problem, best, POOL // 4, {*taken, *uniform, *bred}, rng)
    coverage = LevelCoverage(space, space.by_name, problem.rng(0, 1))
    rare = unseen(coverage.sample_rare(_SPARE, rng), {*taken, *uniform, *bred, *moved})
    return admissible(problem, uniform + bred + moved + rare, taken, rng)


def breed_designs(
    problem: Problem,
    best: Sequence[Design],
    count: int,
    *,
    taken: Collection[Design],
    rng: np.random.Generator,
) -> list[Design]:
    """Return up to ``count`` mutated offspring of the best designs, without a surrogate.

    Breeding is the cheapest suggestion that depends on results. Designs that violate no modelled
    limit come first.
    """
    if not best:
        return []
    space, size = problem.space, _BREED * count
    mothers, fathers = rng.integers(len(best), size=(2, size))
    parents = space.batch(best)
    children = cross_parents(space, parents.take(mothers), parents.take(fathers), rng)
    bred = unseen(mutate_designs(space, children, rng), taken)
    return admissible(problem, bred, taken, rng)[:count]


def around(
    problem: Problem, best: Sequence[Design], taken: Collection[Design], rng: np.random.Generator
) -> list[Design]:
    """Return unseen, legal mutants of the ``best`` designs that satisfy all modelled limits."""
    near = _step_from_best(problem, best, _STEPS * len(best), taken, rng)
    if not near:
        return []
    kept = known_admissible(problem, problem.space.batch(near))
    return [design for design, ok in zip(near, kept, strict=True) if ok]


def draw_designs(
    problem: Problem, count: int, rng: np.random.Generator, taken: Collection[Design]
) -> list[Design]:
    """Draw up to ``count`` designs uniformly, preferring those that violate no modelled limit."""
    uniform = fresh(problem.space, count + _SPARE, rng, taken)
    return admissible(problem, uniform, taken, rng)[:count]


def admissible(
    problem: Problem,
    designs: list[Design],
    taken: Collection[Design],
    rng: np.random.Generator,
) -> list[Design]:
    """Return the designs that violate no modelled limit.

    If all violate a limit, mutation steps lead from the designs of least violation towards feasible
    designs; if that fails too, infeasible designs are returned, the least violating first. This
    costs model evaluations only, no measurement.
    """
    for _ in range(_REPAIRS):
        if not designs:
            break
        violations = known_violations(problem, problem.space.batch(designs))
        if not violations.min():
            return [d for d, v in zip(designs, violations, strict=True) if not v]
        designs = [designs[place] for place in np.argsort(violations, kind="stable")]
        designs += _step_from_best(problem, designs[:_LEAST], _SPARE, {*taken, *designs}, rng)
    return designs


def _step_from_best(
    problem: Problem,
    best: Sequence[Design],
    count: int,
    taken: Collection[Design],
    rng: np.random.Generator,
) -> list[Design]:
    """Return those of ``count`` mutants of the ``best`` designs that are not ``taken``."""
    starts = np.arange(count) % len(best)
    return unseen(mutate_designs(problem.space, problem.space.batch(best).take(starts), rng), taken)


def select_elite(problem: Problem, trials: Sequence[Trial]) -> Batch:
    """Return the non-dominated feasible designs to search around.

    Until a feasible design exists, the result is the last 16 measured designs.
    """
    done = [trial for trial in trials if trial.state is State.DONE]
    losses = problem.trial_losses(done)
    rows = _front(losses, problem.feasible(done)) if done else []
    return problem.space.batch([done[row].design for row in rows])


def _front(losses: Floats, feasible: np.ndarray) -> list[int]:
    rows = np.flatnonzero(feasible)
    if not len(rows):
        return list(range(len(losses)))[-16:]
    return [int(row) for row in rows[nondominated(losses[rows])]]
