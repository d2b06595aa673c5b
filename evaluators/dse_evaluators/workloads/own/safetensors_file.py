"""Reader of safetensors files, which hold named arrays and no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.own_function import missing_file

_LONGEST_HEADER = 100_000_000  # bytes; the limit of the format
_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
_SHARDS = "model.safetensors.index.json"
_ALONE = "model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """Place of an array in a safetensors file: type, shape and range of bytes in the file."""

    file: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int

    def read(self) -> Single:
        """Return the array, widened to single precision."""
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
        raise SpecError(f"{_SHARDS} has no weight_map")
    names = sorted({str(name) for name in shards.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise SpecError(f"{_SHARDS} names {name!r}, which is no shard of this folder")
        if not (folder / name).is_file():
            raise missing_file(folder / name)
    return tuple(folder / name for name in names)


def read_header(path: Path) -> dict[str, StoredTensor]:
    """Return the arrays of a safetensors file by name, without their values.

    Raises:
        SpecError: the file is truncated or is not in this format, or an array is not of floats.
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
        return {name: _tensor(path, name, row, 8 + length) for name, row in rows.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(path, "its header is not valid") from error


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
        raise SpecError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise SpecError(f"{path.name} is not a mapping")
    return found


def _tensor(path: Path, name: str, row: Mapping[str, Any], base: int) -> StoredTensor:
    start, end = (int(one) + base for one in row["data_offsets"])
    shape = tuple(int(one) for one in row["shape"])
    if row["dtype"] not in _BYTES:
        raise SpecError(
            f"{path.name}: {name} is of type {row['dtype']}",
            hint="save the weights in F32, F16 or BF16",
        )
    size = _BYTES[row["dtype"]] * math.prod(shape)
    if min(shape, default=0) < 0 or not base <= start <= end <= path.stat().st_size:
        raise _damaged(path, f"{name} lies outside the file")
    if end - start != size:
        raise _damaged(path, f"{name} has {end - start} bytes, but its shape takes {size}")
    return StoredTensor(file=path, kind=row["dtype"], shape=shape, start=start, end=end)


def _damaged(path: Path, why: str) -> SpecError:
    return SpecError(
        f"{path.name} is not a complete safetensors file: {why}", hint="copy or save it again"
    )
