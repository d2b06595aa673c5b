"""Safetensors file in the layout of the library compressed-tensors, which vLLM loads."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.interop.deployment.deployed_files import (
    DeployedFiles,
    check_element,
    modules,
    pack_nibbles,
    plain_bytes,
    refuse_tensor,
    signed_numbers,
)
from dse.protocols import DeployedModel, DeployedTensor, Quantization

TARGET = "safetensors"
_ELEMENTS = ("int4", "int8", "fp8_e4m3")
_TYPES = {"float16": "F16", "bfloat16": "BF16", "float32": "F32"}
_ALIGNMENT = 8

Entry = tuple[str, tuple[int, ...], bytes]
"""Type, shape and bytes of a tensor of the file."""


def write_compressed_tensors(model: DeployedModel) -> DeployedFiles:
    """Return a model as a safetensors file, with the ``quantization_config`` of its config.json.

    Integers are ``pack-quantized``: each 32-bit word holds consecutive quantized values of a row.
    Floats of 8 bits may have a scale for each block of the matrix (strategy ``block``). Scales are
    stored in float32, because the library decodes weights in the type of the scales: the decoded
    weights are then those that the study measured, bit for bit.

    Raises:
        StudyError: a tensor is not a matrix, or its format is none of int4, int8 and fp8_e4m3.

    Source:
        compressed-tensors 0.20, ``compressors/pack_quantized`` and ``naive_quantized``.
    """
    stored = StoredModules()
    entries: dict[str, Entry] = {}
    for name, _, tensor in modules(model):
        entries |= stored.store(name, tensor)
    return DeployedFiles(
        content=safetensors_file(entries, {"format": "pt"}),
        tensor_bytes=stored.sizes,
        settings=stored.settings,
    )


class StoredModules:
    """Collector of the modules stored so far: their quantization schemes and their bytes.

    Attributes:
        sizes: bytes of the tensors so far, by purpose.
    """

    def __init__(self) -> None:
        self.sizes = {"codes": 0, "scales": 0, "unquantized": 0}
        self._schemes: dict[str, list[str]] = {}
        self._ignored: list[str] = []

    def store(self, name: str, tensor: DeployedTensor) -> dict[str, Entry]:
        """Return the entries of the file that hold a tensor.

        Args:
            name: the tensor's name.
            tensor: the tensor.

        Raises:
            StudyError: it is not a matrix, or its format is none of int4, int8 and fp8_e4m3.
        """
        module = name.removesuffix(".weight")
        stored = check_element(name, tensor, TARGET, _ELEMENTS)
        if isinstance(stored, str):
            data = plain_bytes(tensor.values, stored)
            self.sizes["unquantized"] += len(data)
            self._ignored += [module] if tensor.values.ndim > 1 else []
            return {name: (_TYPES[stored], tensor.values.shape, data)}
        _check_matrix(name, tensor, stored)
        codes, sides = _quantized_entries(module, stored)
        self.sizes["codes"] += sum(len(data) for *_, data in codes.values())
        self.sizes["scales"] += sum(len(data) for *_, data in sides.values())
        self._schemes.setdefault(json.dumps(_scheme(stored)), []).append(module)
        return codes | sides

    @property
    def settings(self) -> dict[str, object]:
        """Keys to set in the ``config.json`` next to the file; none if nothing is quantized."""
        if not self._schemes:
            return {}
        return {"quantization_config": quantization_config(self._schemes, self._ignored)}


def safetensors_file(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """Return tensors as the bytes of a safetensors file.

    Args:
        entries: the tensors, by name.
        metadata: texts by name, which the file holds under ``__metadata__``.

    Source:
        Hugging Face, Safetensors: file format, 2023.
    """
    return b"".join((safetensors_header(entries, metadata), *(one[-1] for one in entries.values())))


def safetensors_header(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """Return the bytes of a safetensors file before those of its tensors.

    Args:
        entries: the tensors, by name, in their order in the file.
        metadata: texts by name, which the file holds under ``__metadata__``.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    start = 0
    for name, (kind, shape, data) in entries.items():
        header[name] = {
            "dtype": kind,
            "shape": list(shape),
            "data_offsets": [start, start + len(data)],
        }
        start += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def quantization_config(
    schemes: Mapping[str, list[str]], ignored: list[str]
) -> Mapping[str, object]:
    """Return the ``quantization_config`` of a model's config.json.

    Args:
        schemes: names of modules by quantization scheme; a key is the scheme in JSON.
        ignored: the modules whose weights are not quantized.
    """
    groups = {
        f"group_{place}": {"targets": names, **json.loads(text)}
        for place, (text, names) in enumerate(schemes.items())
    }
    formats = {group["format"] for group in groups.values()}
    return {
        "quant_method": "compressed-tensors",
        "format": formats.pop() if len(formats) == 1 else "mixed-precision",
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": ignored,
    }


