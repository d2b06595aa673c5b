from __future__ import annotations

import numpy as np

from dse.core.pareto import nondominated, reference
from dse.optimizers.bayesian.training_sample import MOST, select_trials
from dse.testing.problems import tiny_codesign

KNOWN = tiny_codesign()
DESIGNS = KNOWN.problem.space.sample(4 * MOST, np.random.default_rng(3)).designs()
TRIALS = KNOWN.finished(list(dict.fromkeys(DESIGNS)) * 3)[: 2 * MOST]


def test_few_trials_are_all_studied() -> None:
    assert select_trials(KNOWN.problem, TRIALS[:MOST]) == TRIALS[:MOST]


def test_of_many_the_front_and_the_first_are_studied_in_their_order() -> None:
    found = select_trials(KNOWN.problem, TRIALS)
    feasible = [t for t, ok in zip(TRIALS, KNOWN.problem.feasible(TRIALS), strict=True) if ok]
    best = nondominated(KNOWN.problem.trial_losses(feasible))
    front = [trial for trial, ok in zip(feasible, best, strict=True) if ok]
    assert len(found) == MOST
    assert {trial.number for trial in front} <= {trial.number for trial in found}
    assert [t.number for t in found] == sorted(t.number for t in found)


def test_the_reference_point_stays_where_it_is() -> None:
    assert TRIALS[2 * MOST - 1].number > MOST
    whole = reference(KNOWN.problem, TRIALS)
    part = reference(KNOWN.problem, select_trials(KNOWN.problem, TRIALS))
    assert whole is not None
    assert part is not None
    assert (whole == part).all()
