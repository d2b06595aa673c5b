"""Workload ``magika``: a CNN that predicts a file's type from its bytes, in onnxruntime."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.judging import CLASSIFIER, METRICS, measure_classifier
from dse_evaluators.workloads.magika_files import FileDataset, Tokens, Window, examples
from dse_evaluators.workloads.onnx_runtime import (
    Session,
    initializers,
    read_model,
    with_initializers,
    with_outputs,
)
from dse_evaluators.workloads.onnx_stages import StagedGraph, rounded_input
from dse_evaluators.workloads.workload import Parameters, Signals, Split

_MODEL = Path("magika") / "models" / "standard_v3_3"
_NET = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/"
STORED_NAMES: Mapping[str, str] = {
    "embed.weight": "jax2tf_get_logits_/Const:0",
    "embed.bias": f"{_NET}Dense_0/Reshape:0",
    "norm0.weight": f"{_NET}LayerNorm_0/Reshape_2:0",
    "norm0.bias": f"{_NET}LayerNorm_0/Reshape_3:0",
    "conv.weight": f"{_NET}Conv_0/transpose_3:0",
    "conv.bias": "const_fold_opt__209",
    "norm1.weight": f"{_NET}LayerNorm_1/Reshape_2:0",
    "norm1.bias": f"{_NET}LayerNorm_1/Reshape_3:0",
    "dense.weight": "jax2tf_get_logits_/Const_24:0",
    "dense.bias": f"{_NET}Dense_1/Reshape:0",
}
"""Name of each parameter in the published ONNX file, by its name in this workload."""

_INPUT = "bytes"
_TURNED = ("embed.weight", "dense.weight")  # an ONNX matrix product has (inputs, outputs)
_LAYER_INPUTS = (f"{_NET}Conv_0/Conv2D__120:0", f"{_NET}LayerNorm_1/AddV2_1:0")
_TAPS = 5  # kernel width of the convolution
_POSITIONS = 16  # sampled in each calibration file, for layers that run at every position
_POSITION_AXES = 2  # the convolution of the file has two, one of length 1
_LEAST_SHARE = 1e-12  # lower bound of a probability, so that its logarithm is finite


class Magika:
    """Magika's published file-type classifier, evaluated on files of four packages.

    Outputs are the log probabilities of its 214 types for each file.

    Source:
        Fratantonio et al.: Magika: AI-Powered Content-Type Detection, 2024; model standard_v3_3.

    Raises:
        PluginError: an asset, onnx or onnxruntime is not installed.
    """

    name = "magika"
    compressible = ("embed.weight", "conv.weight", "dense.weight")
    metrics: Mapping[str, Metric] = {name: METRICS[name] for name in CLASSIFIER}

    def __init__(self) -> None:
        folder = asset_folder("magika") / _MODEL
        config = json.loads((folder / "config.min.json").read_text())
        self.model = read_model(folder / "model.onnx")
        arrays = dict(
            zip(STORED_NAMES, initializers(self.model, tuple(STORED_NAMES.values())), strict=True)
        )
        self.parameters: Parameters = _transpose_matrices(arrays)
        window = Window(
            beginning=config["beg_size"],
            end=config["end_size"],
            block_bytes=config["block_size"],
            padding=config["padding_token"],
        )
        self.width = window.beginning + window.end
        self._examples = examples(window, config["target_labels_space"])

    def examples(self, part: str) -> FileDataset:
        """Return the files (tokens, type) of a split: ``search``, ``test`` or ``calibration``."""
        return self._examples[part]

    def with_parameters(self, parameters: Parameters) -> bytes:
        """Return the bytes of the ONNX file with its weights replaced by the given ones.

        Raises:
            EvaluationError: a parameter has a different shape than in the file.
        """
        for name, array in parameters.items():
            if array.shape != self.parameters[name].shape:
                raise EvaluationError(f"magika's {name} cannot have the shape {array.shape}")
        arrays = _transpose_matrices(parameters)
        return with_initializers(self.model, {STORED_NAMES[name]: arrays[name] for name in arrays})

    def calibration(self) -> Mapping[str, Single]:
        """Return the inputs of each layer on the calibration files, by name of the layer's weights.

        The inputs of the embedding and of the convolution are sampled at sixteen positions per
        file.
        """
        tokens = self.examples("calibration").tokens
        session = Session(with_outputs(self.model, _LAYER_INPUTS))
        outputs = [session.run(row[None]) for row in tokens]
        sequences = np.stack([signals[0].reshape(signals[0].shape[1], -1) for signals in outputs])
        step = sequences.shape[2] // _POSITIONS
        windows = np.lib.stride_tricks.sliding_window_view(sequences, _TAPS, axis=2)[:, :, ::step]
        rows = windows.transpose(0, 2, 1, 3)  # (n, positions, channels, taps)
        bytes_seen = tokens[:, :: tokens.shape[1] // _POSITIONS].ravel()
        return {
            "embed.weight": np.eye(self.parameters["embed.weight"].shape[1], dtype=np.float32)[
                bytes_seen
            ],
            "conv.weight": rows.reshape(-1, rows.shape[2] * _TAPS).copy(),
            "dense.weight": np.concatenate([signals[1] for signals in outputs]),
        }

    def outputs(self, parameters: Parameters, split: Split, signals: Signals) -> Single:
        """Return the log probabilities of the types for each file, (n, types).

        Raises:
            EvaluationError: a parameter has another shape, or keys or values are to be rounded.
        """
        if signals.rounds_cache:
            raise EvaluationError("magika has no attention, whose keys and values could be rounded")
        model = self.with_parameters(parameters)
        graph: Session | StagedGraph = Session(model)
        if signals.activations is not None:
            windows = {"embed.weight": 0, "conv.weight": _POSITION_AXES, "dense.weight": 0}
            graph = StagedGraph(
                model,
                {STORED_NAMES[n]: rounded_input(signals, n, axes) for n, axes in windows.items()},
            )
        return self.read_outputs([graph.run_named(one)[0] for one in self.onnx_batches(split)])

    def onnx_batches(self, split: str) -> list[dict[str, Tokens]]:
        """Return the inputs of the file, one example at a time.

        Dynamic quantization uses one scale for a batch, so the files are not run together.
        """
        return [{_INPUT: row[None]} for row in self.examples(split).tokens]

    def read_outputs(self, tables: Sequence[Single], split: str = "") -> Single:  # noqa: ARG002
        """Return the log probabilities of the types for each file, (n, types)."""
        return np.log(np.maximum(np.concatenate(tables), np.float32(_LEAST_SHARE)))

    def count_examples(self, split: Split) -> int:
        return len(self.examples(split).labels)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        rows = slice(None) if chosen is None else chosen
        labels = self.examples(split).labels
        return measure_classifier(outputs[rows], reference[rows], labels[rows])


@cache
def magika() -> Magika:
    """Return the workload ``magika``, created once per process."""
    return Magika()


def _transpose_matrices(parameters: Parameters) -> dict[str, Single]:
    """Return the parameters with each matrix that ONNX stores as (inputs, outputs) transposed.

    Applied twice, it returns the original parameters.
    """
    return {
        name: np.ascontiguousarray(array.T) if name in _TURNED else array
        for name, array in parameters.items()
    }
