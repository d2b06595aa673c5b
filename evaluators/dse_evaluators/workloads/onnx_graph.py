"""Graph of an ONNX file: operators, attributes, inferred shapes and stored tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.onnx_runtime import library

Shape = tuple[int, ...]

_KEPT = 1024
"""Largest number of elements of a tensor whose values are kept for shape inference."""

_FLOATS = ("FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxNode:
    """Operator of an ONNX graph: names of its inputs and outputs, and its integer attributes."""

    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, tuple[int, ...]]

    def number(self, attribute: str, default: int) -> int:
        """Return an attribute's first value, or the default if the attribute is absent."""
        return self.attributes.get(attribute, (default,))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Operators of an ONNX model in topological order, with tensor shapes.

    ``shapes`` lacks tensors whose shape cannot be inferred. ``made_of`` maps each constant tensor
    to the stored tensors that it is computed from. ``stored`` is the number of elements of each
    stored floating-point tensor.
    """

    nodes: Sequence[OnnxNode]
    shapes: Mapping[str, Shape]
    made_of: Mapping[str, frozenset[str]]
    stored: Mapping[str, int]


def graph_of(path: Path, sizes: Mapping[str, int]) -> Graph:
    """Return the graph of an ONNX file, with sizes given by name for its dynamic (open) axes.

    An axis without a name is called after its input: ``x.0`` is the first axis of ``x``.

    Raises:
        PluginError: onnx is not installed.
        SpecError: the file is not a model, an open axis has no size, or no axis has that name.
    """
    onnx = library("onnx")
    model = _load_model(onnx, path)
    graph = model.graph
    _close(graph, path, sizes)
    stored = {tensor.name: tensor for tensor in graph.initializer}
    counts = {
        name: prod(tensor.dims)
        for name, tensor in stored.items()
        if onnx.TensorProto.DataType.Name(tensor.data_type) in _FLOATS
    }
    _forget_values(stored.values())
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except onnx.shape_inference.InferenceError as error:
        raise SpecError(f"{path.name} is not a complete model: {error}") from error
    nodes = [_node(onnx, place, node) for place, node in enumerate(graph.node)]
    return Graph(nodes=nodes, shapes=_shapes(graph), made_of=_made_of(nodes, stored), stored=counts)


def _load_model(onnx: Any, path: Path) -> Any:  # onnx has no types
    """Load the model with its functions inlined; weights in external files are not loaded."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise SpecError(f"the model {str(path)!r} cannot be read: {error.strerror}") from error
    except Exception as error:  # onnx does not export the error class of protobuf
        raise SpecError(f"{str(path)!r} is not an ONNX model: {error}") from error
    return library("onnx.inliner").inline_local_functions(model) if model.functions else model


def _close(graph: Any, path: Path, sizes: Mapping[str, int]) -> None:
    """Set the size of every dynamic axis of an ONNX graph's inputs.

    The recorded shapes of intermediate tensors and outputs are removed, to be inferred anew.
    """
    axes = _open_axes(graph)
    for name in sizes:
        if name not in axes:
            raise SpecError(f"{path.name} has no open axis {name!r}", hint=nearest(name, axes))
    left = [name for name in axes if name not in sizes]
    if left:
        raise SpecError(
            f"{path.name} has axes without a size: {', '.join(left)}",
            hint=f"state them: onnx:{path.name},{','.join(f'{name}=1' for name in left)}",
        )
    for name, same in axes.items():
        for axis in same:
            axis.dim_value = sizes[name]
    del graph.value_info[:]
    for signal in graph.output:
        signal.type.tensor_type.ClearField("shape")


def _open_axes(graph: Any) -> dict[str, list[Any]]:
    """Return the dynamic axes of the graph's inputs, by name."""
    given = {tensor.name for tensor in graph.initializer}  # old files list weights as inputs, too
    axes: dict[str, list[Any]] = {}
    for signal in graph.input:
        inner = [] if signal.name in given else signal.type.tensor_type.shape.dim
        for place, axis in enumerate(inner):
            if axis.dim_value < 1:
                axes.setdefault(axis.dim_param or f"{signal.name}.{place}", []).append(axis)
    return axes


def _forget_values(tensors: Any) -> None:
    for tensor in tensors:
        if prod(tensor.dims) > _KEPT:
            for part in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
                tensor.ClearField(part)


def _node(onnx: Any, place: int, node: Any) -> OnnxNode:
    values = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    wholes = {
        name: tuple(value) if isinstance(value, list) else (value,)
        for name, value in values.items()
        if isinstance(value, int) or (isinstance(value, list) and _are_whole(value))
    }
    return OnnxNode(
        name=node.name or f"{node.op_type}{place}",
        operator=node.op_type,
        domain=node.domain,
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attributes=wholes,
    )


def _are_whole(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _shapes(graph: Any) -> dict[str, Shape]:
    """Return the shapes of the tensors for which every axis has a size."""
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for signal in (*graph.input, *graph.value_info, *graph.output):
        tensor = signal.type.tensor_type
        axes = tuple(axis.dim_value for axis in tensor.shape.dim)
        if tensor.HasField("shape") and all(axes):
            shapes[signal.name] = axes
    return shapes


def _made_of(nodes: Sequence[OnnxNode], stored: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return each constant tensor with the stored tensors from which it is computed, by name."""
    made = {name: frozenset([name]) for name in stored}
    for node in nodes:
        inputs = [name for name in node.inputs if name]
        if all(name in made for name in inputs):
            roots = frozenset[str]().union(*(made[name] for name in inputs))
            made.update(dict.fromkeys(node.outputs, roots))
    return made
