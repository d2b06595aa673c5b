"""Compression of a network: filter pruning, weight pruning and quantization."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dse_evaluators.compression.compression_knobs import CompressionConfig
from dse_evaluators.compression.narrow import Pruned, narrow_network, sparse
from dse_evaluators.compression.quantize import Quantised, quantise_weights
from dse_evaluators.compression.reference import Reference
from dse_evaluators.compression.size import SCALE_BYTES, size_bytes
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.casting import needs_scale, round_to_format, scales
from dse_evaluators.formats.words import FORMATS, NumberFormat
from dse_evaluators.workloads.network import (
    Affines,
    LayerWeights,
    NetworkStage,
    apply_layer,
    passed_on,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Compressed network: the weights as stored, and as decoded for computation."""

    network: tuple[NetworkStage, ...]
    affines: Affines  # weights decoded from ``stored``
    stored: tuple[Quantised, ...]
    signal_word: NumberFormat
    signal_scales: tuple[Single, ...]  # (1,) per layer: scale of its inputs

    @property
    def size_bytes(self) -> int:
        """Bytes of the stored layers and of the activation scales."""
        signals = SCALE_BYTES * len(self.signal_scales) if needs_scale(self.signal_word) else 0
        return signals + sum(size_bytes(tensor) for tensor in self.stored)

    def logits(self, images: Tensor) -> Tensor:
        """Return the logits, (n, classes), with each layer's inputs in the activation format."""
        signal = images
        for stage, affine, scale in zip(
            self.network, self.affines, self.signal_scales, strict=True
        ):
            signal = _short(signal, scale, self.signal_word)
            signal = passed_on(stage, apply_layer(stage, affine, signal))
        return signal


def compress_network(whole: Reference, recipe: CompressionConfig) -> Compressed:
    """Prune and quantize a trained network by the given settings; the result is deterministic.

    The steps are: remove filters and refit the remaining ones to the original outputs; set small
    weights to zero and refit again; quantize the weights; then, layer by layer on the calibration
    images, set the activation scales and correct the biases.
    """
    pruned = sparse(whole, narrow_network(whole, recipe.filter_keep), recipe.sparsity)
    word = FORMATS[recipe.weight_format]
    stored = tuple(
        quantise_weights(affine.weight.numpy(), word, recipe.granularity)
        for affine in pruned.affines
    )
    return _calibrate_network(whole, pruned, stored, recipe)


def _calibrate_network(
    whole: Reference, pruned: Pruned, stored: tuple[Quantised, ...], recipe: CompressionConfig
) -> Compressed:
    """Set activation scales from the largest activations, and correct shifted mean outputs.

    Source:
        Finkelstein et al., Fighting Quantization Bias With Bias, 2019; Nagel et al.,
        Data-Free Quantization Through Weight Equalization and Bias Correction, 2019, section 4.2.
    """
    word = FORMATS[recipe.activation_format]
    signal = whole.calibration
    affines: list[LayerWeights] = []
    signal_scales: list[Single] = []
    for place, stage in enumerate(whole.network):
        signal_scales.append(scales(signal.abs().max().reshape(1).numpy(), word))
        signal = _short(signal, signal_scales[-1], word)
        affine = LayerWeights(torch.tensor(stored[place].values), pruned.affines[place].bias)
        outputs = apply_layer(stage, affine, signal)
        if recipe.bias_correction:
            wanted = whole.outputs[place][:, torch.tensor(pruned.kept[place])]
            shift = _means(wanted - outputs)
            affine = LayerWeights(affine.weight, affine.bias + shift)
            outputs = outputs + shift.reshape(-1, *(1,) * (outputs.ndim - 2))
        affines.append(affine)
        signal = passed_on(stage, outputs)
    return Compressed(
        network=whole.network,
        affines=tuple(affines),
        stored=stored,
        signal_word=word,
        signal_scales=tuple(signal_scales),
    )


def _means(outputs: Tensor) -> Tensor:
    """Return the mean output of each filter over images and positions, (filters,)."""
    return outputs.transpose(0, 1).flatten(1).mean(1)


def _short(signal: Tensor, scale: Single, word: NumberFormat) -> Tensor:
    """Return the activations rounded to the values of a number format, with this scale."""
    if word.name == "fp32":
        return signal
    return torch.tensor(round_to_format(signal.numpy(), scale, word))
