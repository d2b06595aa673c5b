"""Networks of a layer table as ONNX files, with one initializer for each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import NetworkStage, stages
from dse_evaluators.workloads.onnx_runtime import library

_OPSET = 21
_IR_VERSION = 10  # the first with opset 21


@runtime_checkable
class HasOnnxModel(Protocol):
    """Workload that can give its model as an ONNX file."""

    def onnx_model(self) -> bytes:
        """Return the model as an ONNX file, with an initializer for each parameter, by its name."""
        ...


def export_network(layers: Sequence[Layer], parameters: Mapping[str, Single]) -> bytes:
    """Return a network as the bytes of an ONNX file of opset 21.

    Its input is ``images``, (n, channels, height, width), its output ``logits``, (n, classes).

    Args:
        layers: the layer table.
        parameters: weight and bias of each layer: ``fc1.weight``, ``fc1.bias``.

    Raises:
        PluginError: onnx is not installed.
    """
    onnx = library("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    first, padding = layers[0], 2 * stages(layers)[0].padding  # a layer table counts the padding
    images = ["n", first.channels, first.height - padding, first.width - padding]
    graph = helper.make_graph(
        [node for stage in _named(stages(layers)) for node in _nodes(helper, *stage)],
        "network",
        [helper.make_tensor_value_info("images", kind, images)],
        [helper.make_tensor_value_info("logits", kind, ["n", layers[-1].filters])],
        [
            onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            for name, array in parameters.items()
        ],
    )
    opset = helper.make_opsetid("", _OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _named(network: Sequence[NetworkStage]) -> Iterator[tuple[NetworkStage, str, str]]:
    """Yield each stage with the names of its input and of its output."""
    inputs = ["images", *(f"{stage.name}.output" for stage in network[:-1])]
    outputs = [*inputs[1:], "logits"]
    yield from zip(network, inputs, outputs, strict=True)


def _nodes(
    helper: Any,  # onnx has no types
    stage: NetworkStage,
    signal: str,
    last: str,
) -> list[Any]:
    """Return the ONNX nodes of a stage: convolution or product, ReLU, and pooling."""
    learnt = [f"{stage.name}.weight", f"{stage.name}.bias"]
    if stage.dense:
        flat = f"{stage.name}.flat"
        found = [
            helper.make_node("Flatten", [signal], [flat]),
            helper.make_node("Gemm", [flat, *learnt], [f"{stage.name}.affine"], transB=1),
        ]
    else:
        sides = {"pads": [stage.padding] * 4, "strides": [stage.stride] * 2}
        outputs = [f"{stage.name}.affine"]
        found = [helper.make_node("Conv", [signal, *learnt], outputs, **sides)]
    if stage.rectified:
        found.append(helper.make_node("Relu", found[-1].output, [f"{stage.name}.rectified"]))
    if stage.pool > 1:
        window = {"kernel_shape": [stage.pool] * 2, "strides": [stage.pool] * 2}
        outputs = [f"{stage.name}.pooled"]
        found.append(helper.make_node("MaxPool", found[-1].output, outputs, **window))
    found[-1].output[0] = last
    return found
