"""ONNX model that runs in stages, between which the inputs of its layers are rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.onnx_runtime import Session, library
from dse_evaluators.workloads.workload import Signals

Rounding = Callable[[Single], Single]
"""Function that rounds the inputs of a layer."""

Tensors = dict[str, NDArray[Any]]
"""Tensors of a graph by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedInput:
    """Input of a layer that is rounded before the layer runs.

    Attributes:
        key: inputs of equal tensor and equal key are rounded once.
        rounding: the function that rounds the input.
    """

    key: str
    rounding: Rounding


def rounded_input(signals: Signals, layer: str, window: int) -> RoundedInput:
    """Return how the inputs of a layer are rounded to the format of activations.

    Scales run along the inputs of a matrix, and along the channels, then the positions, of each
    example of a convolution.

    Args:
        signals: the formats.
        layer: name of the layer's weights in ``signals``.
        window: number of axes of positions of a convolution; 0 for a matrix.
    """
    key = layer if layer in signals.smoothing else f"{window} axes"
    return RoundedInput(key=key, rounding=partial(_round_input, signals, layer, window))


def _round_input(signals: Signals, layer: str, window: int, inputs: Single) -> Single:
    """Return inputs, (..., inputs) or (n, channels, positions ...), rounded."""
    if not window or signals.activations is None:
        return signals.rounded(layer, inputs)
    axes = tuple(range(inputs.ndim - window, inputs.ndim))
    return signals.activations.quantize(inputs, (*axes, inputs.ndim - window - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoundedTensor:
    """Tensor ``name`` of a changed graph: the tensor ``source``, rounded."""

    name: str
    source: str
    rounding: Rounding


@dataclass(slots=True, kw_only=True)
class _Stage:
    """Nodes that run together, after some tensors have been rounded.

    ``reads`` and ``gives`` name the tensors that the nodes take from earlier stages and leave to
    later ones; ``dropped`` names the tensors that no later stage reads.
    """

    nodes: list[Any] = field(default_factory=list)
    rounded: list[_RoundedTensor] = field(default_factory=list)
    reads: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    session: Session | None = None


class StagedGraph:
    """ONNX model whose layers take rounded inputs.

    onnxruntime runs the nodes between two roundings together, as a stage; the inputs of the layers
    of the next stage are rounded in NumPy, so that each number format can be used. Nodes on which
    the first output does not depend are left out.

    Args:
        model: the bytes of an ONNX file.
        rounded: the rounded inputs, by the name of the layer's weights, the second input of its
            node.
    """

    def __init__(self, model: bytes, rounded: Mapping[str, RoundedInput]) -> None:
        self._onnx = library("onnx")
        self._model = self._onnx.load_model_from_string(model)
        graph = self._model.graph
        self._output = graph.output[0].name
        self._stored = {tensor.name: tensor for tensor in graph.initializer}
        self._given = {one.name: one for one in graph.input}
        nodes = _needed_nodes(graph.node, self._output)
        tensors = _replace_inputs(nodes, rounded)
        self._stages = _divide_nodes(nodes, tensors)
        self._connect()

    @property
    def count(self) -> int:
        """Number of stages into which the graph is divided."""
        return len(self._stages)

    def run(self, inputs: NDArray[Any]) -> list[Single]:
        """Run the model with ``inputs`` as its first input; return its first output."""
        first = next(name for name in self._given if name not in self._stored)
        return self.run_named({first: inputs})

    def run_named(self, inputs: Mapping[str, NDArray[Any]]) -> list[Single]:
        """Run the model with inputs by name; return its first output.

        Raises:
            EvaluationError: onnxruntime cannot run a stage, or a tensor between two stages is no
                array.
        """
        values = dict(inputs)
        for stage in self._stages:
            for one in stage.rounded:
                values[one.name] = self._round(one, values)
            self._run(stage, values)
            for name in stage.dropped:
                values.pop(name, None)
        return [values[self._output]]

    def _round(self, tensor: _RoundedTensor, values: Tensors) -> Single:
        source = values.get(tensor.source)
        if source is None:  # a constant
            source = self._onnx.numpy_helper.to_array(self._stored[tensor.source])
        return tensor.rounding(source) if source.size else source

    def _run(self, stage: _Stage, values: Tensors) -> None:
        """Run the nodes of a stage, and add what later stages read to the values."""
        if not stage.nodes:
            return
        feeds = {name: values[name] for name in stage.reads}
        if stage.session is None:
            stage.session = Session(self._stage_model(stage, feeds))
        for name, made in zip(stage.gives, stage.session.run_named(feeds), strict=True):
            if not isinstance(made, np.ndarray):
                raise EvaluationError(
                    f"{name!r}, read behind a rounded layer, is a list of arrays",
                    hint="leave out activations",
                )
            values[name] = made

    def _connect(self) -> None:
        """Find the tensors that each stage reads from earlier ones and gives to later ones."""
        later: set[str] = {self._output}
        for stage in reversed(self._stages):
            made = dict.fromkeys(name for node in stage.nodes for name in node.output)
            read = dict.fromkeys(name for node in stage.nodes for name in _names_read(node))
            stage.gives = tuple(name for name in made if name in later)
            stage.reads = tuple(
                name for name in read if name not in made and self._is_computed(name)
            )
            before = {one.source for one in stage.rounded if self._is_computed(one.source)}
            stage.dropped = tuple((before | set(stage.reads)) - later)
            later |= before | set(stage.reads)

    def _is_computed(self, name: str) -> bool:
        """Return whether a tensor is an input of the model or computed, so not stored."""
        return bool(name) and name not in self._stored

    def _stage_model(self, stage: _Stage, feeds: Tensors) -> bytes:
        """Return the model of a stage; the types of its inputs are those of the given arrays."""
        helper = self._onnx.helper
        inputs = [
            self._given.get(name) or _declare(helper, name, one) for name, one in feeds.items()
        ]
        used = {name for node in stage.nodes for name in _names_read(node)}
        made = helper.make_model(
            helper.make_graph(
                stage.nodes,
                "stage",
                inputs,
                [self._onnx.ValueInfoProto(name=name) for name in stage.gives],
                [tensor for name, tensor in self._stored.items() if name in used],
            ),
            opset_imports=list(self._model.opset_import),
            ir_version=self._model.ir_version,
            functions=list(self._model.functions),
        )
        return bytes(made.SerializeToString())


def _declare(helper: Any, name: str, array: NDArray[Any]) -> Any:
    """Return the declaration of an input of any shape with an array's type."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)


def _needed_nodes(nodes: Sequence[Any], output: str) -> list[Any]:
    """Return the nodes on which an output depends, in their order."""
    needed, found = {output}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            found.append(node)
            needed.update(_names_read(node))
    return found[::-1]


def _names_read(node: Any) -> Iterator[str]:
    """Yield the tensors that a node reads, those of its subgraphs included."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
        for graph in graphs:
            inside = {one.name for one in (*graph.input, *graph.initializer)}
            inside.update(name for one in graph.node for name in one.output)
            for one in graph.node:
                yield from (name for name in _names_read(one) if name not in inside)
            yield from (one.name for one in graph.output if one.name not in inside)


def _replace_inputs(
    nodes: Sequence[Any], rounded: Mapping[str, RoundedInput]
) -> dict[str, _RoundedTensor]:
    """Let the layers read rounded tensors in place of their inputs; return these by name."""
    found: dict[str, _RoundedTensor] = {}
    for node in nodes:
        change = rounded.get(node.input[1]) if len(node.input) > 1 else None
        if change is not None:
            source = node.input[0]
            name = f"{source}/rounded/{change.key}"
            found[name] = _RoundedTensor(name=name, source=source, rounding=change.rounding)
            node.input[0] = name
    return found


def _divide_nodes(nodes: Sequence[Any], tensors: Mapping[str, _RoundedTensor]) -> list[_Stage]:
    """Return the stages: each node is in the first one in which all that it reads is known."""
    place: dict[str, int] = {}
    stages: dict[int, _Stage] = {}
    for node in nodes:
        for name in _names_read(node):
            if name in tensors and name not in place:
                place[name] = place.get(tensors[name].source, 0) + 1
                stages.setdefault(place[name], _Stage()).rounded.append(tensors[name])
        number = max((place.get(name, 0) for name in _names_read(node)), default=0)
        stages.setdefault(number, _Stage()).nodes.append(node)
        place.update(dict.fromkeys(node.output, number))
    return [stages[number] for number in sorted(stages)]
