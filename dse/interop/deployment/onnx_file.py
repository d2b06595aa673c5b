"""ONNX file whose weights are integers or 8-bit floats with DequantizeLinear operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from dse.errors import PluginError, StudyError
from dse.interop.deployment.compressed_tensors import e4m3_codes
from dse.interop.deployment.deployed_files import (
    DeployedFiles,
    check_element,
    pack_nibbles,
    plain_bytes,
    refuse_tensor,
    signed_numbers,
)
from dse.protocols import DeployedModel, DeployedTensor, Quantization
from dse.protocols.deployment import PlainType, Single

TARGET = "onnx"
_ELEMENTS = {"int4": "INT4", "int8": "INT8", "fp8_e4m3": "FLOAT8E4M3FN"}
_PLAIN = {"float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
_OPSET = 21
"""Least opset: the first with integers of 4 bits and with scales for groups."""
_IR_VERSION = 10
_ROUNDED_INPUTS = (
    "onnxruntime rounds the inputs of MatMul with such weights to 8 bits, unless its session "
    "option session.qdq_matmulnbits_accuracy_level is 1"
)
"""Its default is 4, products in int8 (onnxruntime 1.31, ``session_options_config_keys.h``)."""


def write_onnx(model: DeployedModel) -> DeployedFiles:
    """Return a model as an ONNX file in which each quantized weight is dequantized.

    A weight is the output of ``DequantizeLinear`` with its scales in float32: the weight that the
    study measured, bit for bit. Runtimes may fuse the operator with the matrix product that
    follows, and then compute in another precision; a note in the result names the option that
    prevents this in onnxruntime. A model without tensors is a complete file, which is written as
    it is.

    Raises:
        PluginError: onnx is not installed.
        StudyError: the evaluator gives no ONNX graph, a tensor's format is none of int4, int8 and
            fp8_e4m3, or blocks of a matrix have scales.

    Source:
        ONNX 1.23, operator ``DequantizeLinear``, version 21.
    """
    onnx = _library()
    if model.onnx is None:
        raise StudyError(
            "the evaluator gives no ONNX graph of its model, only the weights",
            hint="--to safetensors, gguf or torch needs no graph",
        )
    if not model.tensors:
        return DeployedFiles(content=model.onnx(), tensor_bytes=_stored_bytes(model))
    graph = _Graph(onnx, _raise_opset(onnx, model.onnx()))
    for name, tensor in model.tensors.items():
        stored = check_element(name, tensor, TARGET, _ELEMENTS)
        if not isinstance(stored, str) and stored.group_rows > 1:
            raise refuse_tensor(name, tensor, TARGET, f"{stored.element}:group={stored.group}")
        if isinstance(stored, str):
            graph.set_plain(name, tensor.values, stored)
        else:
            graph.set_quantized(name, tensor, stored)
    notes = (_ROUNDED_INPUTS,) if graph.has_product else ()
    return DeployedFiles(content=graph.to_bytes(), tensor_bytes=graph.sizes, notes=notes)


def _stored_bytes(model: DeployedModel) -> dict[str, int]:
    """Return the bytes of a complete file by purpose, without headers, as its evaluator states."""
    return {name: int(size) for name, size in model.size_bytes.items() if name != "headers"}


class _Graph:
    """ONNX model whose initializers are replaced by quantized ones."""

    def __init__(self, onnx: Any, model: Any) -> None:  # onnx has no types
        self._onnx = onnx
        self._model = model
        self._old = {tensor.name: tensor for tensor in model.graph.initializer}
        self._nodes: list[Any] = []
        self.sizes = {"codes": 0, "scales": 0, "unquantized": 0}

    @property
    def has_product(self) -> bool:
        """Whether a ``MatMul`` reads a quantized weight, directly or transposed."""
        quantized = {node.output[0] for node in self._nodes if node.op_type == "DequantizeLinear"}
        nodes = self._model.graph.node
        turned = {
            node.output[0]
            for node in nodes
            if node.op_type == "Transpose" and node.input[0] in quantized
        }
        products = (node.input for node in nodes if node.op_type == "MatMul")
        return any({*inputs} & (quantized | turned) for inputs in products)

    def set_plain(self, name: str, values: Single, kind: PlainType) -> None:
        """Store a tensor in a float type, and cast it to float32 if it is narrower."""
        self._remove(name, values)
        data = plain_bytes(values, kind)
        self.sizes["unquantized"] += len(data)
        if kind == "float32":
            self._add(name, "FLOAT", values.shape, data)
            return
        self._add(f"{name}.{kind}", _PLAIN[kind], values.shape, data)
        self._node("Cast", [f"{name}.{kind}"], name, to=self._onnx.TensorProto.FLOAT)

    def set_quantized(self, name: str, tensor: DeployedTensor, stored: Quantization) -> None:
        """Store a tensor's quantized values and scales, with the operator that decodes them."""
        shape = tensor.values.shape
        self._remove(name, tensor.values)
        table = stored.numbers.shape if stored.group is not None else shape
        inputs = [f"{name}.codes", f"{name}.scale"]
        codes, zeros = _code_bytes(stored)
        self._add(inputs[0], _ELEMENTS[stored.element], table, codes)
        scales = () if stored.granularity == "tensor" else stored.scales.shape
        sides = scales if stored.group is not None else scales[:1]
        self._add(inputs[1], "FLOAT", sides, plain_bytes(stored.scales, "float32"))
        self.sizes["codes"] += len(codes)
        self.sizes["scales"] += stored.scales.size * 4 + len(zeros)
        if zeros:
            inputs.append(f"{name}.zero_point")
            self._add(inputs[2], _ELEMENTS[stored.element], sides, zeros)
        options = {"axis": 0} if stored.group is None else {"axis": 1, "block_size": stored.group}
        if table == shape:
            self._node("DequantizeLinear", inputs, name, **options)
            return
        self._node("DequantizeLinear", inputs, f"{name}.table", **options)
        sides_of = np.array(shape, dtype="<i8")
        self._add(f"{name}.shape", "INT64", sides_of.shape, sides_of.tobytes())
        self.sizes["scales"] += sides_of.nbytes
        self._node("Reshape", [f"{name}.table", f"{name}.shape"], name)

    def to_bytes(self) -> bytes:
        """Return the changed model as the bytes of an ONNX file, after checking it."""
        nodes = [*self._nodes, *self._model.graph.node]
        del self._model.graph.node[:]
        self._model.graph.node.extend(nodes)
        self._onnx.checker.check_model(self._model)
        return bytes(self._model.SerializeToString())

    def _remove(self, name: str, values: Single) -> None:
        """Remove an initializer of the graph.

        Raises:
            StudyError: there is none of this name and shape.
        """
        old = self._old.get(name)
        if old is None or tuple(old.dims) != values.shape:
            found = "none" if old is None else f"one of shape {tuple(old.dims)}"
            raise StudyError(
                f"the ONNX graph has no initializer {name!r} of shape {values.shape} ({found})",
                hint="the evaluator's graph must have an initializer for each of its tensors",
            )
        self._model.graph.initializer.remove(old)

    def _add(self, name: str, kind: str, shape: tuple[int, ...], data: bytes) -> None:
        tensor = self._onnx.helper.make_tensor(
            name, getattr(self._onnx.TensorProto, kind), shape, data, raw=True
        )
        self._model.graph.initializer.append(tensor)

    def _node(self, operator: str, inputs: list[str], output: str, **options: int) -> None:
        node = self._onnx.helper.make_node(
            operator, inputs, [output], name=f"{output}.{operator}", **options
        )
        self._nodes.append(node)


