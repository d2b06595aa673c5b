"""Graph of an ONNX file: operators, attributes, inferred shapes and stored tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.onnx_folding import infer_shapes, known_shapes
from dse_evaluators.workloads.onnx_runtime import library

Shape = tuple[int, ...]

_KEPT = 1024
"""Largest number of elements of a tensor whose values are kept for shape inference."""

_AGAIN = "copy the file, or export it with torch.onnx.export, again"

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
    stored floating-point tensor. ``batch_axes`` are the names of the open axes that got the size
    of the batch.
    """

    nodes: Sequence[OnnxNode]
    shapes: Mapping[str, Shape]
    made_of: Mapping[str, frozenset[str]]
    stored: Mapping[str, int]
    batch_axes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAxes:
    """Sizes of the dynamic (open) axes of a model's inputs.

    Attributes:
        sizes: size of each axis by name. An axis without a name is called after its input: ``x.0``
            is the first axis of ``x``.
        shapes: shape of one example, without the first axis, by the name of the input; ``""`` is
            the only input.
        batch: size of the first axis of an input of two or more axes, if it is open and ``sizes``
            does not have it; ``None`` if it must be there.
    """

    sizes: Mapping[str, int]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    batch: int | None = None


def graph_of(path: Path, axes: OpenAxes) -> Graph:
    """Return the graph of an ONNX file, with sizes for its dynamic (open) axes.

    Args:
        path: the file.
        axes: the sizes.

    Raises:
        PluginError: onnx is not installed.
        SpecError: the file is not a model, an open axis has no size, no axis has that name, or a
            shape does not fit.
    """
    onnx = library("onnx")
    model = _load_model(onnx, path)
    graph = model.graph
    batch_axes = _close(graph, path, axes)
    stored = {tensor.name: tensor for tensor in graph.initializer}
    counts = {
        name: prod(tensor.dims)
        for name, tensor in stored.items()
        if onnx.TensorProto.DataType.Name(tensor.data_type) in _FLOATS
    }
    _forget_values(stored.values())
    try:
        graph = infer_shapes(model).graph
    except onnx.shape_inference.InferenceError as error:
        raise SpecError(f"{path.name} is not a complete model: {error}", hint=_AGAIN) from error
    stored = {tensor.name: tensor for tensor in graph.initializer}
    nodes = [_node(onnx, place, node) for place, node in enumerate(graph.node)]
    return Graph(
        nodes=nodes,
        shapes=known_shapes(graph),
        made_of=_made_of(nodes, stored),
        stored=counts,
        batch_axes=batch_axes,
    )


