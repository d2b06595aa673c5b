"""Tests and effect sizes, against SciPy's own and numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dse.analysis.significance import a12, holm, interval, least_p, paired_p, unpaired_p

RNG = np.random.default_rng(5)
FIRST, SECOND = RNG.random(9), RNG.random(9) + 0.2


def test_pairs_are_tested_as_scipy_does_it() -> None:
    assert paired_p(FIRST, SECOND) == stats.wilcoxon(FIRST, SECOND, method="exact").pvalue


def test_two_samples_are_tested_as_scipy_does_it() -> None:
    wanted = stats.mannwhitneyu(FIRST, SECOND[:7], method="exact").pvalue
    assert unpaired_p(FIRST, SECOND[:7]) == wanted


@pytest.mark.parametrize("size", range(1, 9))
def test_pairs_that_all_agree_have_the_least_chance(size: int) -> None:
    wins = np.arange(1.0, size + 1)
    assert paired_p(wins, np.zeros(size)) == pytest.approx(least_p(size, size, paired=True))


@pytest.mark.parametrize(("first", "second"), [(3, 3), (4, 6), (1, 9), (1, 1)])
def test_samples_that_lie_apart_have_the_least_chance(first: int, second: int) -> None:
    low, high = np.arange(float(first)), 100 + np.arange(float(second))
    assert unpaired_p(low, high) == pytest.approx(least_p(first, second, paired=False))


@pytest.mark.parametrize("size", [3, 5, 8])
def test_ties_make_no_smaller_chance_than_there_can_be(size: int) -> None:
    same = np.ones(size)  # the normal approximation would tell 0.043 of five
    assert paired_p(same, np.zeros(size)) == pytest.approx(least_p(size, size, paired=True))
    assert unpaired_p(same, np.zeros(size)) >= least_p(size, size, paired=False) - 1e-12


@pytest.mark.parametrize(("alone", "chance"), [(3.0, 0.5), (2.0, 1.0), (0.0, 0.5)])
def test_one_number_beside_ties_is_one_place_of_all(alone: float, chance: float) -> None:
    # Of four places one is the single number's own: 2 * 1/4; amid the ties it tells nothing.
    single, ties = np.array([alone]), np.array([1.0, 2.0, 2.0])
    assert unpaired_p(single, ties) == unpaired_p(ties, single) == chance


def test_equal_numbers_tell_nothing() -> None:
    assert paired_p(np.ones(6), np.ones(6)) == 1.0
    assert unpaired_p(np.ones(6), np.ones(4)) == 1.0


def test_holm_multiplies_the_least_by_all_and_the_last_by_one() -> None:
    # Holm 1979: 3 * 0.01; 2 * 0.02; 0.03 is not less than what came before it.
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


def test_holm_stays_a_chance() -> None:
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_never_below_the_chance_nor_above_bonferroni(chances: list[float]) -> None:
    corrected = np.array(holm(chances))
    assert (corrected >= np.array(chances)).all()
    assert (corrected <= np.minimum(np.array(chances) * len(chances), 1.0) + 1e-12).all()


def test_a12_counts_wins_and_half_of_the_ties() -> None:
    # Of 2 * 3 pairs (2 or 4 against 1, 2, 5): three wins, one tie, two losses.
    assert a12(np.array([2.0, 4.0]), np.array([1.0, 2.0, 5.0])) == pytest.approx(3.5 / 6)


def test_a12_is_the_share_of_the_mann_whitney_statistic() -> None:
    statistic = stats.mannwhitneyu(FIRST, SECOND).statistic
    assert a12(FIRST, SECOND) == pytest.approx(statistic / (len(FIRST) * len(SECOND)))


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_lies_around_the_difference_and_is_the_same_each_time(paired: bool) -> None:
    low, high = interval(FIRST, SECOND, paired=paired)
    assert low < np.median(FIRST) - np.median(SECOND) < high
    assert interval(FIRST, SECOND, paired=paired) == (low, high)


def test_a_single_number_has_no_interval() -> None:
    assert interval(FIRST[:1], SECOND, paired=False) is None


@pytest.mark.slow
def test_the_interval_holds_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    found = [interval(*rng.normal([[0.0], [1.0]], 1.0, (2, 20)), paired=False) for _ in range(200)]
    held = np.mean([low <= -1.0 <= high for low, high in found])
    assert held >= 0.92
