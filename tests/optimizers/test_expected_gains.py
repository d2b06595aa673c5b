from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm, norm

from dse.core.pareto import hypervolume
from dse.optimizers.bayesian.expected_improvement import Archive, expected_gains, open_boxes
from dse.optimizers.bayesian.metric_model import Prediction
from dse.optimizers.bayesian.output_transform import OutputTransform

PLAIN = OutputTransform(kind="plain", sign=1, centre=0.0, width=1.0)
LOG = OutputTransform(kind="log", sign=1, centre=0.2, width=0.5)
DOWN = OutputTransform(kind="log", sign=-1, centre=-0.2, width=0.5)
RATE = OutputTransform(kind="logit", sign=-1, centre=-1.0, width=0.8)


def build_prediction(
    warp: OutputTransform, means: list[float], deviations: list[float]
) -> Prediction:
    return Prediction(means=np.array(means), deviations=np.array(deviations), warp=warp)


def sampled(
    archive: Archive, predictions: list[Prediction], front: np.ndarray, draws: int
) -> float:
    """The mean hypervolume gained over many draws of the learnt losses of one setting."""
    rng = np.random.default_rng(5)
    u = np.column_stack([one.at(rng.standard_normal((draws, 1)))[:, 0] for one in predictions])
    before = np.hstack([archive.learnt, archive.known])
    top = np.append(archive.learnt_reference, archive.known_reference)
    gains = [
        hypervolume(
            np.vstack([before, np.hstack([np.tile(row, (len(front), 1)), front])]),
            top,
        )
        for row in u
    ]
    return float(np.mean(gains)) - hypervolume(before, top)


def archive_of(learnt: list[list[float]], known: list[list[float]], columns: int) -> Archive:
    return Archive(
        learnt=np.array(learnt),
        known=np.array(known).reshape(len(learnt), columns),
        learnt_reference=np.full(len(learnt[0]), 2.0),
        known_reference=np.full(columns, 2.0),
    )


@pytest.mark.parametrize("warp", [PLAIN, LOG, DOWN, RATE])
@pytest.mark.parametrize("threshold", [-0.6, -0.2, 0.3, 1.4])
def test_the_expected_improvement_is_the_integral_of_the_distribution(
    warp: OutputTransform, threshold: float
) -> None:
    prediction = build_prediction(warp, [0.3], [0.7])
    below = quad(lambda z: prediction.below(np.array([z]))[0, 0], -30, threshold, limit=400)[0]
    assert prediction.gain(np.array([threshold]))[0, 0] == pytest.approx(below, abs=2e-3)


def test_a_log_normal_prediction_has_scipys_distribution() -> None:
    prediction = build_prediction(LOG, [0.3], [0.7])
    expected = lognorm(s=0.35, scale=np.exp(0.2 + 0.15)).cdf(1.1)
    assert prediction.below(np.array([1.1]))[0, 0] == pytest.approx(expected, rel=1e-12)


def test_one_plain_loss_has_the_textbooks_expected_improvement() -> None:
    prediction = build_prediction(PLAIN, [0.4], [0.5])
    share = (1.0 - 0.4) / 0.5
    expected = 0.5 * (share * norm.cdf(share) + norm.pdf(share))
    assert prediction.gain(np.array([1.0]))[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("columns", [1, 2])
def test_slices_give_what_sampling_gives(columns: int) -> None:
    rng = np.random.default_rng(columns)
    known = rng.uniform(0.2, 1.9, size=(6, columns))
    archive = archive_of(rng.uniform(0.3, 1.8, size=(6, 1)).tolist(), known.tolist(), columns).best
    front = rng.uniform(0.1, 1.5, size=(4, columns))
    prediction = build_prediction(LOG, [0.2], [0.9])
    found = expected_gains(archive, [prediction], [front], np.zeros(1, dtype=int), rng)[0]
    assert found == pytest.approx(sampled(archive, [prediction], front, 8_000), rel=0.03)


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_boxes_give_what_sampling_gives(columns: int) -> None:
    rng = np.random.default_rng(columns)
    archive = archive_of(rng.uniform(0.3, 1.8, size=(8, columns)).tolist(), [[]] * 8, 0).best
    predictions = [build_prediction(PLAIN, [0.6], [0.5]) for _ in range(columns)]
    found = expected_gains(archive, predictions, [np.zeros((1, 0))], np.zeros(1, dtype=int), rng)[0]
    assert found == pytest.approx(sampled(archive, predictions, np.zeros((1, 0)), 20_000), rel=0.05)


def test_darts_give_what_sampling_gives() -> None:
    rng = np.random.default_rng(9)
    archive = archive_of(
        rng.uniform(0.5, 1.8, size=(5, 2)).tolist(), rng.uniform(0.5, 1.8, size=(5, 2)).tolist(), 2
    ).best
    front = rng.uniform(0.2, 1.5, size=(3, 2))
    predictions = [build_prediction(PLAIN, [0.6], [0.4]), build_prediction(PLAIN, [0.9], [0.3])]
    found = expected_gains(archive, predictions, [front], np.zeros(1, dtype=int), rng)[0]
    assert found == pytest.approx(sampled(archive, predictions, front, 8_000), rel=0.06)


def test_a_setting_with_an_empty_conditional_front_gains_nothing() -> None:
    archive = archive_of([[1.0]], [[1.0]], 1)
    prediction = build_prediction(PLAIN, [0.0, 0.0], [1.0, 1.0])
    groups = np.array([-1, 0])
    found = expected_gains(
        archive, [prediction], [np.array([[0.5]])], groups, np.random.default_rng(0)
    )
    assert found[0] == 0 < found[1]


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_open_boxes_and_the_front_fill_the_space_below_the_reference(columns: int) -> None:
    rng = np.random.default_rng(columns)
    front, top = rng.random((30, columns)), np.ones(columns)
    lower, upper = open_boxes(front, top)
    volume = (upper - np.maximum(lower, 0)).prod(axis=1).sum()
    assert volume == pytest.approx(1 - hypervolume(front, top), rel=1e-9)


def test_no_front_leaves_one_open_box() -> None:
    lower, upper = open_boxes(np.zeros((0, 3)), np.ones(3))
    assert (lower == -np.inf).all()
    assert (upper == 1).all()
    assert len(lower) == 1
