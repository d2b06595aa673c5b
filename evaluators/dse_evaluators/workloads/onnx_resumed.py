"""ONNX model that runs again from one layer on, with other weights of that layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.onnx_runtime import Session, library
from dse_evaluators.workloads.workload import Split

Feeds = Mapping[str, NDArray[Any]]

_MOST_ROWS = 64
"""Examples of all weights that run together."""


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
    """ONNX model, of which only the nodes that depend on one layer's weights are run again.

    The tensors that those nodes read from the rest of the model are computed once and kept. Several
    weights run together, behind the layer, as one batch, if this gives the outputs of single runs.
    A model with control flow, or with such tensors of unknown type, runs as a whole.

    Args:
        model: the bytes of an ONNX file.
        layer: name of the layer's weights, an initializer of the file.
        batches: inputs of the model.
        weight: the weights in the file.

    Raises:
        EvaluationError: onnxruntime cannot run the model.
    """

    def __init__(self, model: bytes, layer: str, batches: Sequence[Feeds], weight: Single) -> None:
        onnx = library("onnx")
        whole = onnx.load_model_from_string(model)
        self._layer = layer
        types = _tensor_types(onnx, whole)
        _fold_constants(onnx, whole, layer, types)
        nodes = _dependent_nodes(whole.graph, layer)
        if any(name not in types for name in _boundary(whole.graph, nodes, layer)):
            nodes = list(whole.graph.node)
        self._share = len(nodes) / max(len(whole.graph.node), 1)
        names = _boundary(whole.graph, nodes, layer)
        self._kept = _compute_tensors(onnx, whole, names, types, batches)
        part = _Part(names=tuple(names), outputs=(whole.graph.output[0].name,))
        self._session = Session(_model_of(onnx, whole, nodes, part, types, layer))
        self._read_rows = _gathered_rows(onnx, whole.graph, layer, self._kept)
        self._stacked: _StackedRuns | None = None
        sizes = {len(next(iter(one.values()))) for one in batches}
        copies = _MOST_ROWS // max(sizes)
        if copies > 1 and len(sizes) == 1:
            self._stacked = self._stack(onnx, whole, nodes, types, copies, weight)

    @property
    def share(self) -> float:
        """Share of the model's nodes that run again when one layer has changed."""
        return self._share

    @property
    def together(self) -> int:
        """Number of changed weights that one run of the graph evaluates together."""
        return 1 if self._stacked is None else self._stacked.copies

    def reads_row(self, row: int) -> bool:
        """Return whether the model reads a row of the layer's weights for these inputs.

        It is false for the rows of an embedding that no input names.
        """
        return self._read_rows is None or row in self._read_rows

    def run(self, weight: Single) -> list[Single]:
        """Run the model with changed weights of the layer; return its first output by batch."""
        feeds = {self._layer: np.ascontiguousarray(weight, dtype=np.float32)}
        return [self._session.run_named({**kept, **feeds})[0] for kept in self._kept]

    def run_each(self, weights: Iterable[Single]) -> Iterator[list[Single]]:
        """Yield what :meth:`run` returns for each of some weights, up to rounding.

        Each weight is read before the next one is taken, so that one array may be changed in place.
        """
        if self._stacked is None:
            yield from map(self.run, weights)
        else:
            yield from self._stacked.run_each(weights)

    def _stack(
        self,
        onnx: Any,
        whole: Any,
        nodes: Sequence[Any],
        types: Mapping[str, int],
        copies: int,
        weight: Single,
    ) -> _StackedRuns | None:
        """Return runs of several weights together; None if the model does not allow them."""
        divided = _divide_nodes(whole.graph, nodes, self._layer, types)
        if divided is None:
            return None
        first, later = divided
        made = {name for node in first for name in node.output}
        read = [name for name in _boundary(whole.graph, later, "") if name in made]
        rest = [name for name in _boundary(whole.graph, later, "") if name not in made]
        last = whole.graph.output[0].name
        needed = [name for name in _boundary(whole.graph, first, self._layer) if name != last]
        before = _Part(names=tuple(needed), outputs=tuple(read))
        after = _Part(names=(*read, *rest), outputs=(last,))
        try:
            found = _StackedRuns(
                layer=self._layer,
                first=Session(_model_of(onnx, whole, first, before, types, self._layer)),
                later=Session(_model_of(onnx, whole, later, after, types, "")),
                names=(before.names, tuple(read), tuple(rest)),
                kept=self._kept,
                copies=copies,
            )
            tried = [weight, weight * np.float32(1.5), -weight]
            both = zip(found.run_each(tried), map(self.run, tried), strict=True)
            equal = all(
                one.shape == other.shape and np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)
                for pair in both
                for one, other in zip(*pair, strict=True)
            )
        except Exception:  # noqa: BLE001 - onnxruntime's errors have no class of their own
            return None  # fixed shapes, for instance
        return found if equal else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Inputs and outputs of a part of a model."""

    names: tuple[str, ...]
    outputs: tuple[str, ...]


class _StackedRuns:
    """Model in two parts: the layer, run for each weight, and the rest, run for several together.

    Args:
        layer: name of the layer's weights.
        first: the nodes that read them.
        later: the nodes behind.
        names: what the first part reads, what it gives, and what else the later part reads.
        kept: tensors of the model by name, for each batch of inputs.
        copies: number of weights that run together.
    """

    def __init__(
        self,
        *,
        layer: str,
        first: Session,
        later: Session,
        names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
        kept: Sequence[Feeds],
        copies: int,
    ) -> None:
        self._layer, self._first, self._later, self.copies = layer, first, later, copies
        read, self._given, rest = names
        self._read = [{name: one[name] for name in read} for one in kept]
        self._rest = [
            {name: _tile(one[name], self._size(one), copies) for name in rest} for one in kept
        ]

    @staticmethod
    def _size(kept: Feeds) -> int:
        """Return the number of examples: the most frequent length of the kept tensors."""
        lengths = [len(one) for one in kept.values() if np.ndim(one)]
        return max(set(lengths), key=lengths.count) if lengths else 0

    def run_each(self, weights: Iterable[Single]) -> Iterator[list[Single]]:
        """Yield the model's first output for each batch, for each of some weights."""
        waiting: list[list[list[Single]]] = []
        for weight in weights:
            feeds = {self._layer: np.ascontiguousarray(weight, dtype=np.float32)}
            waiting.append([self._first.run_named({**one, **feeds}) for one in self._read])
            if len(waiting) == self.copies:
                yield from self._run_waiting(waiting)
                waiting = []
        if waiting:
            yield from self._run_waiting(waiting)

    def _run_waiting(self, waiting: Sequence[list[list[Single]]]) -> Iterator[list[Single]]:
        missing = self.copies - len(waiting)
        full = [*waiting, *[waiting[-1]] * missing]  # a constant shape, and so equal kernels
        tables = []
        for place, rest in enumerate(self._rest):
            stacked = {
                name: np.concatenate([one[place][number] for one in full])
                for number, name in enumerate(self._given)
            }
            tables.append(np.split(self._later.run_named({**rest, **stacked})[0], self.copies))
        for number in range(len(waiting)):
            yield [one[number] for one in tables]


