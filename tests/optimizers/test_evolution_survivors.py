"""Who stays and who mates, method by method."""

import numpy as np
import pytest

from dse import registry
from dse.optimizers.age_moea2 import by_shape
from dse.optimizers.ctaea import TwoArchives
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.evolution import Pool
from dse.optimizers.evolutionary.reference_directions import directions_of
from dse.optimizers.moead import MOEADSelection
from dse.optimizers.nsga2 import by_rank_and_crowding
from dse.optimizers.nsga3 import Niches
from dse.optimizers.rvea import APDSelection
from dse.optimizers.sms_emoa import by_contribution

SIZE = 12
DIRECTIONS = directions_of(3, SIZE, "das-dennis")
METHODS = {
    "age-moea2": lambda: Ranked(by_shape, SIZE),
    "ctaea": lambda: TwoArchives(DIRECTIONS),
    "moead": lambda: MOEADSelection(DIRECTIONS, 4),
    "nsga2": lambda: Ranked(by_rank_and_crowding, SIZE),
    "nsga3": lambda: Ranked(Niches(3, SIZE, "das-dennis"), SIZE),
    "rvea": lambda: Ranked(APDSelection(3, SIZE, kind="das-dennis", trials=100), SIZE),
    "sms-emoa": lambda: Ranked(by_contribution, SIZE),
}
TINY_UNITS = np.array([1.0, 2.0**-40, 2.0**30])


@pytest.fixture(params=sorted(METHODS))
def method(request):
    return METHODS[request.param]


def _pool(count=30, seed=0, outside=(), scale=1.0, parents=0):
    """Rows about a sphere's eighth, half of them dominated."""
    rng = np.random.default_rng(seed)
    points = np.abs(rng.normal(size=(count, 3)))
    points *= rng.uniform(1, 1.6, (count, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    violations = np.zeros(count)
    violations[list(outside)] = np.arange(1, len(outside) + 1)
    return Pool(losses=points * scale, violations=violations, parents=parents, finished=count)


def _survivors(survival, pool):
    return survival.survivors(pool, np.random.default_rng(1)).tolist()


def test_each_stays_once_and_no_more_than_there_is_room_for(method):
    stay = _survivors(method(), _pool())
    assert len(set(stay)) == len(stay) <= 2 * SIZE
    assert set(stay) <= set(range(30))


def test_the_units_of_the_losses_do_not_matter(method):
    assert _survivors(method(), _pool()) == _survivors(method(), _pool(scale=TINY_UNITS))


def test_few_newcomers_may_all_stay(method):
    assert _survivors(method(), _pool(count=1)) == [0]


def test_equal_losses_are_no_trouble(method):
    pool = Pool(losses=np.ones((30, 3)), violations=np.zeros(30), parents=0, finished=30)
    assert _survivors(method(), pool)


def test_mates_are_among_those_who_stayed(method):
    survival = method()
    stay = _survivors(survival, _pool())
    mates = survival.mates(50, np.random.default_rng(2))
    assert mates.shape == (50, 2)
    assert set(mates.ravel().tolist()) <= set(range(len(stay)))


def test_a_later_generation_builds_on_the_parents(method):
    survival = method()
    first = _pool()
    stay = _survivors(survival, first)
    newcomers = _pool(seed=5, count=9)
    pool = Pool(
        losses=np.concatenate([first.losses[stay], newcomers.losses]),
        violations=np.zeros(len(stay) + 9),
        parents=len(stay),
        finished=39,
    )
    assert set(_survivors(survival, pool)) & set(range(len(stay)))


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"ctaea", "moead"}))
def test_those_within_all_limits_stay_first_and_then_the_least_outside(name):
    stay = _survivors(METHODS[name](), _pool(count=14, outside=range(5, 14)))
    outside = [row for row in stay if row >= 5]
    assert len(stay) == SIZE
    assert outside == list(range(5, 5 + len(outside)))


def test_a_mate_within_all_limits_is_preferred():
    survival = Ranked(by_rank_and_crowding, SIZE)
    stay = survival.survivors(_pool(count=12, outside=range(6, 12)), np.random.default_rng(0))
    mates = stay[survival.mates(600, np.random.default_rng(0))]
    assert (mates < 6).mean() == pytest.approx(0.75, abs=0.04)  # one less than two both outside


def test_the_diverse_archive_keeps_some_beyond_the_limits():
    stay = _survivors(TwoArchives(DIRECTIONS), _pool(count=60, outside=range(20, 60)))
    assert max(stay) >= 20
    assert min(stay) < 20


def test_a_direction_is_held_by_who_is_less_outside():
    survival = MOEADSelection(DIRECTIONS, len(DIRECTIONS))
    stay = _survivors(survival, _pool(count=20, outside=range(19)))
    assert stay == [19]


def test_who_adds_least_hypervolume_goes():
    losses = np.array([[0.0, 1.0], [0.49, 0.5], [0.5, 0.49], [1.0, 0.0], [2.0, 2.0]])
    rows, merits = by_contribution(losses, 4, finished=5, rng=np.random.default_rng(0))
    assert sorted(rows.tolist()) == [0, 1, 2, 3]
    rows, merits = by_contribution(losses, 3, finished=5, rng=np.random.default_rng(0))
    assert len({1, 2} & set(rows.tolist())) == 1
    assert merits.ravel().tolist() == [0, 0, 0]


def test_each_direction_keeps_one_where_it_has_one():
    directions = directions_of(2, 5, "das-dennis")
    losses = np.concatenate([directions, directions[[2, 2, 2]] + 1e-3])
    rows, _ = Niches(2, 5, "das-dennis")(losses, 5, finished=8, rng=np.random.default_rng(0))
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("told", "kept"), [(0, 1), (100, 0)])
def test_the_angle_counts_more_the_later_it_is(told, kept):
    """Of two beside one direction the nearer to the ideal comes first, later the better aimed."""
    losses = np.array([[0.55, 0.55], [0.56, 0.45], [0.0, 1.0], [1.0, 0.0]])
    select = APDSelection(2, 3, kind="das-dennis", trials=100)
    rows, _ = select(losses, 3, finished=told, rng=np.random.default_rng(0))
    assert sorted(rows.tolist()) == [kept, 2, 3]


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"age-moea2", "nsga2", "sms-emoa"}))
def test_a_method_of_directions_says_that_one_objective_has_none(name):
    from dse.errors import StudyError
    from dse.testing.problems import one_design

    with pytest.raises(StudyError, match="only one"):
        registry.make("optimizers", name, one_design().problem)
