"""Pruning of a network's filters or weights, with each layer refitted by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from dse.core.values import Ints
from dse_evaluators.compression.least_squares import refit_layer
from dse_evaluators.compression.prune import prune_smallest, strongest
from dse_evaluators.compression.reference import Reference
from dse_evaluators.workloads.network import Affines, LayerWeights, apply_layer, passed_on


@dataclass(frozen=True, slots=True)
class Pruned:
    """Weights of a network with some filters removed, and the indices of the kept filters."""

    affines: Affines
    kept: tuple[Ints, ...]  # indices of each layer's kept filters


def narrow_network(whole: Reference, keep: float) -> Pruned:
    """Return the network with a fraction ``keep`` of the filters of every layer but the last.

    In order, each layer is refitted to its original outputs from the inputs that remain.
    """
    shares = [keep if stage.rectified else 1.0 for stage in whole.network]
    kept = tuple(
        strongest(affine.weight.numpy(), share)
        for affine, share in zip(whole.affines, shares, strict=True)
    )
    affines = tuple(_cut(whole, kept, place) for place in range(len(kept)))
    if keep == 1:
        return Pruned(affines, kept)
    return Pruned(_repair_layers(whole, affines, kept, sparse=False), kept)


def sparse(whole: Reference, pruned: Pruned, sparsity: float) -> Pruned:
    """Return the network with a fraction ``sparsity`` of zero weights, and the others refitted."""
    weights = prune_smallest([affine.weight.numpy() for affine in pruned.affines], sparsity)
    affines = tuple(
        LayerWeights(torch.tensor(weight), affine.bias)
        for weight, affine in zip(weights, pruned.affines, strict=True)
    )
    if sparsity == 0:
        return pruned
    return Pruned(_repair_layers(whole, affines, pruned.kept, sparse=True), pruned.kept)


def _repair_layers(
    whole: Reference, affines: Affines, kept: tuple[Ints, ...], *, sparse: bool
) -> Affines:
    """Refit layers in order to their original outputs, from the refitted layers before them."""
    signal = whole.calibration
    repaired = []
    for place, stage in enumerate(whole.network):
        wanted = whole.outputs[place][:, torch.tensor(kept[place])]
        repaired.append(refit_layer(stage, affines[place], signal, wanted, sparse=sparse))
        signal = passed_on(stage, apply_layer(stage, repaired[-1], signal))
    return tuple(repaired)


def _cut(whole: Reference, kept: tuple[Ints, ...], place: int) -> LayerWeights:
    """Return a layer without its removed filters, and without inputs from removed filters.

    The first layer keeps all its inputs.
    """
    rows = torch.tensor(kept[place])
    weight, bias = whole.affines[place].weight[rows], whole.affines[place].bias[rows]
    if place > 0:
        # A dense layer has a column for each pixel of each filter before it.
        pixels = weight.shape[1] // len(whole.affines[place - 1].weight)
        columns = kept[place - 1][:, None] * pixels + np.arange(pixels)
        weight = weight[:, torch.tensor(columns.ravel())]
    return LayerWeights(weight.contiguous(), bias)
