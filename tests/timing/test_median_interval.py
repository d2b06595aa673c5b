"""The interval of a median, against tables and against its own promise."""

import math

import numpy as np
import pytest

from dse.evaluation.timing.median_interval import MedianInterval, interval_of_median


@pytest.mark.parametrize(
    ("size", "rank"),
    # Ranks from both ends of the 95 % interval of a median: Conover, Practical Nonparametric
    # Statistics, 3rd edition, table A3 (binomial, p = 1/2).
    [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (30, 10)],
)
def test_the_ranks_are_those_of_the_binomial_table(size, rank):
    found = interval_of_median(np.arange(1.0, size + 1))
    assert (found.low, found.high) == (rank, size + 1 - rank)


def test_five_samples_have_no_interval_of_this_confidence():
    found = interval_of_median(np.arange(5.0))
    assert (found.median, found.low, found.high) == (2.0, -math.inf, math.inf)


def test_the_interval_covers_the_median_of_a_skewed_distribution_as_often_as_stated():
    samples = np.random.default_rng(0).exponential(size=(2000, 31))
    found = [interval_of_median(row) for row in samples]
    share = np.mean([one.low <= math.log(2) <= one.high for one in found])
    assert 0.94 <= share <= 0.98  # exactly .971 at n = 31


def test_an_interval_spans_another_one_and_keeps_its_median():
    one = MedianInterval(median=2.0, low=1.5, high=3.0)
    other = MedianInterval(median=9.0, low=1.0, high=2.5)
    assert one.spanning(other) == MedianInterval(median=2.0, low=1.0, high=3.0)
    assert one.relative_half_width == 0.5
