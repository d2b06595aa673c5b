"""Without generations: each finished trial competes at once, in whatever order they finish."""

import numpy as np
import pytest

from dse import registry
from dse.optimizers.nsga2 import nsga2
from dse.testing.known import dtlz2, played
from dse.testing.problems import mixed_reals, tiny_codesign, zdt1

METHODS = ("age-moea2", "ctaea", "moead", "nsga2", "nsga3", "rvea", "sms-emoa")
WORKERS = 4


def _made(name, known):
    return registry.make("optimizers", name, known.problem, pop_size=8, steady=True)


def _out_of_order(known, optimizer, budget):
    """What was asked when, and the trials in the order in which four uneven workers ended them."""
    durations = np.random.default_rng(1).exponential(size=budget)
    flying, asked, finished, now = {}, [], [], 0.0
    while len(finished) < budget:
        while len(flying) < WORKERS and len(asked) < budget:
            pending = [trial.design for _, trial in flying.values()]
            (design,) = optimizer.ask(1, pending)
            (trial,) = known.finished([design], len(asked))
            flying[len(asked)] = now + durations[len(asked)], trial
            asked.append((len(finished), pending, design))
        number = min(flying, key=lambda number: flying[number][0])
        now, trial = flying.pop(number)
        finished.append(trial)
        optimizer.tell([trial])
    return asked, finished


def _replayed(optimizer, asked, finished):
    """What another optimizer asks that is told the same, in larger pieces."""
    told, found = 0, []
    for seen, pending, _ in asked:
        optimizer.tell(finished[told:seen])
        told = seen
        found += optimizer.ask(1, pending)
    return found


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("make", [mixed_reals, tiny_codesign])
def test_a_study_whose_trials_end_out_of_order_can_be_replayed(name, make):
    asked, finished = _out_of_order(make(), _made(name, make()), 40)
    assert [trial.number for trial in finished] != sorted(trial.number for trial in finished)
    replayed = _replayed(_made(name, make()), asked, finished)
    assert replayed == [design for _, _, design in asked]


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_study_goes_on_as_an_undisturbed_one(name):
    known = dtlz2(3)
    trials = played(known, undisturbed := _made(name, known), 30)
    resumed = _made(name, known)
    resumed.tell(trials)
    assert resumed.ask(3) == undisturbed.ask(3)
    assert resumed.parents == undisturbed.parents


def test_a_good_trial_is_a_parent_as_soon_as_it_is_told():
    known = zdt1(2)
    worse = known.problem.space.batch([{"x0": x, "x1": 0.9} for x in (0.1, 0.3, 0.6, 0.9)])
    better = known.problem.space.batch([{"x0": 0.3, "x1": 0.0}])
    trials = known.finished([*worse, *better])
    by_trial = nsga2(known.problem, pop_size=4, steady=True)
    by_trial.tell(trials)
    by_generation = nsga2(known.problem, pop_size=4)
    by_generation.tell(trials)
    assert trials[4] in by_trial.parents
    assert trials[4] not in by_generation.parents


def test_it_likes_to_be_asked_for_one_at_a_time():
    assert nsga2(zdt1().problem, pop_size=30).batch == 30
    assert nsga2(zdt1().problem, pop_size=30, steady=True).batch == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsga2", "sms-emoa"])
def test_with_uneven_workers_it_beats_random_search(name):
    shares = {"random": [], name: []}
    for seed in range(3):
        known = zdt1().seeded(seed)
        shares["random"].append(
            known.share(played(known, registry.make("optimizers", "random", known.problem), 200))
        )
        shares[name].append(known.share(_out_of_order(known, _made(name, known), 200)[1]))
    assert np.median(shares[name]) > np.median(shares["random"])
