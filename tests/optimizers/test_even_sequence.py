"""The even sequence fills the space better than chance does."""

import numpy as np

from dse.core.encoding import encoded
from dse.optimizers.random_search import RandomSearch
from dse.optimizers.sobol import Sobol
from dse.optimizers.support.constraints import known_admissible
from dse.optimizers.support.even_sequence import EvenSequence
from dse.testing.known import played
from dse.testing.problems import one_design, pocket_codesign, zdt1


def _largest_gap(optimizer):
    problem = zdt1(1).problem
    points = np.sort(encoded(problem.space, problem.space.batch(optimizer.ask(64)))[:, 0])
    return np.diff(points).max()


def test_its_largest_gap_is_less_than_that_of_random_draws():
    problem = zdt1(1).problem
    assert _largest_gap(Sobol(problem)) < 2 / 64 < _largest_gap(RandomSearch(problem))


def test_asking_in_steps_gives_the_same_sequence():
    known = zdt1()
    steps = [trial.design for trial in played(known, Sobol(known.problem), 40)]
    assert steps == Sobol(known.problem).ask(40)


def test_another_seed_scrambles_otherwise():
    known = zdt1()
    assert Sobol(known.problem).ask(4) != Sobol(known.seeded(1).problem).ask(4)


def test_it_keeps_only_what_it_is_told_to():
    problem = pocket_codesign().problem
    sequence = EvenSequence(problem, lambda batch: known_admissible(problem, batch))
    found = problem.space.batch(sequence.first(99, ()))
    assert len(found) == 22
    assert known_admissible(problem, found).all()


def test_a_space_of_one_design_is_a_sequence_of_one():
    assert len(EvenSequence(one_design().problem).first(9, ())) == 1
