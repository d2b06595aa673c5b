"""Models of a library's members, and the weights by which they are averaged."""

from dataclasses import replace

import numpy as np
import pytest

from dse.core.encoding import encoded
from dse.core.problem import Prior
from dse.optimizers.bayesian.effects_model import EffectsModel, find_levels
from dse.optimizers.bayesian.library_agreement import chance_of_agreement
from dse.optimizers.bayesian.library_prior import LibraryMean
from dse.testing.problems import zdt1

OWNERS = np.array([0, 0, 0, 1, 2])


def mixed_points(count: int) -> np.ndarray:
    """Return points of a choice of three, a real parameter and an ordinal one."""
    rng = np.random.default_rng(0)
    choice = np.eye(3)[rng.integers(3, size=count)]
    return np.column_stack([choice, rng.random(count), rng.integers(4, size=count) / 3])


def response(points: np.ndarray) -> np.ndarray:
    return points[:, 0] + points[:, 3] ** 2 + points[:, 3] * points[:, 4]


def library(priors: dict[str, np.ndarray], train: int = 60) -> tuple[LibraryMean, object]:
    """Return models of members with these values of ``f2`` at sampled designs of ZDT1."""
    known = zdt1(3)
    batch = known.problem.space.sample(train, np.random.default_rng(1))
    members = [
        Prior(study=name, designs=tuple(batch.designs()), metrics={"f2": values}, library=True)
        for name, values in priors.items()
    ]
    problem = replace(known.problem, priors=tuple(members))
    objective = next(one for one in problem.objectives if "f2" in one.expression.names)
    names = frozenset(problem.space.by_name)
    found = LibraryMean.of(problem, objective.expression, objective.sign, names)
    assert found is not None
    return found, known


def mixed_values(seed: int) -> np.ndarray:
    """Return a smooth function of the members' designs with random coefficients."""
    known = zdt1(3)
    points = encoded(known.problem.space, known.problem.space.sample(60, np.random.default_rng(1)))
    weights = np.random.default_rng(seed).normal(size=(2, 3))
    return np.sin(3 * points @ weights[0]) + points**2 @ weights[1]


def values_of(seed: int, train: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return the true values of ``f2`` at the members' designs, and random ones."""
    known = zdt1(3)
    batch = known.problem.space.sample(train, np.random.default_rng(1))
    return known.truth(batch).columns["f2"], np.random.default_rng(seed).random(train)


def test_effects_and_interactions_of_mixed_parameters_are_learnt():
    points = mixed_points(240)
    model = EffectsModel.fit(points[:120], response(points[:120]), OWNERS)
    found = model.predict(find_levels(points[120:], OWNERS))
    assert np.corrcoef(found, response(points[120:]))[0, 1] > 0.999


def test_a_prediction_does_not_depend_on_the_other_designs():
    points = mixed_points(90)
    model = EffectsModel.fit(points, response(points), OWNERS)
    alone = [model.predict(find_levels(points[row : row + 1], OWNERS))[0] for row in range(90)]
    assert model.predict(find_levels(points, OWNERS)) == pytest.approx(np.array(alone))


def test_constant_values_or_parameters_give_no_model():
    points = mixed_points(9)
    assert EffectsModel.fit(points, np.ones(9), OWNERS) is None
    assert EffectsModel.fit(np.ones((9, 5)), response(points), OWNERS) is None


def test_before_anything_is_measured_the_weights_are_equal():
    truth, _ = values_of(0)
    mean, _ = library({"like": truth, "reversed": -truth})
    chosen = mean.weigh(np.zeros((0, 2)), np.zeros(0))
    assert chosen.weights.tolist() == [0.5, 0.5]
    assert chosen.trust == 0.5


def test_one_related_study_outweighs_many_unrelated_ones():
    truth, _ = values_of(0)
    others = {f"mixed{seed}": mixed_values(seed) for seed in range(12)}
    mean, known = library({"like": truth, **others})
    here = known.problem.space.sample(40, np.random.default_rng(5))
    chosen = mean.weigh(mean.members(here), known.truth(here).columns["f2"])
    assert chosen.weights[0] > 0.9
    assert chosen.trust > 0.8


def test_studies_whose_own_values_are_noise_are_ignored():
    truth, noise = values_of(0)
    mean, _ = library({"noise": noise, "like": truth})
    assert mean.studies == ("like",)


def test_studies_that_contradict_the_measurements_have_no_weight():
    truth, _ = values_of(0)
    mean, known = library({"reversed": -truth})
    here = known.problem.space.sample(20, np.random.default_rng(5))
    chosen = mean.weigh(mean.members(here), known.truth(here).columns["f2"])
    assert chosen.trust == 0.0
    assert chosen.text == "trust 0.00; no weight: reversed"


def test_a_perfect_ranking_of_five_designs_has_a_chance_of_one_in_all_their_orders():
    values = np.arange(5.0)
    found = chance_of_agreement([(values, values[:, None])], np.random.default_rng(0))
    assert found == pytest.approx(1 / 120)


def test_the_chance_of_agreement_allows_for_the_number_of_studies():
    rng = np.random.default_rng(1)
    chances = [chance_of_agreement([(rng.random(7), rng.random((7, 20)))], rng) for _ in range(40)]
    assert np.mean(np.array(chances) <= 0.05) <= 0.15  # 0.64 without the allowance
    assert np.mean(chances) == pytest.approx(0.5, abs=0.15)


def test_one_related_study_among_many_is_found_and_a_reversed_one_is_not():
    rng = np.random.default_rng(2)
    values, others = rng.random(12), rng.random((12, 9))
    like = np.column_stack([others, values + 0.2 * rng.random(12)])
    assert chance_of_agreement([(values, like)], rng) <= 0.01
    assert chance_of_agreement([(values, -values[:, None])], rng) == 1.0


def test_without_studies_of_the_metrics_nothing_agrees():
    rng = np.random.default_rng(3)
    assert chance_of_agreement([], rng) == 1.0
    assert chance_of_agreement([(np.arange(6.0), np.zeros((6, 2)))], rng) == 1.0
