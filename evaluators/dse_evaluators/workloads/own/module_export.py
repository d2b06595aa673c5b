"""PyTorch modules of the user as ONNX files, with one initializer for each parameter."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dse.errors import DseError, EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.onnx_runtime import Session, library
from dse_evaluators.workloads.own.own_outputs import table_of

_OPSET = 20
_INPUT = "inputs"
_OUTPUT = "outputs"
_PREFIX = "model."
_TRACED = 2
"""Number of examples that the exporter sees; one would be taken for an axis that broadcasts."""

_RELATIVE, _ABSOLUTE = 1e-3, 1e-4
"""Differences of outputs that sums in another order may cause; a wrong graph causes larger ones."""

_HINT = (
    "use the sizes of tensors in forward, as in images.shape[0], not len(images) or numbers; "
    "--to safetensors or torch needs no graph"
)


def export_module(
    module: nn.Module,
    parameters: Mapping[str, Single],
    feeds: Mapping[str, NDArray[Any]],
    name: str,
) -> bytes:
    """Return a module as the bytes of an ONNX file whose first axes may have any length.

    The graph is the one that the module runs on the inputs. Its initializers have the names of the
    parameters: no operator is folded. If the graph only fits the number of examples that it was
    traced with, it is traced with one example, and takes one at a time.

    Args:
        module: the module in evaluation mode, on the CPU.
        parameters: its parameters and buffers by name.
        feeds: at least three examples of each input, by its name; ``""`` is the first argument.
        name: name of the model for messages.

    Raises:
        PluginError: onnx or onnxruntime is not installed.
        EvaluationError: PyTorch cannot export the module, or the graph gives other outputs.
    """
    batch = {key: one[: _TRACED + 1] for key, one in feeds.items()}
    problem = ""
    for examples in (_TRACED, 1):
        try:
            content = _export(module, {key: one[:examples] for key, one in batch.items()})
        except DseError:
            raise
        except Exception as error:  # the exporter's errors have no class of their own
            first = str(error).strip().partition("\n")[0]
            raise EvaluationError(
                f"PyTorch cannot export {name}: {first:.300}",
                hint="--to safetensors or torch needs no graph",
            ) from error
        graph = _renamed(content, parameters, is_fixed=examples == 1)
        seen = [batch] if examples > 1 else _split(batch)
        problem = next(filter(None, (_difference(module, graph, one) for one in seen)), "")
        if not problem:
            return graph
    raise EvaluationError(f"the ONNX graph of {name} {problem}", hint=_HINT)


class _Traced(nn.Module):
    """Module whose inputs are positional, as the exporter passes them.

    It is in training mode, so that the exporter does not merge parameters of equal values.
    """

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = module
        self.training = True
        self._names = names

    def forward(self, *inputs: Tensor) -> Any:
        if self._names == ("",):
            return self.model(*inputs)
        return self.model(**dict(zip(self._names, inputs, strict=True)))


def _export(module: nn.Module, feeds: Mapping[str, NDArray[Any]]) -> bytes:
    library("onnx")
    names = [key or _INPUT for key in feeds]
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # of sizes that the trace holds fixed: outputs are compared
        torch.onnx.export(
            _Traced(module, tuple(feeds)),
            tuple(torch.tensor(one) for one in feeds.values()),
            file,  # type: ignore[arg-type]  # its types leave out the buffers that it takes
            dynamo=False,
            opset_version=_OPSET,
            input_names=names,
            output_names=[_OUTPUT],
            dynamic_axes={key: {0: "n"} for key in (*names, _OUTPUT)},
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE,
        )
    return file.getvalue()


def _renamed(content: bytes, parameters: Mapping[str, Single], *, is_fixed: bool) -> bytes:
    """Return a graph with the module's own names, and with parameters that it does not use."""
    onnx = library("onnx")
    model = onnx.load_model_from_string(content)
    for node in model.graph.node:
        node.input[:] = [one.removeprefix(_PREFIX) for one in node.input]
    for tensor in model.graph.initializer:
        tensor.name = tensor.name.removeprefix(_PREFIX)
    present = {tensor.name for tensor in model.graph.initializer}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.ascontiguousarray(array), key)
        for key, array in parameters.items()
        if key not in present
    )
    if is_fixed:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _split(feeds: Mapping[str, NDArray[Any]]) -> list[dict[str, NDArray[Any]]]:
    """Return each example as a batch of one."""
    count = len(next(iter(feeds.values())))
    return [{key: one[k : k + 1] for key, one in feeds.items()} for k in range(count)]


def _difference(module: nn.Module, graph: bytes, feeds: Mapping[str, NDArray[Any]]) -> str:
    """Return how the outputs of a graph differ from those of a module; empty if they agree."""
    given = {key: torch.tensor(one) for key, one in feeds.items()}
    args = (given.pop(""),) if "" in given else ()
    with torch.inference_mode():
        wanted = table_of(module(*args, **given))
    try:
        found = Session(graph).run_named({key or _INPUT: one for key, one in feeds.items()})[0]
    except EvaluationError as error:
        return f"cannot be run: {error.problem}"
    except Exception as error:  # noqa: BLE001 - its errors have no class of their own
        return f"cannot be run: {str(error).strip().partition(chr(10))[0]:.300}"
    if found.shape != wanted.shape:
        return f"has outputs of shape {found.shape}, and the module of shape {wanted.shape}"
    if not np.allclose(found, wanted, rtol=_RELATIVE, atol=_ABSOLUTE * (1 + np.abs(wanted).max())):
        return f"has outputs that differ by up to {np.abs(found - wanted).max():.3g}"
    return ""
