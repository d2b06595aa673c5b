"""Training, search and test images of each model, and its trained weights if shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dse_evaluators.workloads import digits_cnn, mnist_cnn
from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.images import ImageDataset, halve_examples
from dse_evaluators.workloads.mnist import mnist
from dse_evaluators.workloads.network import Affines


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Training, search and test images; ``shared`` returns the workload's trained weights.

    A model without shared weights is trained here.
    """

    train: ImageDataset
    search: ImageDataset
    test: ImageDataset
    shared: Callable[[], Affines] | None


def pictures_of(model: str) -> Pictures:
    """Return the images of a model.

    Raises:
        PluginError: the asset with the images is not installed.
    """
    return _PICTURES[model]()


def _digits_cnn() -> Pictures:
    return _digits(digits_cnn.load_weights)


def _digits_mlp() -> Pictures:
    return _digits(None)


def _digits(shared: Callable[[], Affines] | None) -> Pictures:
    data = digits()
    search, test = halve_examples(data.held_out)
    return Pictures(train=data.train, search=search, test=test, shared=shared)


def _mnist_cnn() -> Pictures:
    data = mnist()
    return Pictures(
        train=data.train,
        search=data.search,
        test=data.test,
        shared=lambda: mnist_cnn.mnist_cnn().affines,
    )


_PICTURES: Mapping[str, Callable[[], Pictures]] = {
    "digits-cnn": _digits_cnn,
    "digits-mlp": _digits_mlp,
    "mnist-cnn": _mnist_cnn,
}
