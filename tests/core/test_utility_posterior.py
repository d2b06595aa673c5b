"""Posterior of a user's utility, from comparisons of two designs."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from dse.core.utility_posterior import MOST_CANDIDATES, UtilityPosterior, likelihood

FOLDER = Path(__file__).parents[2] / "benchmarks"
ANGLES = np.linspace(0, np.pi / 2, 40)
ARC = 1 - np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
"""Front of forty designs on a quarter of a circle."""


def test_answers_in_favour_of_an_objective_move_the_favourite_to_it():
    prior = UtilityPosterior.of(ARC)
    told = prior.answered(35, 5, "second").answered(20, 3, "second")
    assert ARC[told.favourite, 0] < ARC[prior.favourite, 0]
    assert told.weights.sum() == pytest.approx(1)


def test_the_order_of_answers_does_not_matter():
    prior = UtilityPosterior.of(ARC)
    one = prior.answered(35, 5, "second").answered(20, 3, "equal")
    other = prior.answered(20, 3, "equal").answered(5, 35, "first")
    assert one.weights == pytest.approx(other.weights)


def test_the_answers_have_probabilities_that_sum_to_one():
    gap = np.linspace(-2, 2, 9)
    every = [likelihood(gap, response) for response in ("first", "second", "equal")]
    assert sum(every) == pytest.approx(np.ones(9))
    assert min(each.min() for each in every) > 0


def test_a_pair_is_not_asked_twice_and_questions_end():
    prior = UtilityPosterior.of(ARC[:3])
    asked = [prior.question()]
    asked.append(prior.question(asked))
    asked.append(prior.question(asked))
    assert len({frozenset(pair) for pair in asked}) == 3
    assert prior.question([pair[::-1] for pair in asked]) is None


def test_a_front_of_one_design_has_its_favourite_and_no_question():
    prior = UtilityPosterior.of(ARC[:1])
    assert (prior.favourite, prior.confidence, prior.question()) == (0, pytest.approx(1.0), None)


def test_of_a_large_front_some_designs_are_compared_and_those_of_answers():
    angles = np.linspace(0, np.pi / 2, 1_000)
    prior = UtilityPosterior.of(1 - np.column_stack([np.cos(angles), np.sin(angles)]), keep=[7])
    assert len(prior.candidates) <= MOST_CANDIDATES + 1
    assert 7 in prior.candidates


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_units_do_not_matter(scale):
    plain, scaled = UtilityPosterior.of(ARC), UtilityPosterior.of(ARC * scale)
    assert scaled.question() == plain.question()


def test_eight_questions_suffice_for_nine_of_ten_simulated_users(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    benchmark = importlib.import_module("preferences")
    told = [
        dialogue
        for kind in benchmark.IN_MODEL
        for dialogue in benchmark.simulate(ARC, kind, 0.0, 10)
    ]
    assert benchmark.quantile([one.needed for one in told], 0.9) <= 8
