"""Arrow columns of parameter values: typed if all values have one type, otherwise JSON texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dse.core.values import Value
from dse.errors import StorageError

_WHOLE = 1 << 63
_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_NUMPY = {pa.bool_(): np.bool_, pa.int64(): np.int64, pa.float64(): np.float64}


class ColumnKind:
    """Arrow type of a column, inferred from all of its values before any of them is written."""

    def __init__(self) -> None:
        self._types = set[type]()
        self._exact = True

    def take(self, value: Value) -> None:
        """Include a value in the inference of the type."""
        self._types.add(type(value))
        self._exact = self._exact and len(self._types) == 1 and _holds(value)

    def field(self, name: str, about: Mapping[str, str]) -> pa.Field:
        """Return the column's Arrow field, with the texts in ``about`` as its metadata."""
        told = {**about, "as": "plain" if self._exact else "json"}
        kept = {key: word.encode("utf-8", "replace") for key, word in told.items()}
        return pa.field(name, self._type, metadata=kept)

    def array(self, values: Sequence[Value | None]) -> pa.Array:
        """Return some values of the column as an Arrow array."""
        if self._exact:
            return _array(values, self._type)
        texts = [None if value is None else json.dumps(value) for value in values]
        return _array(texts, self._type)

    @property
    def _type(self) -> pa.DataType:
        if not self._exact:
            return pa.string()
        (kind,) = self._types or {float}
        return _TYPES[kind]


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Build an array from its buffers: ``pa.array`` would import pandas, which takes 50 MB."""
    held = np.array([value is not None for value in values], dtype=bool)
    buffers = [pa.py_buffer(np.packbits(held, bitorder="little"))]
    if kind == pa.string():
        words = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
        buffers += [pa.py_buffer(ends), pa.py_buffer(b"".join(words))]
    else:
        plain: NDArray[Any] = np.array(
            [0 if value is None else value for value in values], dtype=_NUMPY[kind]
        )
        bits = np.packbits(plain, bitorder="little") if kind == pa.bool_() else plain
        buffers.append(pa.py_buffer(bits))
    return pa.Array.from_buffers(kind, len(values), buffers, int((~held).sum()))


def reader(field: pa.Field) -> Callable[[pa.Array], list[Value | None]]:
    """Return the function that decodes Arrow arrays of this column to parameter values."""
    if fact(field, "as") == "json":
        return lambda array: [_parse_cell(cell, field.name) for cell in array.to_pylist()]
    if field.type not in _TYPES.values():
        raise StorageError(f"the column {field.name!r} has the type {field.type}")
    return lambda array: array.to_pylist()


def fact(field: pa.Field, key: str) -> str:
    """Return the text under a key of the field's metadata; empty if it is missing."""
    return (field.metadata or {}).get(key.encode(), b"").decode("utf-8", "replace")


def _holds(value: Value) -> bool:
    """Return whether the Arrow type of the value represents it exactly."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, bool | float) or -_WHOLE <= value < _WHOLE


def _parse_cell(cell: Any, name: str) -> Value | None:
    try:
        value = None if cell is None else json.loads(cell)
    except (RecursionError, TypeError, ValueError) as error:
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}") from error
    if value is not None and not isinstance(value, bool | int | float | str):
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}")
    return value
