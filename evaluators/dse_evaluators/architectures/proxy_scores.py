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
    """Return the GradSign score of a network: how far gradients of single images agree in sign.

    The agreement is summed over weights and divided by the number of images; weights are random.

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


def train_briefly(
    net: SharedNetwork, train: ImageDataset, seed: int, steps: int
) -> dict[str, Tensor]:
    """Train a network for some steps; return its weights, with gradients enabled.

    The outputs of filters are normalised over the batch.
    """
    images, labels = _draw(net, train, seed, steps * _BATCH)
    with deterministic():
        weights = start_weights(layers_for(net, train), torch.Generator().manual_seed(seed))
        optimizer = torch.optim.AdamW(weights.values(), lr=_RATE)
        for step in range(steps):
            rows = slice(step * _BATCH, (step + 1) * _BATCH)
            optimizer.zero_grad()
            loss = functional.cross_entropy(
                run_normalised(net, weights, images[rows]), labels[rows]
            )
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return weights


def score_loss(net: SharedNetwork, weights: dict[str, Tensor], judged: ImageDataset) -> float:
    """Return a network's loss on held-out images [nat].

    The outputs of filters are normalised over all these images.
    """
    with deterministic(), torch.inference_mode():
        outputs = run_normalised(net, weights, resize(torch.tensor(judged.images), net.resolution))
        return float(functional.cross_entropy(outputs, torch.tensor(judged.labels)))


def score_alignment(
    net: SharedNetwork, weights: dict[str, Tensor], examples: ImageDataset, seed: int, count: int
) -> float:
    """Return the correlation, -1 to 1, of the tangent kernel of ``count`` images and their labels.

    An element of the kernel is the product of two images' gradients of the sum of the outputs; of
    the labels, 1 for images of one class and -1 for others. Both have mean 0 over all pairs. The
    outputs of filters are normalised over the images.

    Source:
        Mok et al.: Demystifying the Neural Tangent Kernel from a Practical Perspective, 2022,
        label-gradient alignment.
    """
    images, labels = _draw(net, examples, seed, count)
    tensors = [one for name, one in weights.items() if name.endswith("weight")]
    with deterministic():
        outputs = run_normalised(net, weights, images).sum(1)
        gradients = torch.stack(
            [
                torch.cat([part.flatten() for part in parts])
                for parts in (
                    torch.autograd.grad(one, tensors, retain_graph=True) for one in outputs
                )
            ]
        )  # (count, weights)
        kernel = (gradients @ gradients.T).double()
    same = torch.where(labels[:, None] == labels[None], 1.0, -1.0).double()
    centred = [one - one.mean() for one in (kernel, same)]
    lengths = [float(one.norm()) for one in centred]
    return float((centred[0] * centred[1]).sum()) / (lengths[0] * lengths[1] or 1.0)


def _draw(
    net: SharedNetwork, examples: ImageDataset, seed: int, count: int
) -> tuple[Tensor, Tensor]:
    """Return random images, resized, and their labels; each again before any a third time."""
    chance, size = torch.Generator().manual_seed(seed), len(examples.labels)
    rounds = max(-(-count // size), 1)
    rows = torch.cat([torch.randperm(size, generator=chance) for _ in range(rounds)])[:count]
    images = resize(torch.tensor(examples.images), net.resolution)
    return images[rows], torch.tensor(examples.labels)[rows]


def _run(layers: tuple[Layer, ...], weights: dict[str, Tensor], images: Tensor) -> Tensor:
    affines: Affines = tuple(
        LayerWeights(weights[f"{one.name}.weight"], weights[f"{one.name}.bias"]) for one in layers
    )
    return forward(stages(layers), affines, images)
