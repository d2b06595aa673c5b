"""Weights of a supernet: training by sampled networks, and the weights that a network inherits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
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
from dse_evaluators.workloads.images import ImageDataset
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import (
    Affines,
    LayerWeights,
    apply_layer,
    is_dense,
    passed_on,
    shape,
    stages,
)
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import load_or_make

_EPSILON = 1e-5
"""Added to the variance of a filter's outputs, which may be 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupernetTraining:
    """Settings of the supernet's training, which identify its cached weights.

    In each step, the largest, the smallest and ``drawn`` random networks are trained on a batch.
    """

    epochs: int = 60
    batch: int = 32
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    drawn: int = 2
    seed: int = 0


Weights = Mapping[str, Tensor]
Draw = Callable[[np.random.Generator], Sequence[SharedNetwork]]
"""Function that returns the networks of a step of training."""


def load_or_train_supernet(examples: ImageDataset, training: SupernetTraining) -> Weights:
    """Return the supernet's weights, which all networks share, from the cache or by training.

    Source:
        Yu, Huang: Universally Slimmable Networks, 2019 (the largest, the smallest and random
        networks in each step); Cai et al.: Once-for-All, 2020 (shared depth, kernel, width and
        resolution), without its stages of training and its kernel transformations.
    """
    side = examples.images.shape[-1]
    ends = largest_network(side), smallest_network(side)

    def draw(rng: np.random.Generator) -> Sequence[SharedNetwork]:
        return (*ends, *(draw_network(side, rng) for _ in range(training.drawn)))

    return _load_or_train("supernet", ends[0], examples, training, draw)


def load_or_train_alone(
    net: SharedNetwork, examples: ImageDataset, training: SupernetTraining
) -> Weights:
    """Return the weights of a network that is trained alone, from the cache or by training."""
    return _load_or_train("alone", net, examples, training, lambda _: (net,))


