"""A column of values as Arrow has them: typed where one type says all, else as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dse.core.values import Value
from dse.errors import StorageError

_WHOLE = 1 << 63
_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


def column(
    name: str, values: Sequence[Value | None], about: Mapping[str, str]
) -> tuple[pa.Field, pa.Array]:
    """The values under a name, with what is known ``about`` them in the field's metadata."""
    held = [value for value in values if value is not None]
    kinds = {type(value) for value in held} or {float}
    exact = len(kinds) == 1 and all(_holds(value) for value in held)
    if exact:
        array = pa.array(values, type=_TYPES[kinds.pop()])
    else:
        texts = [None if value is None else json.dumps(value) for value in values]
        array = pa.array(texts, type=pa.string())
    told = {**about, "as": "plain" if exact else "json"}
    kept = {key: word.encode("utf-8", "replace") for key, word in told.items()}
    return pa.field(name, array.type, metadata=kept), array


def reader(field: pa.Field) -> Callable[[pa.Array], list[Value | None]]:
    """What gives the values of a column of this field, exactly as they were."""
    if fact(field, "as") == "json":
        return lambda array: [_read(cell, field.name) for cell in array.to_pylist()]
    if field.type not in _TYPES.values():
        raise StorageError(f"the column {field.name!r} has the type {field.type}")
    return lambda array: array.to_pylist()


def fact(field: pa.Field, key: str) -> str:
    """What the field's metadata say; empty where they say nothing."""
    return (field.metadata or {}).get(key.encode(), b"").decode("utf-8", "replace")


def _holds(value: Value) -> bool:
    """True if Arrow's type for the value holds it as it is."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, bool | float) or -_WHOLE <= value < _WHOLE


def _read(cell: Any, name: str) -> Value | None:
    try:
        value = None if cell is None else json.loads(cell)
    except (RecursionError, TypeError, ValueError) as error:
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}") from error
    if value is not None and not isinstance(value, bool | int | float | str):
        raise StorageError(f"the column {name!r} holds {str(cell)[:60]!r}")
    return value
