"""Scores of untrained or hardly trained networks, which stand for the quality after training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.architectures.shared_networks import SharedNetwork
from dse_evaluators.architectures.supernet_weights import (
    layers_for,
    resize,
    run_normalised,
    start_weights,
)
from dse_evaluators.workloads.images import ImageDataset
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import Affines, LayerWeights, forward, stages
from dse_evaluators.workloads.torch_scope import deterministic

_RATE, _BATCH = 3e-3, 32


def score_grad_sign(net: SharedNetwork, examples: ImageDataset, seed: int, count: int) -> float:
    """Return the sum over weights of the agreement of the signs of ``count`` images' gradients.

    It is divided by the number of images; at random weights, without training.

    Source:
        Zhang, Jia: GradSign: Model Performance Inference with Theoretical Insights, 2022, alg. 1.
    """
    layers = layers_for(net, examples)
    images, labels = _draw(net, examples, seed, count)
    with deterministic():
        weights = start_weights(layers, torch.Generator().manual_seed(seed))
        tensors = [one for name, one in weights.items() if not name.endswith("gain")]
        total = [torch.zeros_like(one) for one in tensors]
        for image, label in zip(images, labels, strict=True):
            loss = functional.cross_entropy(_run(layers, weights, image[None]), label[None])
            for sums, gradient in zip(total, torch.autograd.grad(loss, tensors), strict=True):
                sums.add_(gradient.sign())
    return float(sum(one.abs().sum() for one in total)) / count


def score_steps(
    net: SharedNetwork, train: ImageDataset, judged: ImageDataset, seed: int, steps: int
) -> float:
    """Return the loss on ``judged`` images after some steps of training [nat].

    The outputs of filters are normalised over the batch, and over all judged images.
    """
    layers = layers_for(net, train)
    images, labels = _draw(net, train, seed, steps * _BATCH)
    with deterministic():
        weights = start_weights(layers, torch.Generator().manual_seed(seed))
        optimizer = torch.optim.AdamW(weights.values(), lr=_RATE)
        for step in range(steps):
            rows = slice(step * _BATCH, (step + 1) * _BATCH)
            optimizer.zero_grad()
            loss = functional.cross_entropy(
                run_normalised(net, weights, images[rows]), labels[rows]
            )
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.inference_mode():
            outputs = run_normalised(
                net, weights, resize(torch.tensor(judged.images), net.resolution)
            )
            return float(functional.cross_entropy(outputs, torch.tensor(judged.labels)))


def _draw(
    net: SharedNetwork, examples: ImageDataset, seed: int, count: int
) -> tuple[Tensor, Tensor]:
    """Return random images, resized, and their labels; each again before any a third time."""
    chance, size = torch.Generator().manual_seed(seed), len(examples.labels)
    rounds = -(-count // size)
    rows = torch.cat([torch.randperm(size, generator=chance) for _ in range(rounds)])[:count]
    images = resize(torch.tensor(examples.images), net.resolution)
    return images[rows], torch.tensor(examples.labels)[rows]


def _run(layers: tuple[Layer, ...], weights: dict[str, Tensor], images: Tensor) -> Tensor:
    affines: Affines = tuple(
        LayerWeights(weights[f"{one.name}.weight"], weights[f"{one.name}.bias"]) for one in layers
    )
    return forward(stages(layers), affines, images)