def train_weights(
    largest: SharedNetwork, examples: ImageDataset, training: SupernetTraining, draw: Draw
) -> Weights:
    """Train shared weights on the networks that ``draw`` returns; equal seeds, equal weights."""
    rng = np.random.default_rng(training.seed)
    chance = torch.Generator().manual_seed(training.seed)
    images, labels = torch.tensor(examples.images), torch.tensor(examples.labels)
    with deterministic():
        weights = start_weights(layers_for(largest, examples), chance)
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
                for net in draw(rng):
                    logits = run_normalised(net, weights, resize(batch, net.resolution))
                    functional.cross_entropy(logits, labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return {name: one.detach() for name, one in weights.items()}


def run_normalised(
    net: SharedNetwork,
    weights: Weights,
    images: Tensor,  # (n, channels, resolution, resolution)
) -> Tensor:
    """Return logits, (n, classes), with the outputs of filters normalised over the batch."""
    layers = net.layers(images.shape[1], len(weights["classifier.bias"]))
    signal = images
    for stage, layer in zip(stages(layers), layers, strict=True):
        weight, bias = _part(layer, weights)
        if is_dense(layer):
            return apply_layer(stage, LayerWeights(weight, bias), signal)
        outputs = apply_layer(stage, LayerWeights(weight, torch.zeros(layer.filters)), signal)
        gain = weights[f"{layer.name}.gain"][: layer.filters]
        normal = functional.batch_norm(outputs, None, None, gain, bias, True, 0.0, _EPSILON)  # noqa: FBT003
        signal = passed_on(stage, normal + signal if _is_residual(layer) else normal)
    raise AssertionError("a network ends with its classifier")


def inherit(
    net: SharedNetwork,
    weights: Weights,
    images: Tensor,  # (n, channels, side, side)
) -> Affines:
    """Return the weights of a network, with the normalisation over ``images`` folded into them.

    The network has the first filters and channels, the first layers of each stage and the middle of
    kernels. Residual links are folded, too: a convolution of the identity and the weights has both.

    Source:
        Yu, Huang: Universally Slimmable Networks, 2019, section 3.4: statistics for each network.
    """
    found = list[LayerWeights]()
    layers = net.layers(images.shape[1], len(weights["classifier.bias"]))
    with deterministic(), torch.inference_mode():
        signal = resize(images, net.resolution)
        for stage, layer in zip(stages(layers), layers, strict=True):
            weight, bias = _part(layer, weights)
            if not is_dense(layer):
                plain = LayerWeights(weight, torch.zeros(layer.filters))
                outputs = apply_layer(stage, plain, signal).transpose(0, 1).flatten(1)
                variance = outputs.var(1, correction=0)
                gain = weights[f"{layer.name}.gain"][: layer.filters]
                factor = gain / torch.sqrt(variance + _EPSILON)
                bias = bias - factor * outputs.mean(1)
                weight = weight * factor[:, None, None, None]
                if _is_residual(layer):
                    weight = weight + _identity(layer)
            found.append(LayerWeights(weight.clone(), bias.clone()))
            signal = passed_on(stage, apply_layer(stage, found[-1], signal))
    return tuple(LayerWeights(one.weight.clone(), one.bias.clone()) for one in found)


def layers_for(net: SharedNetwork, examples: ImageDataset) -> tuple[Layer, ...]:
    """Return the layers of a network for images and their classes."""
    return net.layers(examples.images.shape[1], int(examples.labels.max()) + 1)


def start_weights(layers: tuple[Layer, ...], chance: torch.Generator) -> dict[str, Tensor]:
    """Draw random weights that preserve the scale of ReLU activations; biases are 0.

    Gains are 1, and 0 for layers that may be skipped, which then pass their inputs on.

    Source:
        He et al.: Delving Deep into Rectifiers, 2015, eq. 10; Goyal et al.: Accurate, Large
        Minibatch SGD, 2017, section 5.1 (gains of residual branches).
    """
    found = dict[str, Tensor]()
    for one in layers:
        weight = torch.randn(shape(one), generator=chance)
        weight *= (2 / weight[0].numel()) ** 0.5
        found[f"{one.name}.weight"] = weight.requires_grad_()
        found[f"{one.name}.bias"] = torch.zeros(one.filters).requires_grad_()
        if not is_dense(one):
            gain = torch.zeros(one.filters) if _is_residual(one) else torch.ones(one.filters)
            found[f"{one.name}.gain"] = gain.requires_grad_()
    return found


def resize_examples(examples: ImageDataset, side: int) -> ImageDataset:
    """Return images and labels with the images resized to another side length."""
    images = resize(torch.tensor(examples.images), side).numpy()
    return ImageDataset(images=images, labels=examples.labels)


def resize(images: Tensor, side: int) -> Tensor:
    """Return images with another side, by bilinear interpolation with a filter."""
    if images.shape[-1] == side:
        return images
    return functional.interpolate(images, size=(side, side), mode="bilinear", antialias=True)


def _is_residual(layer: Layer) -> bool:
    """Return whether a layer adds its inputs to its outputs: all but the first of a stage do."""
    return not is_dense(layer) and not layer.name.endswith("_1")


def _identity(layer: Layer) -> Tensor:
    """Return the weights of a convolution that returns its inputs."""
    weight = torch.zeros(shape(layer))
    middle = layer.filter_width // 2
    weight[:, :, middle, middle] = torch.eye(layer.filters)
    return weight


def _part(layer: Layer, weights: Weights) -> tuple[Tensor, Tensor]:
    """Return the part of the shared weights and biases that a layer has."""
    whole, bias = weights[f"{layer.name}.weight"], weights[f"{layer.name}.bias"]
    if is_dense(layer):
        return whole[:, : layer.channels], bias
    edge = (whole.shape[-1] - layer.filter_width) // 2
    inner = slice(edge, edge + layer.filter_width)
    return whole[: layer.filters, : layer.channels, inner, inner], bias[: layer.filters]


def _load_or_train(
    name: str,
    largest: SharedNetwork,
    examples: ImageDataset,
    training: SupernetTraining,
    draw: Draw,
) -> Weights:
    layers = layers_for(largest, examples)
    usual = start_weights(layers, torch.Generator())
    recipe = hashlib.sha256(f"2 {largest} {layers} {training} {torch.__version__}".encode())
    recipe.update(examples.images.tobytes() + examples.labels.tobytes())
    arrays = load_or_make(
        f"{name}-{recipe.hexdigest()[:16]}",
        {key: tuple(one.shape) for key, one in usual.items()},
        lambda: {
            key: one.numpy()
            for key, one in train_weights(largest, examples, training, draw).items()
        },
    )
    return {key: torch.tensor(one) for key, one in arrays.items()}


def _shift(images: Tensor, chance: torch.Generator) -> Tensor:
    """Shift all images by one random offset of at most a pixel, padded with zeros."""
    side = images.shape[-1]
    down, right = torch.randint(0, 3, (2,), generator=chance).tolist()
    return functional.pad(images, (1, 1, 1, 1))[..., down : down + side, right : right + side]
