"""NSGA-II breeds from whom it should."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.metric import Failure
from dse.core.trial import Outcome, State
from dse.optimizers.nsga2 import nsga2
from dse.optimizers.support.unseen_designs import fresh
from dse.testing.problems import mixed_reals, tiny_codesign, zdt1


def _finished(known, count):
    return known.finished(fresh(known.problem.space, count, np.random.default_rng(3), ()))


def _failed(trial):
    failure = Failure(kind="crashed", reason="out of memory")
    return replace(trial, state=State.PENDING).finished(
        Outcome(state=State.FAILED, failure=failure)
    )


def _steps(designs, parents):
    """For each design the least number of parameters that differ from a parent's."""
    return [
        min(len(set(design.items()) ^ set(parent.items())) for parent in parents)
        for design in designs
    ]


def test_trials_that_failed_are_no_parents_while_others_fill_the_population():
    known = zdt1(8)
    good, bad = _finished(known, 4), [_failed(trial) for trial in _finished(known, 8)[4:]]
    optimizer = nsga2(known.problem, pop_size=4, crossover=0.0, mutation=1e-9)
    optimizer.tell(bad + good)
    assert max(_steps(optimizer.ask(20), [trial.design for trial in good])) == 2


def test_trials_outside_their_limits_are_no_parents_while_others_fill_the_population():
    known = tiny_codesign()
    trials = _finished(known, 200)
    feasible = known.problem.feasible(trials)
    good = [trial for trial, ok in zip(trials, feasible, strict=True) if ok][:4]
    bad = [trial for trial, ok in zip(trials, feasible, strict=True) if not ok][:4]
    optimizer = nsga2(known.problem, pop_size=4, crossover=0.0, mutation=1e-9)
    optimizer.tell(bad + good)
    assert {trial.design for trial in optimizer.parents} == {trial.design for trial in good}


def test_a_dominated_trial_gives_way_to_the_one_that_beats_it():
    known = zdt1(2)
    better = known.problem.space.batch([{"x0": x, "x1": 0.0} for x in (0.1, 0.3, 0.6, 0.9)])
    worse = known.problem.space.batch([{"x0": x, "x1": 0.9} for x in (0.1, 0.3, 0.6, 0.9)])
    optimizer = nsga2(known.problem, pop_size=4)
    optimizer.tell(known.finished([*worse, *better]))
    assert {trial.design for trial in optimizer.parents} == set(better)


def test_an_unfinished_generation_changes_nothing():
    known = mixed_reals()
    trials = _finished(known, 11)
    one, other = (nsga2(known.problem, pop_size=4) for _ in range(2))
    one.tell(trials[:8])
    other.tell(trials)
    assert one.parents == other.parents


@pytest.mark.parametrize(("dimensions", "size"), [(2, 24), (10, 40), (60, 100)])
def test_the_population_grows_with_the_number_of_parameters(dimensions, size):
    assert nsga2(zdt1(dimensions).problem).size == size
