"""GGUF file with weights in the block formats Q8_0, Q4_0 and Q4_1 of ggml."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.interop.deployment.deployed_files import (
    DeployedFiles,
    check_element,
    plain_bytes,
    refuse_tensor,
)
from dse.protocols import DeployedModel, DeployedTensor, Quantization
from dse.protocols.deployment import Single

TARGET = "gguf"
BLOCK = 32
"""Numbers that share a scale in the formats Q8_0, Q4_0 and Q4_1."""

_VERSION = 3
_ALIGNMENT = 32
_TYPES: Mapping[str, int] = {
    "float32": 0,
    "float16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q8_0": 8,
    "bfloat16": 30,
}
_WORD, _TEXT = 4, 8  # types of metadata: uint32 and string

Octets = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTensor:
    """Tensor of a GGUF file: its type, its shape with the longest stride first, and its bytes."""

    kind: str
    shape: tuple[int, ...]
    data: bytes


def write_gguf(model: DeployedModel) -> DeployedFiles:
    """Return a model as a GGUF file, in which tensors have the names that the study uses.

    8-bit integers become Q8_0 and 4-bit integers Q4_0; the weights stay the same, bit for bit. The
    scale of a channel, or of a group longer than 32, is repeated for each block of 32. 4-bit
    integers with zero points become Q4_1, which stores ``-zero_point * scale`` rounded to fp16.

    Raises:
        StudyError: a tensor is not a matrix of whole blocks, its scales are not fp16, or its
            format is none of int4, int8 and int4 with zero points.

    Source:
        ggml, docs/gguf.md, version 3, 2023; ggml-common.h, ``block_q4_0``, ``block_q4_1``,
        ``block_q8_0``.
    """
    tensors: dict[str, GgufTensor] = {}
    sizes = {"codes": 0, "scales": 0, "unquantized": 0}
    furthest = 0.0
    for name, tensor in model.tensors.items():
        stored = check_element(name, tensor, TARGET, ("int4", "int8"))
        shape = tensor.values.shape
        if isinstance(stored, str):
            data = plain_bytes(tensor.values, stored)
            tensors[name] = GgufTensor(kind=stored, shape=shape, data=data)
            sizes["unquantized"] += len(data)
            continue
        _check_blocks(name, tensor, stored)
        kind, table = _block_table(stored)
        tensors[name] = GgufTensor(kind=kind, shape=shape, data=table.tobytes())
        sizes["codes"] += stored.numbers.size * stored.bits // 8
        sizes["scales"] += table.size - stored.numbers.size * stored.bits // 8
        if stored.zero_points is not None:
            furthest = max(furthest, _largest_difference(stored))
    metadata: dict[str, str | int] = {
        "general.architecture": "dse",
        "general.quantization_version": 2,
    }
    return DeployedFiles(
        content=gguf_file(tensors, metadata),
        tensor_bytes=sizes,
        notes=tuple(_notes(furthest)),
    )


def gguf_file(tensors: Mapping[str, GgufTensor], metadata: Mapping[str, str | int]) -> bytes:
    """Return tensors as the bytes of a GGUF file of version 3.

    Args:
        tensors: the tensors, by name.
        metadata: texts and whole numbers below 2^32, by key.
    """
    header = [struct.pack("<4sIQQ", b"GGUF", _VERSION, len(tensors), len(metadata))]
    for key, value in metadata.items():
        is_text = isinstance(value, str)
        header += [_text(key), struct.pack("<I", _TEXT if is_text else _WORD)]
        header.append(_text(value) if isinstance(value, str) else struct.pack("<I", value))
    start = 0
    for name, tensor in tensors.items():
        sides = tensor.shape[::-1]
        header += [_text(name), struct.pack(f"<I{len(sides)}Q", len(sides), *sides)]
        header.append(struct.pack("<IQ", _TYPES[tensor.kind], start))
        start += len(tensor.data) + -len(tensor.data) % _ALIGNMENT
    return b"".join(map(_pad, (b"".join(header), *(one.data for one in tensors.values()))))


def _check_blocks(name: str, tensor: DeployedTensor, stored: Quantization) -> None:
    """Check that the block formats can hold a quantized tensor.

    Raises:
        StudyError: they cannot; the hint is the nearest format.
    """
    element, columns = stored.element, stored.numbers.shape[1]
    if tensor.values.ndim != 2 or columns % BLOCK:
        nearest = f"{element}:group={BLOCK} of matrices whose rows are multiples of {BLOCK}"
        raise refuse_tensor(name, tensor, TARGET, nearest)
    if stored.group is not None and stored.group % BLOCK:
        raise refuse_tensor(name, tensor, TARGET, f"{element}:group={BLOCK}")
    if stored.zero_points is not None and element == "int8":
        raise refuse_tensor(name, tensor, TARGET, f"int8:group={BLOCK} without asym")
    halves = stored.scales.astype(np.float16).astype(np.float32)
    if not np.array_equal(halves, stored.scales):
        nearest = f"{element}:{stored.granularity},scale=fp16"
        raise refuse_tensor(name, tensor, TARGET, nearest)


def _block_table(stored: Quantization) -> tuple[str, Octets]:
    """Return the type and the bytes of a tensor's blocks, (blocks, bytes of a block)."""
    numbers = stored.numbers.reshape(-1, BLOCK)
    scales = _by_block(stored, stored.scales)
    sides = [scales.astype("<f2").view(np.uint8)]
    if stored.bits == 8:
        return "q8_0", np.hstack([*sides, numbers.astype(np.int8).view(np.uint8)])
    kind, codes = "q4_0", numbers + np.float32(8)
    if stored.zero_points is not None:
        kind, codes = "q4_1", numbers
        sides.append(_minima(stored).astype("<f2").view(np.uint8))
    words = codes.astype(np.uint8)
    half = BLOCK // 2  # a byte holds the values at two positions half a block apart
    return kind, np.hstack([*sides, words[:, :half] | (words[:, half:] << np.uint8(4))])


def _by_block(stored: Quantization, sides: Single) -> Single:
    """Return the scale or zero point of each block of 32, (blocks, 1)."""
    spread = stored.spread(sides)
    return np.ascontiguousarray(spread[:, ::BLOCK]).reshape(-1, 1)


def _minima(stored: Quantization) -> Single:
    """Return the weight that a quantized 0 means in each block, before rounding to fp16."""
    assert stored.zero_points is not None
    return -_by_block(stored, stored.zero_points) * _by_block(stored, stored.scales)


def _largest_difference(stored: Quantization) -> float:
    """Return the largest absolute difference between a weight in Q4_1 and as measured."""
    scales = _by_block(stored, stored.scales)
    minima = _minima(stored).astype(np.float16).astype(np.float32)
    read = stored.numbers.reshape(-1, BLOCK) * scales + minima
    return float(np.abs(read - stored.decode().reshape(-1, BLOCK)).max())


def _notes(furthest: float) -> list[str]:
    notes = [
        "the tensors have the study's names: llama.cpp runs a file with the names and the metadata "
        "of an architecture that it knows"
    ]
    if furthest:
        notes.append(
            f"Q4_1 stores -zero_point * scale in fp16: weights differ by at most {furthest:.2g}"
        )
    return notes


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
