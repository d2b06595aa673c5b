"""Workload of a convolutional network and the labelled images that it is evaluated on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.images import ImageDataset
from dse_evaluators.workloads.judging import CLASSIFIER, METRICS, measure_classifier
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import (
    Affines,
    LayerWeights,
    NetworkStage,
    apply_layer,
    forward,
    passed_on,
    stages,
)
from dse_evaluators.workloads.onnx_export import export_network
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Parameters, Signals, Split

_MOST_SAMPLES = 4096
"""Maximal number of windows of a layer that are drawn for calibration."""

_BY_IMAGE = (2, 3, 1)  # scales run along an image's channels first, then over its pixels


@dataclass(frozen=True, kw_only=True)
class ImageClassifier:
    """Image classifier whose layer widths follow from its weights; all layers are required.

    Activations are rounded image by image, each with its own scales: only a format with one scale
    per tensor makes an image's logits depend on the other images of the split.
    """

    name: str
    layers: Sequence[Layer]
    affines: Affines
    calibrating: ImageDataset
    judging: Mapping[Split, ImageDataset]

    parameters: Parameters = field(init=False)
    compressible: tuple[str, ...] = field(init=False)
    metrics: Mapping[str, Metric] = field(
        default_factory=lambda: {name: METRICS[name] for name in CLASSIFIER}, init=False
    )

    def __post_init__(self) -> None:
        parameters: dict[str, Single] = {}
        for layer, affine in zip(self.layers, self.affines, strict=True):
            parameters[f"{layer.name}.weight"] = affine.weight.numpy()
            parameters[f"{layer.name}.bias"] = affine.bias.numpy()
        for array in parameters.values():
            array.flags.writeable = False
        object.__setattr__(self, "parameters", parameters)
        weights = tuple(f"{layer.name}.weight" for layer in self.layers)
        object.__setattr__(self, "compressible", weights)

    def calibration(self) -> Mapping[str, Single]:
        found: dict[str, Single] = {}
        with deterministic(), torch.inference_mode():
            signal = _tensor(self.calibrating.images)
            for stage, affine in zip(stages(self.layers), self.affines, strict=True):
                found[f"{stage.name}.weight"] = _samples(stage, affine, signal)
                signal = passed_on(stage, apply_layer(stage, affine, signal))
        return found

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        try:
            with deterministic(), torch.inference_mode():
                signal = _tensor(self.judging[split].images)
                for stage in stages(self.layers):
                    affine = _affine(parameters, stage.name)
                    signal = _round_inputs(signal, signals, stage)
                    signal = passed_on(stage, apply_layer(stage, affine, signal))
                return signal.numpy()
        except (KeyError, RuntimeError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def count_examples(self, split: Split) -> int:
        return len(self.judging[split].labels)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        rows = slice(None) if chosen is None else chosen
        labels = self.judging[split].labels
        return measure_classifier(outputs[rows], reference[rows], labels[rows])

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of all weights and biases."""
        return tuple(self.parameters)

    def count_training_examples(self) -> int:
        return len(self.calibrating.labels)

    def training_outputs(self, parameters: Mapping[str, Tensor], rows: Ints) -> Tensor:
        affines = [
            LayerWeights(parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"])
            for layer in self.layers
        ]
        return forward(stages(self.layers), affines, _tensor(self.calibrating.images[rows]))

    def training_targets(self, rows: Ints) -> Tensor:
        return torch.tensor(self.calibrating.labels[rows])

    def onnx_model(self) -> bytes:
        """Return the network as an ONNX file, with an initializer for each parameter.

        Raises:
            PluginError: onnx is not installed.
        """
        return export_network(self.layers, self.parameters)

    def onnx_batches(self, split: Split) -> list[dict[str, Single]]:
        """Return the inputs of the file for the images of a split, in one batch."""
        return [{"images": self.judging[split].images}]

    def read_outputs(self, tables: Sequence[Single], split: Split) -> Single:  # noqa: ARG002
        """Return the logits for each image, (n, classes), from the file's output by batch."""
        return np.concatenate(tables)


def _affine(parameters: Parameters, name: str) -> LayerWeights:
    weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
    return LayerWeights(_tensor(weight), _tensor(bias))


def _tensor(array: Single) -> Tensor:
    """Return a copy of an array with the default strides of its shape.

    The stride of an axis of length 1 does not affect the values, but torch selects kernels by it,
    and their results differ in the last bit.
    """
    return torch.tensor(array.ravel()).view(array.shape)


def _round_inputs(signal: Tensor, signals: Signals, stage: NetworkStage) -> Tensor:
    """Return a layer's inputs rounded to the activation format, or unchanged without a format."""
    if signals.activations is None:
        return signal
    if stage.dense:
        return _tensor(signals.rounded(f"{stage.name}.weight", signal.flatten(1).numpy()))
    return _tensor(signals.activations.quantize(signal.numpy(), _BY_IMAGE))


def _samples(stage: NetworkStage, affine: LayerWeights, signal: Tensor) -> Single:
    """Return the layer's inputs as a matrix, a row per output position.

    If there are many rows, it is a random sample of them.
    """
    if stage.dense:
        windows = signal.flatten(1)
    else:
        patches = functional.unfold(
            signal, affine.weight.shape[2:], padding=stage.padding, stride=stage.stride
        )
        windows = patches.movedim(1, -1).flatten(0, 1)
    if len(windows) > _MOST_SAMPLES:
        drawn = np.random.default_rng(0).choice(len(windows), _MOST_SAMPLES, replace=False)
        windows = windows[torch.tensor(np.sort(drawn))]
    return windows.contiguous().numpy()
