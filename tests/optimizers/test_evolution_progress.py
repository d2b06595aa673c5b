"""Every evolutionary method finds what random search does not, with two objectives or six."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dse import registry
from dse.analysis.indicators import igd_plus
from dse.core.expressions.parser import parse
from dse.core.objective import Limit
from dse.testing.known import dtlz2, played
from dse.testing.problems import tiny_codesign, zdt1

METHODS = ("age-moea2", "ctaea", "moead", "nsga2", "nsga3", "rvea", "sms-emoa")
SEEDS = range(5)


@cache
def _median_share(name, make, budget):
    shares = []
    for seed in SEEDS:
        known = make().seeded(seed)
        optimizer = registry.make("optimizers", name, known.problem)
        shares.append(known.share(played(known, optimizer, budget, at_once=24)))
    return float(np.median(shares))


@cache
def _median_distance(name):
    """From the exact front of DTLZ2 with six objectives, after 1,200 trials."""
    distances = []
    for seed in SEEDS[:3]:
        known = dtlz2().seeded(seed)
        optimizer = registry.make("optimizers", name, known.problem)
        trials = played(known, optimizer, 1_200, at_once=56)
        distances.append(igd_plus(known.problem.trial_losses(trials), known.front))
    return float(np.median(distances))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("make", "budget"), [(zdt1, 240), (tiny_codesign, 120)])
def test_it_beats_random_search(name, make, budget):
    assert _median_share(name, make, budget) > _median_share("random", make, budget)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["age-moea2", "moead", "nsga3", "rvea"])
def test_with_six_objectives_it_comes_nearer_to_the_front_than_nsga2_and_random_search(name):
    assert _median_distance(name) < _median_distance("random")
    assert _median_distance(name) < _median_distance("nsga2")


def _narrow(seed):
    """ZDT1 where one design in some forty keeps the limit."""
    known = zdt1(4).seeded(seed)
    limit = Limit(text="f2 <= f1 + 1", slack=parse("f1 + 1 - f2"))
    return replace(known, problem=replace(known.problem, limits=(limit,)))


def _kept(name, seed):
    known = _narrow(seed)
    optimizer = registry.make("optimizers", name, known.problem)
    return int(known.problem.feasible(played(known, optimizer, 192, at_once=24)).sum())


@pytest.mark.parametrize("name", METHODS)
def test_it_finds_its_way_into_narrow_limits(name):
    kept = [_kept(name, seed) for seed in SEEDS[:3]]
    by_chance = [_kept("random", seed) for seed in SEEDS[:3]]
    assert np.median(kept) > 2 * np.median(by_chance)
