"""Reader of safetensors files, which hold named arrays and no code."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.own_function import missing_file

_INVALID = (ValueError, TypeError, KeyError, AttributeError, RecursionError, ArithmeticError)
_LONGEST_HEADER = 100_000_000  # bytes; the limit of the format
_FLOATS = {"F32": 4, "F16": 2, "BF16": 2}
_BYTES = {
    **_FLOATS,
    **dict.fromkeys(("F64", "I64", "U64"), 8),
    **dict.fromkeys(("I32", "U32"), 4),
    **dict.fromkeys(("I16", "U16"), 2),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"), 1),
}
"""Bytes of an element by type; only floats of 16 and 32 bits are read."""
_SHARDS = "model.safetensors.index.json"
_ALONE = "model.safetensors"
_AGAIN = "copy the folder, or save the model with save_pretrained, again"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """Array in a safetensors file: its type, shape and range of bytes."""

    file: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int

    def check_kind(self, name: str) -> None:
        """Raise SpecError unless the array has a type that can be read.

        Args:
            name: name of the array, for the message.
        """
        if self.kind not in _FLOATS:
            raise SpecError(
                f"{self.file.name}: {name} is of type {self.kind}",
                hint="save the weights in F32, F16 or BF16",
            )

    def read(self) -> Single:
        """Read the array from its file, widened to single precision."""
        with self.file.open("rb") as stream:
            stream.seek(self.start)
            data = stream.read(self.end - self.start)
        if self.kind == "BF16":
            wide = np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16
            return wide.view(np.float32).reshape(self.shape)
        kind = "<f4" if self.kind == "F32" else "<f2"
        return np.frombuffer(data, dtype=kind).astype(np.float32).reshape(self.shape)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the safetensors files of a model's folder: one, or the shards that its index names.

    Raises:
        SpecError: there is no such file, or a shard is missing.
    """
    if not (folder / _SHARDS).is_file():
        if not (folder / _ALONE).is_file():
            raise missing_file(folder / _ALONE)
        return (folder / _ALONE,)
    index = read_json(folder / _SHARDS)
    shards = index.get("weight_map")
    if not isinstance(shards, Mapping) or not shards:
        raise SpecError(f"{_SHARDS} has no weight_map", hint=_AGAIN)
    names = sorted({str(name) for name in shards.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            problem = f"{_SHARDS} names {name!r}, which is no shard of this folder"
            raise SpecError(problem, hint="names of .safetensors files next to the index")
        if not (folder / name).is_file():
            raise missing_file(folder / name)
    return tuple(folder / name for name in names)


def read_headers(folder: Path) -> dict[str, StoredTensor]:
    """Return the arrays of a model's folder by name, without their values.

    Args:
        folder: the folder, with one safetensors file or with shards and their index.

    Raises:
        SpecError: a file is missing or damaged, or two files hold arrays of one name.
    """
    found: dict[str, StoredTensor] = {}
    for path in weight_files(folder):
        for name, tensor in read_header(path).items():
            if name in found:
                problem = f"{found[name].file.name} and {path.name} both hold {name}"
                raise SpecError(problem, hint=_AGAIN)
            found[name] = tensor
    return found


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Return the arrays of a safetensors file by name, without their values.

    Raises:
        SpecError: the file is truncated or is not in this format.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(_LONGEST_HEADER, size - 8):
            raise _damaged(path, "its header is longer than the file")
        text = stream.read(length)
    try:
        table = json.loads(text)
        rows = {name: row for name, row in table.items() if name != "__metadata__"}
        found = {name: _tensor(path, name, row, 8 + length) for name, row in rows.items()}
    except _INVALID as error:
        raise _damaged(path, "its header is not valid") from error
    _check_disjoint(path, found)
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping that a JSON file contains.

    Raises:
        SpecError: there is no such file, or it is not a mapping in JSON.
    """
    if not path.is_file():
        raise missing_file(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path.name} is not JSON: {error}", hint=_AGAIN) from error
    if not isinstance(found, dict):
        raise SpecError(f"{path.name} is not a mapping", hint=_AGAIN)
    return found


def _check_disjoint(path: Path, tensors: Mapping[str, StoredTensor]) -> None:
    """Raise SpecError if two arrays share bytes of the file."""
    ordered = sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end))
    for (one, before), (other, after) in pairwise(ordered):
        if after.start < before.end and after.start < after.end:
            raise _damaged(path, f"{one} and {other} share bytes")


def _tensor(path: Path, name: str, row: Mapping[str, Any], base: int) -> StoredTensor:
    start, end = (operator.index(one) + base for one in row["data_offsets"])
    shape = tuple(operator.index(one) for one in row["shape"])
    if row["dtype"] not in _BYTES:
        problem = f"{path.name}: {name} is of type {row['dtype']!r:.40}"
        raise SpecError(problem, hint="save the weights in F32, F16 or BF16")
    size = _BYTES[row["dtype"]] * math.prod(shape)
    if min(shape, default=0) < 0 or not base <= start <= end <= path.stat().st_size:
        raise _damaged(path, f"{name} lies outside the file")
    if end - start != size:
        raise _damaged(path, f"{name} has {end - start} bytes, but its shape takes {size}")
    return StoredTensor(file=path, kind=row["dtype"], shape=shape, start=start, end=end)


def _damaged(path: Path, why: str) -> SpecError:
    return SpecError(f"{path.name} is not a complete safetensors file: {why}", hint=_AGAIN)
