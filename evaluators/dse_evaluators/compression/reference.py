"""Uncompressed network, with its outputs on the calibration images and on those of a split."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.digits_cnn import load_weights
from dse_evaluators.workloads.images import ImageDataset, halve_examples
from dse_evaluators.workloads.layers import DIGITS_CNN, Layer
from dse_evaluators.workloads.network import (
    Affines,
    NetworkStage,
    apply_layer,
    forward,
    passed_on,
    stages,
)
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Uncompressed network, with images to calibrate and to measure compressed versions.

    It is built once per process and split.

    ``outputs`` are each layer's outputs on the calibration images, before ReLU and pooling.
    """

    network: tuple[NetworkStage, ...]
    affines: Affines
    calibration: Tensor  # (c, 1, height, width)
    outputs: tuple[Tensor, ...]  # each (c, filters, ...)
    images: Tensor  # (n, 1, height, width), of the split
    labels: Tensor  # (n,)
    log_probabilities: Tensor  # (n, classes), of the images


@cache
def reference(model: str, split: Split = "search") -> Reference:
    """Return the uncompressed network of a model with its data, trained if not in the cache.

    The model is one of :data:`MAKERS`; ``search`` and ``test`` halve the held-out images.
    """
    return MAKERS[model](split)


def build_reference(
    layers: Sequence[Layer], affines: Affines, calibration: Tensor, examples: ImageDataset
) -> Reference:
    """Return a network with its outputs on calibration images and on the examples of a split."""
    network, images = stages(layers), torch.tensor(examples.images)
    outputs = []
    with deterministic(), torch.inference_mode():
        signal = calibration
        for stage, affine in zip(network, affines, strict=True):
            outputs.append(apply_layer(stage, affine, signal))
            signal = passed_on(stage, outputs[-1])
        logits = forward(network, affines, images)
    return Reference(
        network=network,
        affines=affines,
        calibration=calibration,
        outputs=tuple(outputs),
        images=images,
        labels=torch.tensor(examples.labels),
        log_probabilities=torch.log_softmax(logits.double(), dim=1),
    )


def _digits_cnn(split: Split) -> Reference:
    data = digits()
    search, test = halve_examples(data.held_out)
    examples = {"search": search, "test": test}[split]
    calibration = torch.tensor(data.calibration.images)
    return build_reference(DIGITS_CNN, load_weights(), calibration, examples)


MAKERS: Mapping[str, Callable[[Split], Reference]] = {"digits-cnn": _digits_cnn}