def _tile(array: NDArray[Any], size: int, copies: int) -> NDArray[Any]:
    """Return a tensor with ``size`` rows repeated ``copies`` times; other tensors unchanged."""
    return np.concatenate([array] * copies) if array.ndim and len(array) == size else array


def _divide_nodes(
    graph: Any, nodes: Sequence[Any], layer: str, types: Mapping[str, int]
) -> tuple[list[Any], list[Any]] | None:
    """Return the nodes that read a layer's weights, and those behind; None if not divisible.

    Nodes that depend on nothing but the weights and initializers belong to the first.
    """
    stored = {tensor.name for tensor in graph.initializer} | {""}
    turned, first, later = {layer}, [], []
    behind: set[str] = set()
    for node in nodes:
        if any(one.HasField("g") or len(one.graphs) for one in node.attribute):
            return None
        if turned.intersection(node.input):
            if behind.intersection(node.input):
                return None  # the weights are read again behind their layer
            first.append(node)
            if set(node.input) <= stored | turned:
                turned.update(node.output)
        else:
            later.append(node)
        if node in later or not set(node.output) <= turned:
            behind.update(node.output)
    given = {name for node in first for name in node.output} - turned
    return (first, later) if later and given <= types.keys() else None


def _tensor_types(onnx: Any, model: Any) -> dict[str, int]:
    """Return the element type of each tensor of a model by name, where it can be inferred."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    known = [*inferred.input, *inferred.value_info, *inferred.output]
    types = {one.name: one.type.tensor_type.elem_type for one in known}
    return {name: kind for name, kind in types.items() if kind}


def _fold_constants(onnx: Any, model: Any, layer: str, types: Mapping[str, int]) -> None:
    """Replace the nodes that depend on initializers alone, except a layer's, by initializers.

    Otherwise transposed weights would be inputs of the part that runs again, which onnxruntime
    cannot pack for its products once and for all.
    """
    graph = model.graph
    if any(one.HasField("g") or len(one.graphs) for node in graph.node for one in node.attribute):
        return
    given = {one.name for one in graph.input}
    known = {one.name for one in graph.initializer} - {layer} - given | {""}
    folded, rest = [], []
    for node in graph.node:
        is_constant = node.op_type == "Constant" or (node.input and set(node.input) <= known)
        if is_constant and node.op_type not in _RANDOM and types.keys() >= set(node.output):
            folded.append(node)
            known.update(node.output)
        else:
            rest.append(node)
    used = {name for node in rest for name in node.input} | {one.name for one in graph.output}
    names = [name for node in folded for name in node.output if name in used]
    if not names or not rest:
        return
    part = _Part(names=(), outputs=tuple(names))
    values = Session(_model_of(onnx, model, folded, part, types, "")).run_named({})
    del graph.node[:]
    graph.node.extend(rest)
    arrays = zip(names, values, strict=True)
    graph.initializer.extend(onnx.numpy_helper.from_array(one, name) for name, one in arrays)


_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})
"""Operators whose output is not a function of their inputs."""


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


def _gathered_rows(
    onnx: Any, graph: Any, layer: str, kept: Sequence[Feeds]
) -> frozenset[int] | None:
    """Return the rows of an initializer that are read, if it is only an embedding; else None."""
    count = next(one.dims[0] for one in graph.initializer if one.name == layer)
    stored = {one.name: one for one in graph.initializer}
    found: set[int] = set()
    for node in graph.node:
        if layer not in node.input:
            continue
        axis = next((one.i for one in node.attribute if one.name == "axis"), 0)
        if node.op_type != "Gather" or node.input[0] != layer or axis:
            return None
        name = node.input[1]
        if name in stored:
            codes = [onnx.numpy_helper.to_array(stored[name])]
        elif all(name in one for one in kept):
            codes = [one[name] for one in kept]
        else:
            return None
        found.update(*((np.asarray(one) % count).ravel().tolist() for one in codes))
    return frozenset(found)


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
        found.append({name: made[name] if name in made else feeds[name] for name in names})
    return found


def _model_of(
    onnx: Any, model: Any, nodes: Sequence[Any], part: _Part, types: Mapping[str, int], layer: str
) -> bytes:
    """Return a model of some nodes, whose inputs are those of a part and a layer's weights."""
    helper, graph = onnx.helper, model.graph
    used = {name for node in nodes for name in node.input}
    is_whole = len(nodes) == len(graph.node)
    given = {one.name: one for one in graph.input}
    last = {one.name: one for one in graph.output}
    make = helper.make_tensor_value_info
    inputs = [given.get(name) or make(name, types[name], None) for name in part.names]
    outputs = [last.get(name) or make(name, types[name], None) for name in part.outputs]
    weights = [one for one in graph.initializer if one.name == layer]
    inputs += [make(one.name, one.data_type, list(one.dims)) for one in weights]
    rest = [
        one for one in graph.initializer if one.name != layer and (is_whole or one.name in used)
    ]
    found = helper.make_model(
        helper.make_graph(list(nodes), "resumed", inputs, outputs, rest),
        opset_imports=list(model.opset_import),
        ir_version=model.ir_version,
        functions=list(model.functions),
    )
    return bytes(found.SerializeToString())
