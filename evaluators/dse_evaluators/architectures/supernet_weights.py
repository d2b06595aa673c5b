"""Weights of a supernet: training by sampled networks, and the weights that a network inherits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.architectures.shared_networks import (
    SharedNetwork,
    draw_network,
    largest_network,
    smallest_network,
)
from dse_evaluators.workloads.image_training import ImageTraining, load_or_train
from dse_evaluators.workloads.images import ImageDataset
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import Affines, LayerWeights, forward, shape, stages
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import load_or_make


@dataclass(frozen=True, slots=True, kw_only=True)
class SupernetTraining:
    """Settings of the training; part of the cache key of its weights.

    In each step, the largest, the smallest and ``drawn`` random networks are trained on a batch.
    """

    epochs: int = 60
    batch: int = 32
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    drawn: int = 2
    seed: int = 0


Weights = Mapping[str, Tensor]


def load_or_train_supernet(examples: ImageDataset, training: SupernetTraining) -> Weights:
    """Return the weights of a supernet by name, from the cache or by training."""
    layers = _largest_layers(examples)
    shapes = {f"{one.name}.weight": shape(one) for one in layers}
    shapes |= {f"{one.name}.bias": (one.filters,) for one in layers}
    recipe = hashlib.sha256(f"{layers} {training} {torch.__version__}".encode())
    recipe.update(examples.images.tobytes() + examples.labels.tobytes())
    arrays = load_or_make(
        f"supernet-{recipe.hexdigest()[:16]}",
        shapes,
        lambda: {name: one.numpy() for name, one in train_supernet(examples, training).items()},
    )
    return {name: torch.tensor(one) for name, one in arrays.items()}


def load_or_train_alone(
    net: SharedNetwork, examples: ImageDataset, seed: int, epochs: int
) -> Affines:
    """Return the weights of a network that was trained alone, from the cache or by training.

    All settings but the examples of a step's networks are those of the supernet.
    """
    layers = net.layers(examples.images.shape[1], _count_classes(examples))
    training = ImageTraining(
        epochs=epochs, batch=32, peak_rate=3e-3, weight_decay=1e-2, shift=1, seed=seed
    )
    return load_or_train("alone", layers, resize_examples(examples, net.resolution), training)


def train_supernet(examples: ImageDataset, training: SupernetTraining) -> Weights:
    """Train the weights that all networks share; the same examples give the same weights.

    Source:
        Yu, Huang: Universally Slimmable Networks, 2019 (the largest, the smallest and random
        networks in each step); Cai et al.: Once-for-All, 2020 (shared depth, kernel, width and
        resolution), without its stages of training and its kernel transformations.
    """
    side, rng = examples.images.shape[-1], np.random.default_rng(training.seed)
    chance = torch.Generator().manual_seed(training.seed)
    images, labels = torch.tensor(examples.images), torch.tensor(examples.labels)
    ends = largest_network(side), smallest_network(side)
    with deterministic():
        weights = start_weights(_largest_layers(examples), chance)
        steps = len(labels) // training.batch
        optimizer = torch.optim.AdamW(
            weights.values(), lr=training.peak_rate, weight_decay=training.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training.peak_rate, total_steps=training.epochs * steps
        )
        for _ in range(training.epochs):
            order = torch.randperm(len(labels), generator=chance)
            for rows in order[: steps * training.batch].reshape(steps, training.batch):
                optimizer.zero_grad()
                batch = _shift(images[rows], chance)
                drawn = (draw_network(side, rng) for _ in range(training.drawn))
                for net in (*ends, *drawn):
                    functional.cross_entropy(_run(net, weights, batch), labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return {name: one.detach() for name, one in weights.items()}


def inherit(net: SharedNetwork, weights: Weights) -> Affines:
    """Return the weights of a network: the first filters and channels, the middle of kernels.

    Weights are scaled up as the number of inputs of a filter is lower than in the supernet, so that
    outputs keep their variance.
    """
    found, inputs = list[LayerWeights](), weights["conv1_1.weight"].shape[1]
    for stage, place, kernel in net.places():
        name, width = f"conv{stage}_{place}", net.widths[stage - 1]
        whole = weights[f"{name}.weight"]
        edge = (whole.shape[-1] - kernel) // 2
        inner = slice(edge, edge + kernel)
        part = whole[:width, :inputs, inner, inner]
        scale = (whole[0].numel() / part[0].numel()) ** 0.5
        found.append(LayerWeights(part * scale, weights[f"{name}.bias"][:width]))
        inputs = width
    last = weights["classifier.weight"]
    scale = (last.shape[1] / inputs) ** 0.5
    return (*found, LayerWeights(last[:, :inputs] * scale, weights["classifier.bias"]))


def resize_examples(examples: ImageDataset, side: int) -> ImageDataset:
    """Return the images with another side."""
    images = resize(torch.tensor(examples.images), side).numpy()
    return ImageDataset(images=images, labels=examples.labels)


def resize(images: Tensor, side: int) -> Tensor:
    """Return images with another side, by bilinear interpolation with a filter."""
    if images.shape[-1] == side:
        return images
    return functional.interpolate(images, size=(side, side), mode="bilinear", antialias=True)


def _run(net: SharedNetwork, weights: Weights, images: Tensor) -> Tensor:
    layers = net.layers(images.shape[1], len(weights["classifier.bias"]))
    return forward(stages(layers), inherit(net, weights), resize(images, net.resolution))


def start_weights(layers: tuple[Layer, ...], chance: torch.Generator) -> dict[str, Tensor]:
    """Draw random weights that preserve the scale of ReLU activations; biases are zero."""
    found = dict[str, Tensor]()
    for one in layers:
        weight = torch.randn(shape(one), generator=chance)
        weight *= (2 / weight[0].numel()) ** 0.5
        found[f"{one.name}.weight"] = weight.requires_grad_()
        found[f"{one.name}.bias"] = torch.zeros(one.filters).requires_grad_()
    return found


def _shift(images: Tensor, chance: torch.Generator) -> Tensor:
    """Shift all images by one random offset of at most a pixel, padded with zeros."""
    side = images.shape[-1]
    down, right = torch.randint(0, 3, (2,), generator=chance).tolist()
    return functional.pad(images, (1, 1, 1, 1))[..., down : down + side, right : right + side]


def _largest_layers(examples: ImageDataset) -> tuple[Layer, ...]:
    net = largest_network(examples.images.shape[-1])
    return net.layers(examples.images.shape[1], _count_classes(examples))


def _count_classes(examples: ImageDataset) -> int:
    return int(examples.labels.max()) + 1
