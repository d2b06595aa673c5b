"""Access to onnx and onnxruntime: running models, and editing their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError, PluginError
from dse_evaluators.formats.arrays import Single


def library(name: str) -> Any:  # neither package has types
    """Import a module of onnx or onnxruntime by name.

    Raises:
        PluginError: the module is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise PluginError(
            f"ONNX models need the package {name.partition('.')[0]!r}",
            hint="pip install 'dse-engine[onnx]'",
        ) from error


class Session:
    """Inference session of a model on CPU threads.

    Args:
        model: the bytes of an ONNX file.
        optimization: the level of graph optimization, a member's name of onnxruntime's
            ``GraphOptimizationLevel``.
        threads: number of threads that share the work of an operator.

    Raises:
        PluginError: onnxruntime is not installed.
        EvaluationError: onnxruntime cannot run the model.
    """

    def __init__(
        self, model: bytes, optimization: str = "ORT_ENABLE_ALL", *, threads: int = 1
    ) -> None:
        runtime = library("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4  # errors are exceptions, too; warnings concern its own work
        level = getattr(runtime.GraphOptimizationLevel, optimization)
        options.graph_optimization_level = level
        try:
            self._session = runtime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors have no class of their own
            first = str(error).strip().partition("\n")[0]
            raise EvaluationError(
                f"onnxruntime cannot run the model: {first:.300}",
                hint="export it with an opset and operators that this onnxruntime supports",
            ) from error

    @property
    def inputs(self) -> Mapping[str, tuple[str, tuple[int | None, ...]]]:
        """Element type and shape of each input by name; a free axis is ``None``."""
        return {
            one.name: (
                str(one.type),
                tuple(axis if isinstance(axis, int) and axis > 0 else None for axis in one.shape),
            )
            for one in self._session.get_inputs()
        }

    def run(self, inputs: NDArray[np.generic]) -> list[Single]:
        """Run the model with ``inputs`` as its first input; return all outputs."""
        return self.run_named({self._session.get_inputs()[0].name: inputs})

    def run_named(self, inputs: Mapping[str, NDArray[np.generic]]) -> list[Single]:
        """Run the model with inputs by name; return all outputs."""
        found: list[Single] = self._session.run(None, dict(inputs))
        return found


def initializers(model: bytes, names: Sequence[str]) -> list[Single]:
    """Return the named weights of a model, in single precision."""
    found = all_initializers(model)
    return [found[name].astype(np.float32) for name in names]


def all_initializers(model: bytes) -> dict[str, NDArray[np.generic]]:
    """Return all weights and constants of a model by name, in the precision of the file."""
    onnx = library("onnx")
    graph = onnx.load_model_from_string(model).graph
    return {
        tensor.name: np.array(onnx.numpy_helper.to_array(tensor)) for tensor in graph.initializer
    }


def with_initializers(model: bytes, arrays: Mapping[str, Single]) -> bytes:
    """Return an ONNX model with some weights replaced by others of the same shapes."""
    onnx = library("onnx")
    changed = onnx.load_model_from_string(model)
    for tensor in changed.graph.initializer:
        if tensor.name in arrays:
            array = np.ascontiguousarray(arrays[tensor.name], dtype=np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return bytes(changed.SerializeToString())


def with_outputs(model: bytes, names: Sequence[str]) -> bytes:
    """Return an ONNX model with the named intermediate tensors as its only outputs."""
    onnx = library("onnx")
    changed = onnx.load_model_from_string(model)
    del changed.graph.output[:]
    kind = onnx.TensorProto.FLOAT
    changed.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, kind, None) for name in names
    )
    return bytes(changed.SerializeToString())


def read_model(path: Path) -> bytes:
    """Return the bytes of an ONNX file.

    Raises:
        PluginError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise PluginError(f"the model {path.name} cannot be read: {error.strerror}") from error
