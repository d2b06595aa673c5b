"""Training of a small network, given by its layers, on labelled images; weights are cached."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.images import ImageDataset
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import Affines, LayerWeights, forward, shape, stages
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make

Layers = Sequence[Layer]


@dataclass(frozen=True, slots=True)
class ImageTraining:
    """Settings of the training of an image classifier, which identify its cached weights."""

    epochs: int = 30
    batch: int = 32
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    shift: int = 1  # pixels, at most, in each direction
    seed: int = 0


def load_or_train(
    name: str, layers: Layers, examples: ImageDataset, training: ImageTraining
) -> Affines:
    """Return the weights of an image classifier, from the cache or by training."""
    shapes = {f"{layer.name}.weight": shape(layer) for layer in layers}
    shapes |= {f"{layer.name}.bias": (layer.filters,) for layer in layers}
    arrays = load_or_make(
        _name(name, layers, examples, training),
        shapes,
        lambda: as_arrays(layers, train(layers, examples, training)),
    )
    return tuple(
        LayerWeights(
            torch.tensor(arrays[f"{x.name}.weight"]), torch.tensor(arrays[f"{x.name}.bias"])
        )
        for x in layers
    )


def train(layers: Layers, examples: ImageDataset, training: ImageTraining) -> Affines:
    """Train weights from scratch; the same examples give bit-identical weights.

    Source:
        He et al., Delving Deep into Rectifiers, 2015, eq. 10 (start); Loshchilov, Hutter,
        Decoupled Weight Decay Regularization, 2019 (AdamW); Smith, Topin, Super-Convergence,
        2018 (one cycle of the rate).
    """
    chance = torch.Generator().manual_seed(training.seed)
    images = torch.tensor(examples.images)
    labels = torch.tensor(examples.labels)
    with deterministic():
        affines = _start(layers, chance)
        tensors = [tensor for affine in affines for tensor in (affine.weight, affine.bias)]
        steps = len(labels) // training.batch
        optimizer = torch.optim.AdamW(
            tensors, lr=training.peak_rate, weight_decay=training.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training.peak_rate, total_steps=training.epochs * steps
        )
        network = stages(layers)
        for _ in range(training.epochs):
            order = torch.randperm(len(labels), generator=chance)
            for rows in order[: steps * training.batch].reshape(steps, training.batch):
                logits = forward(
                    network, affines, _shift_images(images[rows], training.shift, chance)
                )
                optimizer.zero_grad()
                functional.cross_entropy(logits, labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return tuple(LayerWeights(affine.weight.detach(), affine.bias.detach()) for affine in affines)


def _start(layers: Layers, chance: torch.Generator) -> Affines:
    """Draw random weights that preserve the scale of ReLU activations; biases are zero."""
    affines = []
    for layer in layers:
        weight = torch.randn(shape(layer), generator=chance)
        weight *= math.sqrt(2 / weight[0].numel())
        affines.append(
            LayerWeights(weight.requires_grad_(), torch.zeros(layer.filters).requires_grad_())
        )
    return tuple(affines)


def _shift_images(images: Tensor, most: int, chance: torch.Generator) -> Tensor:
    """Shift all images by one random offset of up to ``most`` pixels, padded with zeros."""
    height, width = images.shape[-2:]
    down, right = torch.randint(0, 2 * most + 1, (2,), generator=chance).tolist()
    padded = functional.pad(images, (most, most, most, most))
    return padded[..., down : down + height, right : right + width]


def as_arrays(layers: Layers, affines: Affines) -> Arrays:
    """Return weights and biases as arrays, named by layer, such as ``conv1.weight``."""
    arrays: Arrays = {}
    for layer, affine in zip(layers, affines, strict=True):
        arrays[f"{layer.name}.weight"] = affine.weight.numpy().astype(np.float32)
        arrays[f"{layer.name}.bias"] = affine.bias.numpy().astype(np.float32)
    return arrays


def _name(name: str, layers: Layers, examples: ImageDataset, training: ImageTraining) -> str:
    """Return a cache key: a hash of layers, training settings, images and PyTorch's version."""
    recipe = hashlib.sha256(f"{tuple(layers)} {training} {torch.__version__}".encode())
    recipe.update(examples.images.tobytes())
    recipe.update(examples.labels.tobytes())
    return f"{name}-{recipe.hexdigest()[:16]}"
