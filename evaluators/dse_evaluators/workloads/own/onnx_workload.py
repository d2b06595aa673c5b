"""Workload of an ONNX file of the user, run by onnxruntime on the user's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import DseError, EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.onnx_runtime import (
    Session,
    all_initializers,
    library,
    with_initializers,
    with_outputs,
)
from dse_evaluators.workloads.onnx_stages import RoundedInput, StagedGraph, rounded_input
from dse_evaluators.workloads.own.onnx_layers import OnnxLayer, graph_inputs, read_onnx
from dse_evaluators.workloads.own.own_batches import batch_size
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_outputs import OwnTask, check_finite, table_of
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.workload import Parameters, Signals, Split

_BATCH = 64
_MOST_CALIBRATING = 256
_MOST_SAMPLES = 4096


class OnnxWorkload:
    """ONNX model of the user, with data to run it on.

    If activations are rounded, onnxruntime runs the model in stages (:class:`StagedGraph`).

    Args:
        path: the file.
        name: name of the model for messages.
        data: the examples; without them, only the weights can be used.
        qualities: the quality metrics.

    Raises:
        SpecError: the file is not a model that can be compressed, or a weight is not finite.
    """

    def __init__(
        self, path: Path, name: str, data: OwnData | None, qualities: Sequence[Quality]
    ) -> None:
        self.name = name
        self._file = read_onnx(path)
        self._content = self._file.content
        stored = all_initializers(self._content)
        self.parameters: Parameters = {
            one: self._turned(one, np.asarray(stored[one], dtype=np.float32))
            for one in self._file.layout.shapes
        }
        self.compressible = self._file.layout.layers
        check_finite({one: self.parameters[one] for one in self.compressible})
        for one, array in self.parameters.items():
            if np.isnan(array).any():  # constants may be infinite, such as the start of a maximum
                check_finite({one: array})
        self._task = OwnTask(label=name, source=data, qualities=tuple(qualities))
        self.metrics: Mapping[str, Metric] = self._task.metrics

    def onnx_model(self) -> bytes:
        """Return the model as an ONNX file, with an initializer for each parameter, by its name."""
        return self._file.content_by_outputs()

    def with_parameters(self, parameters: Parameters) -> bytes:
        """Return the ONNX file with these parameters in place of its own."""
        changed = {
            name: self._turned(name, array)
            for name, array in parameters.items()
            if array is not self.parameters[name]
        }
        return with_initializers(self._content, changed)

    def calibration(self) -> Mapping[str, Single]:
        layers = {
            name: uses[0]
            for name, uses in self._file.layers.items()
            if uses[0].operator != "Gather"
        }
        feeds = self._feeds("calibration")
        found = {name: one[:_MOST_CALIBRATING] for name, one in feeds.items()}
        names = sorted({one.signal for one in layers.values()} - feeds.keys())
        if names:
            runs = self._run(Session(with_outputs(self._content, names)), found)
            found |= {name: np.concatenate(one) for name, one in zip(names, runs, strict=True)}
        rows = {
            name: _rows(one, self.parameters[name], found[one.signal])
            for name, one in layers.items()
        }
        return {name: table for name, table in rows.items() if table is not None}

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        if signals.rounds_cache:
            raise EvaluationError(
                f"the keys and values of {self.name} cannot be rounded: onnxruntime computes them",
                hint="leave out kv_cache, or name the model as {python: net.py:make}",
            )
        model = self.with_parameters(parameters)
        rounded, feeds = self._rounded_inputs(signals), self._feeds(split)
        if rounded:  # the batches of a module: formats with one scale for all depend on them
            runs = self._run(StagedGraph(model, rounded), feeds, batch_size(feeds))
        else:
            runs = self._run(Session(model), feeds)
        return self.read_outputs(runs[0], split)

    def onnx_batches(self, split: str) -> list[dict[str, NDArray[Any]]]:
        """Return the inputs of the graph for the examples of a split, in batches."""
        feeds = self._feeds(split)
        count = len(next(iter(feeds.values())))
        size = self._batch_size(count)
        return [
            {name: one[start : start + size] for name, one in feeds.items()}
            for start in range(0, count, size)
        ]

    def read_outputs(self, tables: Sequence[Single], split: Split) -> Single:
        """Return the outputs for each example, (n, k), from the graph's first output by batch."""
        return self._task.outputs(np.concatenate([table_of(one) for one in tables]), split)

    def count_examples(self, split: Split) -> int:
        return self._task.count_examples(split)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        if chosen is None:
            self._task.check_logits(reference)
        return self._task.quality(outputs, reference, split, chosen)

    def _feeds(self, split: str) -> dict[str, NDArray[Any]]:
        """Return the inputs of a split by the names and in the integer types of the graph."""
        types = graph_inputs(self._file.model)
        given = self._task.data.feeds_of(split)
        if "" in given:
            given = {next(iter(types)): given[""]}
        return {name: _typed(name, array, types[name].elem_type) for name, array in given.items()}

    def _rounded_inputs(self, signals: Signals) -> dict[str, RoundedInput]:
        """Return how the inputs of each layer are rounded, by the name of its weights.

        Embeddings are left out: their inputs are indices.
        """
        if signals.activations is None:
            return {}
        found = {}
        for name, uses in self._file.layers.items():
            operators = {one.operator for one in uses} - {"Gather"}
            if operators:
                window = self.parameters[name].ndim - 2 if "Conv" in operators else 0
                found[name] = rounded_input(signals, name, window)
        return found

    def _run(
        self, graph: Session | StagedGraph, feeds: Mapping[str, NDArray[Any]], most: int = _BATCH
    ) -> list[list[Single]]:
        """Return each output of a graph, as a list of arrays, one for each batch.

        Args:
            graph: the graph.
            feeds: its inputs, (n, ...) by name.
            most: number of examples in a batch, unless the model fixes it.

        Raises:
            EvaluationError: onnxruntime cannot run the model on these inputs.
        """
        count = len(next(iter(feeds.values())))
        size = self._batch_size(count, most)
        try:
            runs = [
                graph.run_named({n: one[start : start + size] for n, one in feeds.items()})
                for start in range(0, count, size)
            ]
        except DseError:
            raise
        except Exception as error:  # onnxruntime's errors have no class of their own
            first = str(error).strip().partition("\n")[0]
            shown = ", ".join(f"{one.shape[1:]} an example ({one.dtype})" for one in feeds.values())
            raise EvaluationError(
                f"{self.name} does not run on inputs of shape {shown}: {first}",
                hint="data must have the inputs of the exported model",
            ) from error
        return [list(one) for one in zip(*runs, strict=True)]

    def _batch_size(self, count: int, most: int = _BATCH) -> int:
        """Return the number of examples in a run: the model's, if its first axis is fixed.

        Raises:
            EvaluationError: the model's fixed number does not divide the number of examples.
        """
        axes = next(iter(graph_inputs(self._file.model).values())).shape.dim
        fixed = int(axes[0].dim_value) if len(axes) else 0
        if fixed and count % fixed:
            raise EvaluationError(
                f"{self.name} takes exactly {fixed} examples at a time, not {count}",
                hint="export it with a dynamic first axis, or with one example",
            )
        return fixed or most

    def _turned(self, name: str, array: Single) -> Single:
        """Return weights that the file stores as (inputs, outputs) transposed; others as is."""
        uses = self._file.layers.get(name)
        return np.ascontiguousarray(array.T) if uses and uses[0].is_turned else array


