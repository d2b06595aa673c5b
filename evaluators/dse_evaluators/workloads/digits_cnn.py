"""Workload ``digits-cnn``: a CNN for scikit-learn's digits, trained in seconds, then cached."""

from __future__ import annotations

from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.image_classifier import ImageClassifier
from dse_evaluators.workloads.image_training import ImageTraining, load_or_train
from dse_evaluators.workloads.images import halve_examples
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import Affines

TRAINING = ImageTraining(epochs=30, batch=32, peak_rate=3e-3, weight_decay=1e-2, shift=1, seed=0)


def load_weights() -> Affines:
    """Return the weights of the network ``digits-cnn``, from the cache or by training."""
    return load_or_train("digits-cnn", DIGITS_CNN, digits().train, TRAINING)


def digits_cnn() -> ImageClassifier:
    """Return the workload ``digits-cnn``; ``search`` and ``test`` halve the held-out images."""
    data = digits()
    search, test = halve_examples(data.held_out)
    return ImageClassifier(
        name="digits-cnn",
        layers=DIGITS_CNN,
        affines=load_weights(),
        calibrating=data.calibration,
        judging={"search": search, "test": test},
    )
