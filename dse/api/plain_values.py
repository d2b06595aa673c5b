"""Values that a text can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_plain(value: Any) -> bool:
    """True for numbers, texts, nothing, and lists and mappings of them."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    if isinstance(value, Mapping):
        return all(is_plain(part) for pair in value.items() for part in pair)
    return False