def _typed(name: str, array: NDArray[Any], kind: int) -> NDArray[Any]:
    """Return integers in the integer type of a graph's input, and other arrays unchanged.

    Raises:
        EvaluationError: the input has floats, and the array integers.
    """
    wanted = library("onnx").helper.tensor_dtype_to_np_dtype(kind)
    if array.dtype.kind == "i" and wanted.kind == "f":
        raise EvaluationError(
            f"the model's input {name!r} has floats, but the data has integers",
            hint="store floats, scaled as in training: inputs / np.float32(255)",
        )
    is_whole = array.dtype.kind == "i" and wanted.kind in "iub"
    return array.astype(wanted) if is_whole else array


def _rows(layer: OnnxLayer, weight: Single, signal: NDArray[Any]) -> Single | None:
    """Return the inputs of a layer as rows, (rows, inputs of one output).

    The result is ``None`` for a convolution whose padding the file does not state in numbers.
    """
    if layer.operator != "Conv":
        return _sample(np.ascontiguousarray(signal.reshape(-1, signal.shape[-1])))
    if layer.attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    window = weight.ndim - 2
    strides = layer.attributes.get("strides", [1] * window)
    steps = layer.attributes.get("dilations", [1] * window)
    pads = layer.attributes.get("pads", [0] * 2 * window)
    padded = np.pad(signal, [(0, 0), (0, 0), *zip(pads[:window], pads[window:], strict=True)])
    reach = [step * (size - 1) + 1 for step, size in zip(steps, weight.shape[2:], strict=True)]
    axes = tuple(range(2, 2 + window))
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axes)
    moved = (slice(None), slice(None), *(slice(None, None, one) for one in strides))
    taps = tuple(slice(None, None, one) for one in steps)
    views = views[(*moved, *taps)]  # (n, channels, positions ..., taps ...)
    groups = layer.attributes.get("group", 1)
    split = views.reshape(len(views), groups, -1, *views.shape[2:])
    ordered = np.moveaxis(split, 2, 2 + window)  # (n, groups, positions ..., channels, taps ...)
    return _sample(ordered.reshape(-1, int(np.prod(weight.shape[1:]))))


def _sample(rows: NDArray[Any]) -> Single:
    """Return at most 4096 rows; of more, a random sample with a fixed seed."""
    if len(rows) > _MOST_SAMPLES:
        drawn = np.random.default_rng(0).choice(len(rows), _MOST_SAMPLES, replace=False)
        rows = rows[np.sort(drawn)]
    return np.ascontiguousarray(rows, dtype=np.float32)
