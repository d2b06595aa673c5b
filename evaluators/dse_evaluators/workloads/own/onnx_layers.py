"""ONNX file of the user: its compressible weights, and their orientation in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError
from dse_evaluators.workloads.onnx_runtime import library
from dse_evaluators.workloads.own.own_function import digest, missing_file, read_own_file
from dse_evaluators.workloads.workload import Layout

_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
"""Domains of the operators that onnxruntime has."""

_AGAIN = "copy the file, or export it with torch.onnx.export, again"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxLayer:
    """Layer of an ONNX graph: an operator that uses a weight.

    ``is_turned`` is true for weights stored as (inputs, outputs), which are transposed to
    (outputs, inputs); ``signal`` is the name of the operator's input.
    """

    operator: str
    is_turned: bool
    signal: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxFile:
    """Checked ONNX model with the layers that use each compressible weight."""

    model: Any  # onnx has no types
    layers: Mapping[str, tuple[OnnxLayer, ...]]
    layout: Layout

    @property
    def content(self) -> bytes:
        """Model in ONNX's format, with all weights inside."""
        return bytes(self.model.SerializeToString())

    def content_by_outputs(self) -> bytes:
        """Return the model with each layer's weights stored as (outputs, inputs).

        Weights that the file stores as (inputs, outputs) get a ``Transpose`` before their layers.
        """
        onnx = library("onnx")
        model = onnx.ModelProto.FromString(self.content)
        turned = {name: f"{name}.turned" for name, uses in self.layers.items() if uses[0].is_turned}
        for node in model.graph.node:
            node.input[:] = [turned.get(name, name) for name in node.input]
        for tensor in model.graph.initializer:
            if tensor.name in turned:
                array = np.ascontiguousarray(onnx.numpy_helper.to_array(tensor).T)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        nodes = [
            onnx.helper.make_node("Transpose", [name], [new], name=new, perm=[1, 0])
            for name, new in turned.items()
        ]
        nodes += [onnx.NodeProto.FromString(one.SerializeToString()) for one in model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        return bytes(model.SerializeToString())


def onnx_edition(path: Path) -> str:
    """Return a hash of an ONNX file and of the files that hold its weights.

    Raises:
        SpecError: the file is not an ONNX model, or a file of weights is missing.
    """
    onnx = library("onnx")
    content = read_own_file(path)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # onnx does not export the error class of protobuf
        raise SpecError(f"{path.name} is not an ONNX model: {error}", hint=_AGAIN) from error
    named = {
        entry.value
        for tensor in model.graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    for name in sorted(named):
        inside = (path.parent / name).resolve().is_relative_to(path.parent.resolve())
        if not inside:
            problem = f"{path.name} names weights outside its folder: {name!r}"
            raise SpecError(problem, hint="keep the files of weights next to the model")
        if not (path.parent / name).is_file():
            raise missing_file(path.parent / name)
    return digest(content, *((path.parent / name).read_bytes() for name in sorted(named)))


def read_onnx(path: Path) -> OnnxFile:
    """Read and check an ONNX file.

    Args:
        path: the file.

    Raises:
        SpecError: it is not a complete model, an operator is unknown, a layer's weights are not
            in single precision, or the model has no input.
    """
    onnx = library("onnx")
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:  # onnx does not export the error class of protobuf
        first = str(error).strip().partition("\n")[0]
        problem = f"{path.name} is not a complete ONNX model: {first}"
        raise SpecError(problem, hint=_AGAIN) from error
    _check_operators(model, path)
    if not graph_inputs(model):
        raise SpecError(f"{path.name} has no input", hint="export it with an example input")
    _store_constants(onnx, model)
    layers = _find_layers(onnx, model, path)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    shapes = {
        name: tuple(
            tensor.dims[::-1] if name in layers and layers[name][0].is_turned else tensor.dims
        )
        for name, tensor in stored.items()
        if tensor.data_type == onnx.TensorProto.FLOAT
    }
    kept = tuple(name for name, shape in shapes.items() if len(shape) > 1 and name not in layers)
    inputs = tuple(graph_inputs(model))
    layout = Layout(shapes=shapes, layers=tuple(layers), kept=kept, inputs=inputs)
    return OnnxFile(model=model, layers=layers, layout=layout)


def _check_operators(model: Any, path: Path) -> None:
    for node in model.graph.node:
        if node.domain not in _DOMAINS and not model.functions:
            raise SpecError(
                f"{path.name} has the operator {node.op_type!r} of the domain {node.domain!r}",
                hint="onnxruntime has no such operator; export with standard operators",
            )


def graph_inputs(model: Any) -> dict[str, Any]:
    """Return the inputs of a model by name, each with its type.

    Args:
        model: an ONNX model.
    """
    given = {tensor.name for tensor in model.graph.initializer}  # old files list weights as inputs
    return {one.name: one.type.tensor_type for one in model.graph.input if one.name not in given}


def _store_constants(onnx: Any, model: Any) -> None:
    """Turn ``Constant`` operators with tensors into stored tensors."""
    rest = []
    for node in model.graph.node:
        value = next((one.t for one in node.attribute if one.name == "value"), None)
        if node.op_type == "Constant" and value is not None and value.dims:
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(value)
            tensor.name = node.output[0]
        else:
            rest.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del model.graph.node[:]
    model.graph.node.extend(rest)


def _find_layers(onnx: Any, model: Any, path: Path) -> dict[str, tuple[OnnxLayer, ...]]:
    """Return the layers of each weight that is used by layers of one orientation only.

    Raises:
        SpecError: a layer's weights are not in single precision.
    """
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    found: dict[str, list[OnnxLayer | None]] = {}
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name in stored and len(stored[name].dims) > 1:
                found.setdefault(name, []).append(_layer(onnx, node, place, stored[name]))
    layers: dict[str, tuple[OnnxLayer, ...]] = {}
    for name, uses in found.items():
        known = tuple(one for one in uses if one is not None)
        if len(known) < len(uses) or len({one.is_turned for one in known}) > 1:
            continue
        kind = stored[name].data_type
        if kind != onnx.TensorProto.FLOAT:
            text = onnx.TensorProto.DataType.Name(kind)
            hint = "export the model in single precision: model.float()"
            raise SpecError(f"{path.name}: the weights {name!r} are {text}", hint=hint)
        layers[name] = known
    return layers


def _layer(onnx: Any, node: Any, place: int, tensor: Any) -> OnnxLayer | None:
    """Return the layer that an operator makes of a stored tensor; ``None`` for other operators."""
    values = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    axes = len(tensor.dims)
    turned = False
    match (node.op_type, place):
        case ("Conv", 1) if axes in (3, 4):
            pass
        case ("Gemm", 1) if axes == 2 and not values.get("transA"):
            turned = not values.get("transB", 0)
        case ("MatMul", 1) if axes == 2:
            turned = True
        case ("Gather", 0) if axes == 2 and not values.get("axis", 0):
            pass
        case _:
            return None
    return OnnxLayer(
        operator=node.op_type, is_turned=turned, signal=node.input[0], attributes=values
    )
