"""The convolutional network that reads digits: trained here in seconds, then cached."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.digits import Examples, digits
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import Affine, Affines, forward, shape, stages
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, cached


@dataclass(frozen=True, slots=True)
class Training:
    """How the network is trained; part of the name under which its weights are kept."""

    epochs: int = 30
    batch: int = 32
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    shift: int = 1  # pixels, at most, in each direction
    seed: int = 0


TRAINING = Training()


def trained() -> Affines:
    """The network's weights, from the cache where they are there."""
    shapes = {f"{layer.name}.weight": shape(layer) for layer in DIGITS_CNN}
    shapes |= {f"{layer.name}.bias": (layer.filters,) for layer in DIGITS_CNN}
    examples = digits().train
    arrays = cached(_name(examples), shapes, lambda: _arrays(train(examples)))
    return tuple(
        Affine(torch.tensor(arrays[f"{x.name}.weight"]), torch.tensor(arrays[f"{x.name}.bias"]))
        for x in DIGITS_CNN
    )


def train(examples: Examples, training: Training = TRAINING) -> Affines:
    """Weights learnt from scratch; the same examples give the same bits.

    Source:
        He et al., Delving Deep into Rectifiers, 2015, eq. 10 (start); Loshchilov, Hutter,
        Decoupled Weight Decay Regularization, 2019 (AdamW); Smith, Topin, Super-Convergence,
        2018 (one cycle of the rate).
    """
    chance = torch.Generator().manual_seed(training.seed)
    images = torch.tensor(examples.images)
    labels = torch.tensor(examples.labels)
    with deterministic():
        affines = _start(chance)
        tensors = [tensor for affine in affines for tensor in (affine.weight, affine.bias)]
        steps = len(labels) // training.batch
        optimizer = torch.optim.AdamW(
            tensors, lr=training.peak_rate, weight_decay=training.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training.peak_rate, total_steps=training.epochs * steps
        )
        network = stages(DIGITS_CNN)
        for _ in range(training.epochs):
            order = torch.randperm(len(labels), generator=chance)
            for rows in order[: steps * training.batch].reshape(steps, training.batch):
                logits = forward(network, affines, _shifted(images[rows], training.shift, chance))
                optimizer.zero_grad()
                functional.cross_entropy(logits, labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    return tuple(Affine(affine.weight.detach(), affine.bias.detach()) for affine in affines)


def _start(chance: torch.Generator) -> Affines:
    """Random weights that keep a rectified signal's size, and no bias."""
    affines = []
    for layer in DIGITS_CNN:
        weight = torch.randn(shape(layer), generator=chance)
        weight *= math.sqrt(2 / weight[0].numel())
        affines.append(Affine(weight.requires_grad_(), torch.zeros(layer.filters).requires_grad_()))
    return tuple(affines)


def _shifted(images: Tensor, most: int, chance: torch.Generator) -> Tensor:
    """The images moved by the same few pixels, black where nothing was."""
    height, width = images.shape[-2:]
    down, right = torch.randint(0, 2 * most + 1, (2,), generator=chance).tolist()
    padded = functional.pad(images, (most, most, most, most))
    return padded[..., down : down + height, right : right + width]


def _arrays(affines: Affines) -> Arrays:
    arrays: Arrays = {}
    for layer, affine in zip(DIGITS_CNN, affines, strict=True):
        arrays[f"{layer.name}.weight"] = affine.weight.numpy().astype(np.float32)
        arrays[f"{layer.name}.bias"] = affine.bias.numpy().astype(np.float32)
    return arrays


def _name(examples: Examples) -> str:
    """Changes with all that the weights depend on: layers, training, images, torch."""
    recipe = hashlib.sha256(f"{DIGITS_CNN} {TRAINING} {torch.__version__}".encode())
    recipe.update(examples.images.tobytes())
    recipe.update(examples.labels.tobytes())
    return f"digits-cnn-{recipe.hexdigest()[:16]}"
