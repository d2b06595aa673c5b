"""Trained network with images for retraining and for evaluation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dse_evaluators.compression.retraining import sgd
from dse_evaluators.compression.retraining.distillation import DistillationLoss
from dse_evaluators.compression.retraining.retrained_networks import MODELS, TAIL, Circumstances
from dse_evaluators.compression.retraining.sgd import Augmented, LearningRateSchedule
from dse_evaluators.workloads import digits_cnn, mnist_cnn
from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.image_training import as_arrays
from dse_evaluators.workloads.images import ImageDataset, halve_examples
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.mnist import mnist
from dse_evaluators.workloads.network import (
    Affines,
    LayerWeights,
    NetworkStage,
    forward,
    shape,
    stages,
)
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, Shapes, load_or_make

_EPOCHS = 60

_RATE = 0.05

COPIES = 4
"""Copies of each evaluated image, with different noise each; all images, then all again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Training, search and test images of a model, and its shipped weights, if any.

    ``shared`` returns the weights; a model without them is trained.
    """

    train: ImageDataset
    search: ImageDataset
    test: ImageDataset
    shared: Callable[[], Affines] | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskData:
    """Trained network and data for a retraining method; ``name`` identifies both in the cache."""

    name: str
    layers: tuple[Layer, ...]
    network: tuple[NetworkStage, ...]
    whole: Affines
    images: Tensor  # (n, 1, height, width), for training
    labels: Tensor  # (n,)
    search: LabelledImages
    test: LabelledImages
    seen: Augmented

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits of the uncompressed network for images, (n, classes)."""
        return forward(self.network, self.whole, images)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledImages:
    """Images of one split for evaluation, with their labels."""

    images: Tensor
    labels: Tensor


@lru_cache(maxsize=16)
def load_task_data(circumstances: Circumstances, seed: int) -> TaskData:
    """Return the uncompressed network with its data; the network is trained if not cached.

    With the default conditions, the network that the workload provides, if any, is used for every
    seed.

    Raises:
        PluginError: the asset with the images is not installed.
    """
    model, pictures = MODELS[circumstances.model], pictures_of(circumstances.model)
    train = _thin_tail(pictures.train, circumstances.tail_keep, seed)
    seen = Augmented(shift=model.shift, noise=circumstances.noise)
    plain = circumstances == Circumstances(model=circumstances.model)
    name = _name(circumstances, train, seed)
    if plain and pictures.shared:
        whole = pictures.shared()
    else:
        whole = _whole(name, model.layers, train, seen, seed)
    return TaskData(
        name=_further(name, whole),
        layers=model.layers,
        network=stages(model.layers),
        whole=whole,
        images=torch.tensor(train.images),
        labels=torch.tensor(train.labels),
        search=_labelled_images(pictures.search, circumstances.noise, seed=1),
        test=_labelled_images(pictures.test, circumstances.noise, seed=2),
        seen=seen,
    )


def start(layers: Sequence[Layer], seed: int) -> Affines:
    """Return random initial weights with zero biases, by He's initialization for ReLU.

    Source:
        He et al., Delving Deep into Rectifiers, 2015, eq. 10.
    """
    chance = torch.Generator().manual_seed(seed)
    affines = []
    for layer in layers:
        weight = torch.randn(shape(layer), generator=chance)
        affines.append(
            LayerWeights(weight * math.sqrt(2 / weight[0].numel()), torch.zeros(layer.filters))
        )
    return tuple(affines)


def as_affines(layers: Sequence[Layer], arrays: Arrays) -> Affines:
    """Return each layer's weights and bias from the arrays of :func:`as_arrays`."""
    return tuple(
        LayerWeights(
            torch.tensor(arrays[f"{x.name}.weight"]), torch.tensor(arrays[f"{x.name}.bias"])
        )
        for x in layers
    )


def shapes_of(layers: Sequence[Layer]) -> Shapes:
    """Return the shapes of the arrays of :func:`as_arrays`."""
    found: dict[str, tuple[int, ...]] = {}
    for layer in layers:
        found[f"{layer.name}.weight"] = shape(layer)
        found[f"{layer.name}.bias"] = (layer.filters,)
    return found


def _whole(
    name: str, layers: tuple[Layer, ...], train: ImageDataset, seen: Augmented, seed: int
) -> Affines:
    """Return the network trained from random weights; cached on disk."""

    def make() -> Arrays:
        with deterministic():
            return as_arrays(layers, _train_network(layers, train, seen, seed))

    return as_affines(layers, load_or_make(f"whole-{name}", shapes_of(layers), make))


def _train_network(
    layers: tuple[Layer, ...], train: ImageDataset, seen: Augmented, seed: int
) -> Affines:
    affines = start(layers, seed)
    tensors = [
        tensor.requires_grad_() for affine in affines for tensor in (affine.weight, affine.bias)
    ]
    images, labels = torch.tensor(train.images), torch.tensor(train.labels)
    network = stages(layers)
    sgd.descend(
        tensors,
        lambda shown: forward(network, affines, shown),
        LearningRateSchedule(
            updates=_EPOCHS * sgd.updates_per_epoch(len(labels)), start_rate=_RATE
        ),
        batches=sgd.training_batches(images, labels, seen, None, seed),
        distillation=DistillationLoss(),
    )
    return tuple(LayerWeights(affine.weight.detach(), affine.bias.detach()) for affine in affines)


def _thin_tail(train: ImageDataset, keep: float, seed: int) -> ImageDataset:
    """Return the training examples with only a fraction ``keep`` of each class in :data:`TAIL`."""
    if keep == 1:
        return train
    rng = np.random.default_rng(seed)
    rows = []
    for label in np.unique(train.labels):
        found = rng.permutation(np.flatnonzero(train.labels == label))
        rows.append(found[: round(keep * len(found))] if label in TAIL else found)
    return train.at(np.sort(np.concatenate(rows)))


def _labelled_images(examples: ImageDataset, noise: float, *, seed: int) -> LabelledImages:
    images, labels = torch.tensor(examples.images), torch.tensor(examples.labels)
    if not noise:
        return LabelledImages(images=images, labels=labels)
    chance = torch.Generator().manual_seed(seed)
    images = images.repeat(COPIES, 1, 1, 1)
    noisy = images + noise * torch.randn(images.shape, generator=chance)
    return LabelledImages(images=noisy, labels=labels.repeat(COPIES))


def _name(circumstances: Circumstances, train: ImageDataset, seed: int) -> str:
    text = f"{circumstances} {MODELS[circumstances.model]} {seed} {_EPOCHS} {_RATE}"
    recipe = hashlib.sha256(f"{text} {torch.__version__}".encode())
    recipe.update(train.images.tobytes())
    recipe.update(train.labels.tobytes())
    return f"{circumstances.model}-{recipe.hexdigest()[:16]}"


def _further(name: str, whole: Affines) -> str:
    """Return the cache key ``name`` extended by a hash of the weights."""
    recipe = hashlib.sha256(name.encode())
    for affine in whole:
        recipe.update(affine.weight.numpy().tobytes())
        recipe.update(affine.bias.numpy().tobytes())
    return f"{name}-{recipe.hexdigest()[:16]}"


def pictures_of(model: str) -> Pictures:
    """Return the images on which a built-in model is trained and evaluated.

    Raises:
        PluginError: the asset with the images is not installed.
    """
    return _PICTURES[model]()