def _check_matrix(name: str, tensor: DeployedTensor, stored: Quantization) -> None:
    """Check that the layout can hold a quantized tensor.

    Raises:
        StudyError: it is not a matrix, the last group of a row is shorter than the others, or the
            layout cannot express which weights share a scale.
    """
    if tensor.values.ndim != 2:
        nearest = "matrices, or this tensor as 'keep'"
        raise refuse_tensor(name, tensor, TARGET, nearest)
    columns = stored.numbers.shape[1]
    is_float = stored.element.startswith("fp8")
    if stored.group_rows > 1:
        if is_float:
            return
        raise refuse_tensor(name, tensor, TARGET, f"{stored.element}:group={stored.group}")
    if stored.group is not None and columns % stored.group:
        nearest = f"{stored.element}:channel, or a group that divides {columns}"
        raise refuse_tensor(name, tensor, TARGET, nearest)
    if stored.group is not None and is_float:
        raise refuse_tensor(name, tensor, TARGET, f"{stored.element}:channel")


def _quantized_entries(
    module: str, stored: Quantization
) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Return a module's tensors of quantized values, and those of scales and shapes."""
    if stored.element.startswith("fp8"):
        return _float_entries(module, stored)
    rows, columns = stored.numbers.shape
    numbers, zeros = signed_numbers(stored)
    scales = np.broadcast_to(stored.scales, (rows, stored.scales.shape[1]))
    packed = pack_numbers(numbers, stored.bits)
    sides: dict[str, Entry] = {
        f"{module}.weight_scale": ("F32", scales.shape, plain_bytes(scales, "float32")),
        f"{module}.weight_shape": ("I64", (2,), np.array([rows, columns], "<i8").tobytes()),
    }
    if zeros is not None:
        points = pack_numbers(np.broadcast_to(zeros, scales.shape).T, stored.bits).T
        sides[f"{module}.weight_zero_point"] = ("I32", points.shape, points.tobytes())
    return {f"{module}.weight_packed": ("I32", packed.shape, packed.tobytes())}, sides


def _float_entries(module: str, stored: Quantization) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """Return the tensors of a module whose weights are floats of 8 bits."""
    scales = stored.scales
    shape = (1,) if stored.granularity == "tensor" else scales.shape
    codes = e4m3_codes(stored.numbers)
    return (
        {f"{module}.weight": ("F8_E4M3", codes.shape, codes.tobytes())},
        {f"{module}.weight_scale": ("F32", shape, plain_bytes(scales, "float32"))},
    )


def pack_numbers(numbers: NDArray[np.int8], bits: int) -> NDArray[np.int32]:
    """Return each row's integers of 4 or 8 bits in 32-bit words, first number in the low bits.

    Args:
        numbers: signed integers, (rows, columns); 2^(bits-1) is added to each, so that it is not
            negative.
        bits: 4 or 8.
    """
    codes = (numbers.astype(np.int32) + (1 << (bits - 1))).astype(np.uint8)
    in_word = 32 // bits
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % in_word)))
    octets = pack_nibbles(padded) if bits == 4 else padded
    return np.ascontiguousarray(octets).view("<i4")


def e4m3_codes(numbers: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the e4m3 bit patterns (OCP OFP8) of numbers that e4m3 represents exactly."""
    magnitude = np.abs(numbers)
    fraction, exponent = np.frexp(magnitude)
    field = np.maximum(exponent + 6, 0)  # 0 for subnormals
    normal = (field << 3) + (fraction * 16 - 8).astype(np.int64)
    small = (magnitude * 512).astype(np.int64)
    codes = np.where(magnitude < 2.0**-6, small, normal)
    return (codes | (np.signbit(numbers).astype(np.int64) << 7)).astype(np.uint8)


def _scheme(stored: Quantization) -> dict[str, Any]:
    """Return the library's quantization scheme for a tensor, without the names of modules."""
    is_float = stored.element.startswith("fp8")
    is_block = stored.group_rows > 1
    granularity = "group" if stored.group is not None else stored.granularity
    granularity = "block" if is_block else granularity
    if granularity == "tensor" and not is_float:
        granularity = "channel"  # the packed layout has a scale for each row at least
    return {
        "weights": {
            "num_bits": stored.bits,
            "type": "float" if is_float else "int",
            "symmetric": stored.zero_points is None,
            "strategy": granularity,
            "group_size": None if is_block else stored.group,
            "block_structure": [stored.group_rows, stored.group] if is_block else None,
            "dynamic": False,
        },
        "input_activations": None,
        "output_activations": None,
        "format": "float-quantized" if is_float else "pack-quantized",
    }
