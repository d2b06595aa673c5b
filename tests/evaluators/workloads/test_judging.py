"""Quality as the reference libraries tell it, and mismatches by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats
from sklearn import metrics

from dse_evaluators.workloads import judging

RNG = np.random.default_rng(7)
LOGITS = RNG.normal(0, 3, (500, 10)).astype(np.float32)
REFERENCE = (LOGITS + RNG.normal(0, 0.5, (500, 10))).astype(np.float32)
LABELS = RNG.integers(0, 10, 500)
SHARES = special.softmax(LOGITS.astype(np.float64), axis=1)
WHOLE = special.softmax(REFERENCE.astype(np.float64), axis=1)
RATED = np.round(RNG.normal(0, 1, 300), 1)  # with ties
TRUTHS = np.round(RATED + RNG.normal(0, 1, 300), 1)
CLICKS = (RATED + RNG.normal(0, 2, 300) > 0).astype(np.int64)


def test_accuracy_is_scikit_learns():
    expected = metrics.accuracy_score(LABELS, LOGITS.argmax(axis=1))
    assert judging.accuracy(LOGITS, LABELS) == expected


def test_cross_entropy_is_scikit_learns():
    expected = metrics.log_loss(LABELS, SHARES, labels=range(10))
    assert judging.cross_entropy_nat(LOGITS, LABELS) == pytest.approx(expected, rel=1e-12)


def test_equal_logits_of_two_characters_are_one_bit_per_character():
    assert judging.bits_per_character(np.zeros((4, 2)), np.array([0, 1, 1, 0])) == 1.0


def test_divergence_is_scipys_relative_entropy():
    expected = stats.entropy(WHOLE, SHARES, axis=1).mean()
    assert judging.divergence_nat(LOGITS, REFERENCE) == pytest.approx(expected, rel=1e-10)


def test_divergence_survives_logits_that_leave_a_class_no_share():
    logits = np.array([[0.0, 2000.0]])
    assert judging.divergence_nat(logits, np.zeros((1, 2))) == pytest.approx(1000 - np.log(2))


def test_cosine_is_scikit_learns():
    expected = metrics.pairwise.paired_distances(LOGITS, REFERENCE, metric="cosine").mean()
    assert judging.cosine(LOGITS, REFERENCE) == pytest.approx(1 - expected, rel=1e-6)


def test_a_zero_vector_has_no_direction_to_share():
    assert judging.cosine(np.zeros((1, 3)), np.ones((1, 3))) == 0.0


def test_spearman_is_scipys_with_ties():
    expected = stats.spearmanr(RATED, TRUTHS).statistic
    assert judging.spearman(RATED, TRUTHS) == pytest.approx(expected, rel=1e-12)


def test_a_constant_score_ranks_nothing():
    assert judging.spearman(np.ones(5), np.arange(5)) == 0.0


def test_auc_is_scikit_learns_with_ties():
    expected = metrics.roc_auc_score(CLICKS, RATED)
    assert judging.auc(RATED, CLICKS) == pytest.approx(expected, rel=1e-12)


def test_mismatches_are_those_counted_by_hand():
    reference = np.eye(3)[[0, 0, 1, 1, 2, 2]]
    logits = np.eye(3)[[0, 1, 1, 0, 0, 2]]  # rows 1, 3 and 4 differ
    labels = np.array([0, 0, 1, 0, 2, 2])  # row 3 is one that the reference has wrong
    found = judging.mismatches(logits, reference, labels, tail=(2,))
    assert found == {
        "mismatch": 3 / 6,
        "mismatch_on_correct": 2 / 6,
        "tail_gap": 1 / 2 - 2 / 4,
    }


def test_without_a_tail_there_is_no_tail_gap():
    assert "tail_gap" not in judging.mismatches(LOGITS, REFERENCE, LABELS)


def test_a_classifier_is_told_of_by_all_that_is_promised():
    assert tuple(judging.measure_classifier(LOGITS, REFERENCE, LABELS)) == judging.CLASSIFIER
