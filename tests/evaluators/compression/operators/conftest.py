"""A network of three layers that reads digits, trained here, and what its layers are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

SEEN = 1_200


@dataclass(frozen=True)
class Perceptron:
    """Weights (outputs, inputs) by name, biases, and the digits that it was not shown."""

    layers: dict[str, np.ndarray]
    biases: dict[str, np.ndarray]
    seen: np.ndarray
    images: np.ndarray
    labels: np.ndarray

    @property
    def biases_by_name(self):
        return {f"{name}.bias": row for name, row in self.biases.items()}

    def inputs(self, name, images):
        """What a layer is given, (n, inputs)."""
        signal = images
        for each in list(self.layers)[: list(self.layers).index(name)]:
            signal = np.maximum(signal @ self.layers[each].T + self.biases[each], 0)
        return signal.astype(np.float32)

    def outputs(self, layers):
        """What the network says of the digits that it was not shown, with these weights."""
        signal = self.images
        for name, weight in layers.items():
            signal = np.maximum(signal, 0) @ weight.T + self.biases[name]
        return signal

    def accuracy(self, layers):
        return float((self.outputs(layers).argmax(axis=1) == self.labels).mean())


@pytest.fixture(scope="session")
def network():
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    model = MLPClassifier((128, 64), max_iter=80, tol=5e-3, n_iter_no_change=5, random_state=0).fit(
        images[:SEEN], labels[:SEEN]
    )
    names = ("first", "second", "last")
    return Perceptron(
        layers={
            name: np.ascontiguousarray(table.T, dtype=np.float32)
            for name, table in zip(names, model.coefs_, strict=True)
        },
        biases={
            name: row.astype(np.float32) for name, row in zip(names, model.intercepts_, strict=True)
        },
        seen=images[:SEEN],
        images=images[SEEN:],
        labels=labels[SEEN:],
    )


@pytest.fixture(scope="session")
def layer(network):
    """The middle layer, (64, 128)."""
    return network.layers["second"]


@pytest.fixture(scope="session")
def inputs(network):
    """What the middle layer is given, (1200, 128)."""
    return network.inputs("second", network.seen)
