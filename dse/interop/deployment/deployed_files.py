"""Content of the files of a deployed model, and refusals of what a file format cannot hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dse.errors import StudyError
from dse.protocols import DeployedModel, DeployedTensor, Quantization
from dse.protocols.deployment import PlainType, Single

PURPOSES = ("codes", "scales", "unquantized", "headers")
"""What the bytes of a file are for; zero points count as scales."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedFiles:
    """Content of the files of a deployed model.

    Args:
        content: bytes of the file itself.
        tensor_bytes: bytes of the file's tensors by purpose; the remaining bytes are headers.
        settings: keys to set in the ``config.json`` in the same folder; empty for none.
        notes: how the file differs from what the study measured.
    """

    content: bytes
    tensor_bytes: Mapping[str, int]
    settings: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def bytes_by_purpose(self) -> dict[str, int]:
        """Bytes of the file by purpose, for each of :data:`PURPOSES`."""
        known = {name: self.tensor_bytes.get(name, 0) for name in PURPOSES[:-1]}
        return {**known, "headers": len(self.content) - sum(known.values())}


def refuse_tensor(name: str, tensor: DeployedTensor, target: str, nearest: str) -> StudyError:
    """Return the error that a file format cannot hold a tensor.

    Args:
        name: the tensor's name.
        tensor: the tensor.
        target: the target's name.
        nearest: the nearest format that the target can hold.
    """
    stored = tensor.stored
    words = f"{stored.element}:{stored.granularity}" if isinstance(stored, Quantization) else ""
    recipe = tensor.recipe or words or "its values"
    shape = " x ".join(map(str, tensor.values.shape))
    return StudyError(
        f"--to {target} cannot hold {name!r} ({shape}) as {recipe!r}",
        hint=f"the nearest that it can hold: {nearest}; --to torch holds the decoded weights of "
        "all formats",
    )


def check_element(
    name: str, tensor: DeployedTensor, target: str, elements: Collection[str]
) -> Quantization | PlainType:
    """Return how a tensor is stored, after checking that the target supports its number format.

    Raises:
        StudyError: the target lacks the format; the hint names the nearest one that it has.
    """
    stored = tensor.stored
    if isinstance(stored, str):
        return stored
    if stored is None or stored.element not in elements:
        raise refuse_tensor(name, tensor, target, _nearest_element(stored, elements))
    return stored


def _nearest_element(stored: Quantization | None, elements: Collection[str]) -> str:
    """Return the narrowest type with at least as many bits, and the tensor's granularity."""
    if stored is None:
        return " or ".join(elements)
    integers = sorted(int(one[3:]) for one in elements if one.startswith("int"))
    if stored.element.startswith("fp8"):
        floats = [one for one in elements if one.startswith("fp8")]
        return floats[0] if floats else f"int8:{stored.granularity}"
    wide = next((bits for bits in integers if bits >= stored.bits), integers[-1])
    return f"int{wide}:{stored.granularity}"


def signed_numbers(stored: Quantization) -> tuple[NDArray[np.int8], NDArray[np.int8] | None]:
    """Return quantized values and zero points as signed integers that mean the same weights.

    Args:
        stored: quantization to integers of at most 8 bits, (rows, columns).

    Returns:
        The quantized values, and the zero points in the shape of the scales (``None`` if there are
        none).
    """
    if stored.zero_points is None:
        return stored.numbers.astype(np.int8), None
    half = np.float32(2 ** (stored.bits - 1))
    return (stored.numbers - half).astype(np.int8), (stored.zero_points - half).astype(np.int8)


def plain_bytes(values: Single, kind: PlainType) -> bytes:
    """Return values as little-endian bytes of a type that holds them without rounding."""
    if kind == "float16":
        return values.astype("<f2").tobytes()
    if kind == "bfloat16":
        words = np.ascontiguousarray(values, dtype="<f4").view("<u4")
        return (words >> 16).astype("<u2").tobytes()
    return values.astype("<f4").tobytes()


def modules(model: DeployedModel) -> Iterator[tuple[str, str, DeployedTensor]]:
    """Yield each tensor's name, the name of its module, and the tensor.

    The module of ``fc1.weight`` is ``fc1``; a tensor of another name is a module by itself.
    """
    for name, tensor in model.tensors.items():
        yield name, name.removesuffix(".weight"), tensor


def pack_nibbles(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack two consecutive 4-bit values of a row in each byte, the first in the low bits.

    Args:
        codes: values below 16, (rows, columns), with an even number of columns.
    """
    low, high = codes[:, 0::2].astype(np.int32), codes[:, 1::2].astype(np.int32)
    return (low | (high << 4)).astype(np.uint8)