def _load_model(onnx: Any, path: Path) -> Any:  # onnx has no types
    """Load the model with its functions inlined; weights in external files are not loaded."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise SpecError(f"the model {str(path)!r} cannot be read: {error.strerror}") from error
    except Exception as error:  # onnx does not export the error class of protobuf
        raise SpecError(f"{str(path)!r} is not an ONNX model: {error}", hint=_AGAIN) from error
    return library("onnx.inliner").inline_local_functions(model) if model.functions else model


def _close(graph: Any, path: Path, given: OpenAxes) -> Sequence[str]:
    """Set the size of every dynamic axis of an ONNX graph's inputs.

    The recorded shapes of intermediate tensors and outputs are removed, to be inferred anew.
    Returns the names of the axes that got the size of the batch.
    """
    axes = _open_axes(graph)
    for name in given.sizes:
        if name not in axes:
            hint = nearest(name, axes) if axes else "all its axes have sizes: give none"
            raise SpecError(f"{path.name} has no open axis {name!r}", hint=hint)
    shaped = _sizes_of_shapes(graph, path, given.shapes)
    firsts = [] if given.batch is None else _first_axes(graph)
    batch_axes = [one for one in firsts if one not in given.sizes and one not in shaped]
    sizes = {**dict.fromkeys(batch_axes, given.batch or 1), **shaped, **given.sizes}
    left = [name for name in axes if name not in sizes]
    if left:
        raise SpecError(
            f"{path.name} has axes without a size: {', '.join(left)}",
            hint=_hint_at_sizes(graph, path, left, is_plain=given.batch is None),
        )
    for name, same in axes.items():
        for axis in same:
            axis.dim_value = sizes[name]
    del graph.value_info[:]
    for signal in graph.output:
        signal.type.tensor_type.ClearField("shape")
    return batch_axes


def _hint_at_sizes(graph: Any, path: Path, left: Sequence[str], *, is_plain: bool) -> str:
    listed = ",".join(f"{name}=1" for name in left)
    if is_plain:
        return f"state them: onnx:{path.name},{listed}"
    inputs = _inputs(graph)
    shape = [axis.dim_value or 128 for axis in inputs[0].type.tensor_type.shape.dim[1:]]
    hint = f"state them: {path.name}:{listed}"
    if len(inputs) > 1:
        return hint
    return f"{hint}; or the shape of one example: {{file: {path.name}, input: {shape}}}"


def _sizes_of_shapes(graph: Any, path: Path, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Return the sizes that shapes of examples give to open axes, by the axes' names.

    Raises:
        SpecError: no input has that name, a shape does not fit, or gives no axis a size.
    """
    if not shapes:
        return {}
    inputs = {signal.name: signal.type.tensor_type.shape.dim for signal in _inputs(graph)}
    if "" in shapes and len(inputs) > 1:
        named = ", ".join(f"{name}: [...]" for name in inputs)
        hint = f"give the shape of each: input: {{{named}}}"
        raise SpecError(f"{path.name} has {len(inputs)} inputs", hint=hint)
    found: dict[str, int] = {}
    for key, shape in shapes.items():
        name = key or next(iter(inputs), "")
        if name not in inputs:
            raise SpecError(f"{path.name} has no input {name!r}", hint=nearest(name, inputs))
        found |= _sizes_of_shape(name, inputs[name], shape, path)
    if not found:
        stated = ", ".join(_shape_text(name, axes) for name, axes in inputs.items())
        hint = f"leave out input; the file has {stated}"
        raise SpecError(f"input has no effect on {path.name}", hint=hint)
    return found


def _sizes_of_shape(name: str, axes: Any, shape: Shape, path: Path) -> dict[str, int]:
    fits = len(axes) == len(shape) + 1 and all(
        axis.dim_value in (0, size) for axis, size in zip(axes[1:], shape, strict=True)
    )
    if not fits:
        hint = f"{_shape_text(name, axes)}; input leaves out the first axis, the batch"
        raise SpecError(f"{path.name} takes no input of shape {list(shape)}", hint=hint)
    return {
        axis.dim_param or f"{name}.{place}": size
        for place, (axis, size) in enumerate(zip(axes[1:], shape, strict=True), start=1)
        if axis.dim_value < 1
    }


def _shape_text(name: str, axes: Any) -> str:
    sizes = [str(axis.dim_value or axis.dim_param or "?") for axis in axes]
    return f"{name}: [{', '.join(sizes)}]"


def _inputs(graph: Any) -> list[Any]:
    stored = {tensor.name for tensor in graph.initializer}  # old files list weights as inputs, too
    return [signal for signal in graph.input if signal.name not in stored]


def _first_axes(graph: Any) -> list[str]:
    """Return the names of the first axes that are open, of inputs of two or more axes."""
    found: dict[str, None] = {}
    for signal in _inputs(graph):
        axes = signal.type.tensor_type.shape.dim
        if len(axes) > 1 and axes[0].dim_value < 1:
            found[axes[0].dim_param or f"{signal.name}.0"] = None
    return list(found)


def _open_axes(graph: Any) -> dict[str, list[Any]]:
    """Return the dynamic axes of the graph's inputs, by name."""
    axes: dict[str, list[Any]] = {}
    for signal in _inputs(graph):
        for place, axis in enumerate(signal.type.tensor_type.shape.dim):
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


def _made_of(nodes: Sequence[OnnxNode], stored: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return each constant tensor with the stored tensors from which it is computed, by name."""
    made = {name: frozenset([name]) for name in stored}
    for node in nodes:
        inputs = [name for name in node.inputs if name]
        if all(name in made for name in inputs):
            roots = frozenset[str]().union(*(made[name] for name in inputs))
            made.update(dict.fromkeys(node.outputs, roots))
    return made
