"""ONNX model that runs again from one layer on, with other weights of that layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.onnx_runtime import Session, library
from dse_evaluators.workloads.workload import Split

Feeds = Mapping[str, NDArray[Any]]


@runtime_checkable
class RunsOnnx(Protocol):
    """Workload whose outputs are those of an ONNX file for batches of its examples."""

    def onnx_model(self) -> bytes:
        """Return the model as an ONNX file, with an initializer for each parameter, by its name."""
        ...

    def onnx_batches(self, split: Split) -> Sequence[Feeds]:
        """Return the inputs of the file for the examples of a split, in batches."""
        ...

    def read_outputs(self, tables: Sequence[Single], split: Split) -> Single:
        """Return the outputs for each example, (n, k), from the file's first output by batch."""
        ...


class ResumedGraph:
    """ONNX model, of which only the nodes that depend on one layer's weights run again.

    The tensors that those nodes read from the rest of the model are computed once and kept. A model
    with control flow, or with such tensors of unknown type, runs as a whole.

    Args:
        model: the bytes of an ONNX file.
        layer: name of the layer's weights, an initializer of the file.
        batches: inputs of the model.

    Raises:
        EvaluationError: onnxruntime cannot run the model.
    """

    def __init__(self, model: bytes, layer: str, batches: Sequence[Feeds]) -> None:
        onnx = library("onnx")
        whole = onnx.load_model_from_string(model)
        self._layer = layer
        types = _tensor_types(onnx, model)
        dependent = _dependent_nodes(whole.graph, layer)
        boundary = _boundary(whole.graph, dependent, layer)
        if any(name not in types for name in boundary):
            dependent = list(whole.graph.node)
            boundary = _boundary(whole.graph, dependent, layer)
        self._share = len(dependent) / max(len(whole.graph.node), 1)
        self._kept = _compute_tensors(onnx, whole, boundary, types, batches)
        part = _part_of(onnx, whole, dependent, boundary, types, layer)
        self._session = Session(part)

    @property
    def share(self) -> float:
        """Share of the model's nodes that run again."""
        return self._share

    def run(self, weight: Single) -> list[Single]:
        """Return the model's first output for each batch, with these weights of the layer."""
        feeds = {self._layer: np.ascontiguousarray(weight, dtype=np.float32)}
        return [self._session.run_named({**kept, **feeds})[0] for kept in self._kept]


def _tensor_types(onnx: Any, model: bytes) -> dict[str, int]:
    """Return the element type of each tensor of a model by name, where it can be inferred."""
    inferred = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(model)).graph
    known = [*inferred.input, *inferred.value_info, *inferred.output]
    return {
        one.name: one.type.tensor_type.elem_type for one in known if one.type.tensor_type.elem_type
    }


def _dependent_nodes(graph: Any, layer: str) -> list[Any]:
    """Return the nodes that depend on an initializer, in order; all nodes with control flow."""
    changed, found = {layer}, []
    for node in graph.node:
        if any(one.HasField("g") or len(one.graphs) for one in node.attribute):
            return list(graph.node)
        if changed.intersection(node.input):
            found.append(node)
            changed.update(filter(None, node.output))
    return found


def _boundary(graph: Any, nodes: Sequence[Any], layer: str) -> list[str]:
    """Return the tensors that some nodes read from the rest of the graph, without initializers."""
    stored = {tensor.name for tensor in graph.initializer} | {layer, ""}
    made = {name for node in nodes for name in node.output}
    if nodes and len(nodes) == len(graph.node):
        return [one.name for one in graph.input if one.name not in stored]
    read = dict.fromkeys(name for node in nodes for name in node.input)
    first = graph.output[0].name
    wanted = [*read, *([first] if first not in made else [])]
    return [name for name in wanted if name not in stored and name not in made]


def _compute_tensors(
    onnx: Any, model: Any, names: Sequence[str], types: Mapping[str, int], batches: Sequence[Feeds]
) -> list[dict[str, NDArray[Any]]]:
    """Return the named tensors of the model for each batch."""
    given = {one.name for one in model.graph.input}
    wanted = [name for name in names if name not in given]
    if not wanted:
        return [{name: feeds[name] for name in names} for feeds in batches]
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    del changed.graph.output[:]
    changed.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, types[name], None) for name in wanted
    )
    session = Session(changed.SerializeToString())
    found = []
    for feeds in batches:
        made = dict(zip(wanted, session.run_named(feeds), strict=True))
        found.append({name: made.get(name, feeds.get(name)) for name in names})
    return found


def _part_of(
    onnx: Any,
    model: Any,
    nodes: Sequence[Any],
    boundary: Sequence[str],
    types: Mapping[str, int],
    layer: str,
) -> bytes:
    """Return a model of some nodes, whose inputs are the boundary and the layer's weights."""
    helper, graph = onnx.helper, model.graph
    used = {name for node in nodes for name in node.input}
    is_whole = len(nodes) == len(graph.node)
    weight = next(one for one in graph.initializer if one.name == layer)
    by_name = {one.name: one for one in graph.input}
    inputs = [
        by_name.get(name) or helper.make_tensor_value_info(name, types[name], None)
        for name in boundary
    ]
    inputs.append(helper.make_tensor_value_info(layer, weight.data_type, list(weight.dims)))
    rest = [
        one for one in graph.initializer if one.name != layer and (is_whole or one.name in used)
    ]
    part = helper.make_model(
        helper.make_graph(list(nodes), "resumed", inputs, [graph.output[0]], rest),
        opset_imports=list(model.opset_import),
        ir_version=model.ir_version,
        functions=list(model.functions),
    )
    return bytes(part.SerializeToString())
