"""Quantization-aware training of a network on its calibration split, with distillation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.training_words import WeightTraining
from dse_evaluators.compression.quantization_aware.rounded_weights import RoundedWeight
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.trainable import Trainable
from dse_evaluators.workloads.workload import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Network that is trained with quantization in its forward pass.

    Attributes:
        workload: runs the network.
        original: all parameters before compression, which the distillation imitates.
        fixed: weights of compressed layers that are not trained, by name.
        rounded: weights that are trained and rounded, by name.
    """

    workload: Trainable
    original: Parameters
    fixed: Parameters
    rounded: Mapping[str, RoundedWeight]


def train_network(network: Network, training: WeightTraining) -> dict[str, Single]:
    """Train the rounded weights of a network together with all parameters that have no recipe.

    Updates are those of Adam. Memory holds four copies of what is trained, and the activations of
    one batch.

    Returns:
        The parameters that no recipe names, by name; the rounded weights change in place.

    Source:
        Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network, 2015, section 2.

    Raises:
        EvaluationError: the loss is not finite, or the data has no targets to train on.
    """
    named = {*network.fixed, *network.rounded}
    rest = {
        name: torch.tensor(network.original[name]).requires_grad_()
        for name in network.workload.learnt
        if name not in named
    }
    constant = {name: torch.tensor(one) for name, one in network.original.items()}
    constant |= {name: torch.tensor(one) for name, one in network.fixed.items()}
    teacher = None
    if training.distill:
        teacher = {name: torch.tensor(one) for name, one in network.original.items()}
    optimizer = torch.optim.Adam(_parameter_groups(network, rest, training.rate))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 + math.cos(math.pi * step / max(training.steps, 1))) / 2
    )
    with deterministic(), torch.enable_grad():
        for step, rows in enumerate(_batches(network.workload, training)):
            rounded = {name: one.value() for name, one in network.rounded.items()}
            now = {**constant, **rest, **rounded}
            loss = _compute_loss(network.workload, now, teacher, rows, training)
            if not torch.isfinite(loss):
                raise EvaluationError(
                    f"the loss of training is not finite in step {step + 1} of {training.steps}",
                    hint=f"a lower rate than {training.rate:g}",
                )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            for one in network.rounded.values():
                one.settle()
    return {name: one.detach().numpy() for name, one in rest.items()}


def _parameter_groups(
    network: Network, rest: Mapping[str, Tensor], rate: float
) -> list[dict[str, object]]:
    """Return the trained tensors with learning rates; steps have ``rate`` times their mean.

    An update of Adam is about the rate, whatever the size of the number: a step that is a tenth of
    a weight would otherwise move ten times as fast.
    """
    weights = [one.learnt["weight"] for one in network.rounded.values()]
    groups: list[dict[str, object]] = [{"params": [*weights, *rest.values()], "lr": rate}]
    steps = [one.learnt["step"] for one in network.rounded.values() if "step" in one.learnt]
    return groups + [{"params": [one], "lr": rate * float(one.detach().mean())} for one in steps]


def _batches(workload: Trainable, training: WeightTraining) -> Iterator[Ints]:
    """Yield the places of the examples of each step, drawn without replacement in an epoch."""
    count = workload.count_training_examples()
    size = min(training.batch, count)
    rng = np.random.default_rng(training.seed)
    order = rng.permutation(count)
    start = 0
    for _ in range(training.steps):
        if start + size > count:
            order, start = rng.permutation(count), 0
        yield order[start : start + size]
        start += size


def _compute_loss(
    workload: Trainable,
    parameters: Mapping[str, Tensor],
    teacher: Mapping[str, Tensor] | None,
    rows: Ints,
    training: WeightTraining,
) -> Tensor:
    outputs = workload.training_outputs(parameters, rows)
    targets = workload.training_targets(rows)
    loss = torch.zeros(())
    if training.distill < 1:
        loss = (1 - training.distill) * _distance_to_targets(outputs, targets)
    if teacher is None:
        return loss
    with torch.no_grad():
        wanted = workload.training_outputs(teacher, rows)
    has_classes = targets is not None and not targets.is_floating_point()
    if not has_classes or outputs.shape[1] == 1:
        return loss + training.distill * functional.mse_loss(outputs, wanted)
    return loss + training.distill * _distance_to_teacher(outputs, wanted, training.temperature)


def _distance_to_targets(outputs: Tensor, targets: Tensor | None) -> Tensor:
    """Return the cross-entropy of classes, or the mean squared error of numbers.

    Raises:
        EvaluationError: there are no targets, or the outputs do not fit them.
    """
    if targets is None:
        raise EvaluationError(
            "the data has no targets to train on",
            hint="distill=1 trains on the outputs of the uncompressed model",
        )
    if targets.is_floating_point():
        if targets.numel() != outputs.numel():
            raise EvaluationError(
                f"the model gives {outputs.numel()} outputs for {targets.numel()} targets"
            )
        return functional.mse_loss(outputs.flatten(), targets.flatten())
    if len(outputs) != len(targets) or outputs.shape[1] <= int(targets.max()):
        raise EvaluationError(
            f"outputs of shape {tuple(outputs.shape)} are no logits of {len(targets)} classes up "
            f"to {int(targets.max())}",
            hint="distill=1 trains on the outputs of the uncompressed model",
        )
    return functional.cross_entropy(outputs, targets)


def _distance_to_teacher(outputs: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """Return the divergence of softened class probabilities, times the squared temperature."""
    divergence = functional.kl_div(
        (outputs / temperature).log_softmax(-1),
        (wanted / temperature).log_softmax(-1),
        reduction="batchmean",
        log_target=True,
    )
    return divergence * temperature**2
