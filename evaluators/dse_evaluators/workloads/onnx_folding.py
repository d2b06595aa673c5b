"""Evaluation of the parts of an ONNX graph that compute shapes, so that all shapes are known."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.workloads.onnx_runtime import library

_MOST = 1024
"""Largest number of elements of a tensor that is computed."""

_LARGEST = 2**63 - 1
"""Largest size that ONNX's integers can state."""

_FOLDED = frozenset(
    (  # noqa: SIM905 - one word a line is longer
        "Abs Add And Cast Ceil Concat Constant ConstantOfShape Div Equal Expand Floor Gather "
        "Greater Identity Less Max Min Mod Mul Neg Not Or ReduceMax ReduceMin ReduceProd "
        "ReduceSum Reshape Round Shape Size Slice Split Sqrt Squeeze Sub Unsqueeze Where"
    ).split()
)
"""Operators that are computed; those of constants with more elements are not."""

_GROWING = ("ConstantOfShape", "Expand")
"""Operators whose result is larger than their inputs; the last input is its shape."""

Known = dict[str, NDArray[Any]]


def infer_shapes(model: Any) -> Any:  # onnx has no types
    """Return a model with the shapes of its tensors, as far as they can be inferred.

    Nodes that compute shapes, such as those of a ``Reshape``, are replaced by their values. Stored
    floating-point tensors of several elements are never replaced.

    Args:
        model: the model with sizes for all axes of its inputs; it is changed.

    Raises:
        InferenceError: of onnx, if shapes contradict each other.
    """
    onnx = library("onnx")
    known = _stored_values(onnx, model.graph)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    while _fold(onnx, model.graph, known_shapes(inferred.graph), known):
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return inferred


def known_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors for which every axis has a size.

    Args:
        graph: a graph of onnx.
    """
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for signal in (*graph.input, *graph.value_info, *graph.output):
        tensor = signal.type.tensor_type
        axes = tuple(axis.dim_value for axis in tensor.shape.dim)
        if tensor.HasField("shape") and all(axes):
            shapes[signal.name] = axes
    return shapes


def _stored_values(onnx: Any, graph: Any) -> Known:
    """Return the stored integers, and stored numbers of one element, by name."""
    whole = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL)
    found: Known = {}
    for tensor in graph.initializer:
        count = prod(tensor.dims)
        if count > _MOST or tensor.data_location == onnx.TensorProto.EXTERNAL:
            continue
        if tensor.data_type in whole or count == 1:
            with suppress(ValueError):  # damaged content; its values stay unknown
                found[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return found


def _fold(onnx: Any, graph: Any, shapes: Mapping[str, tuple[int, ...]], known: Known) -> bool:
    """Replace the nodes whose values are known by stored tensors; return whether there were any."""
    rest, count = [], len(known)
    for node in graph.node:
        values = _values_of(onnx, node, shapes, known)
        if values is None:
            rest.append(onnx.NodeProto.FromString(node.SerializeToString()))
            continue
        known.update(values)
        graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in values.items())
    if len(known) == count:
        return False
    del graph.node[:]
    graph.node.extend(rest)
    return True


def _values_of(
    onnx: Any, node: Any, shapes: Mapping[str, tuple[int, ...]], known: Known
) -> Known | None:
    """Return the values of a node's outputs; ``None`` if they are not known or too large."""
    if node.op_type not in _FOLDED or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in ("Shape", "Size"):
        return _measure(node, shapes)
    if not all(name in known for name in node.input if name):
        return None
    inputs = {name: known[name] for name in node.input if name}
    if node.op_type in _GROWING:
        wanted = inputs.get(node.input[-1]) if node.input else None
        if wanted is None or np.prod(wanted, dtype=float) > _MOST:
            return None
    return _compute(onnx, node, inputs)


def _measure(node: Any, shapes: Mapping[str, tuple[int, ...]]) -> Known | None:
    """Return the shape, or the number of elements, of a tensor whose shape is known."""
    shape = shapes.get(node.input[0]) if node.input else None
    if shape is None or prod(shape) > _LARGEST:
        return None
    if node.op_type == "Size":
        return {node.output[0]: np.array(prod(shape), dtype=np.int64)}
    ends = {one.name: one.i for one in node.attribute}
    part = shape[ends.get("start", 0) : ends.get("end", len(shape))]
    return {node.output[0]: np.array(part, dtype=np.int64)}


def _compute(onnx: Any, node: Any, inputs: Known) -> Known | None:
    if node.op_type == "Constant":
        value: Any = next((one.t for one in node.attribute if one.name == "value"), None)
        count = _MOST + 1 if value is None else prod(value.dims)
        if count > (1 if count > _MOST or value.data_type == onnx.TensorProto.FLOAT else _MOST):
            return None
    try:
        evaluator = library("onnx.reference").ReferenceEvaluator(node)
        with np.errstate(all="ignore"):
            found = [np.asarray(one) for one in evaluator.run(None, inputs)]
    except Exception:  # noqa: BLE001 - it is not computed then; its shape stays unknown
        return None
    if any(one.size > _MOST or one.dtype.kind not in "iufb" for one in found):
        return None
    return dict(zip(node.output, found, strict=True))