def _code_bytes(stored: Quantization) -> tuple[bytes, bytes]:
    """Return the bytes of the quantized values and of the zero points (empty without any)."""
    if stored.element.startswith("fp8"):
        return e4m3_codes(stored.numbers).tobytes(), b""
    numbers, zeros = signed_numbers(stored)
    parts = [numbers.ravel()] if zeros is None else [numbers.ravel(), zeros.ravel()]
    if stored.bits == 4:
        padded = (np.pad(part.view(np.uint8) & 15, (0, part.size % 2)) for part in parts)
        packed = [pack_nibbles(part[None]).tobytes() for part in padded]
    else:
        packed = [part.tobytes() for part in parts]
    return packed[0], packed[1] if len(packed) > 1 else b""


def _raise_opset(onnx: Any, data: bytes) -> Any:  # onnx has no types
    """Return a model, converted to opset 21 if its opset is an older one."""
    model = onnx.load_model_from_string(data)
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    if opset < _OPSET:
        from onnx import version_converter

        model = version_converter.convert_version(model, _OPSET)
    model.ir_version = max(model.ir_version, _IR_VERSION)
    return model


def _library() -> Any:  # onnx has no types
    """Import onnx.

    Raises:
        PluginError: it is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        hint = "pip install 'dse-engine[onnx]'"
        raise PluginError("--to onnx needs the package 'onnx'", hint=hint) from error
    return onnx
