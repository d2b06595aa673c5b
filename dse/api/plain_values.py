"""Check for plain values: data that can be written as text, such as numbers and strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_plain(value: Any) -> bool:
    """Return whether a value is a number, string, bytes, ``None``, or a list or mapping of them."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    if isinstance(value, Mapping):
        return all(is_plain(part) for pair in value.items() for part in pair)
    return False
