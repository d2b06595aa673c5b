"""Exact encoding of values as standard JSON without NaN, its decoding, and row checksums."""

from __future__ import annotations

import json
import shlex
import zlib
from collections.abc import Mapping
from typing import Any

from dse.core.metric import Failure
from dse.errors import StorageError

_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_IN_ORDER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

DAMAGED = "the disk or another program changed it; take a copy from before"
"""Hint for a wrong checksum."""

_DOCTOR = "dse doctor --storage URL lists all damage"


def build_damage_error(study: str, what: str) -> StorageError:
    """Return the error for a study of which rows are damaged.

    Args:
        study: the study's name.
        what: the damaged rows and their problem: ``trial 17 is damaged``.
    """
    hint = f"{DAMAGED}, or keep what is sound: {salvage_command(study)}; {_DOCTOR}"
    return StorageError(f"study {study!r}: {what}", hint=hint)


def salvage_command(study: str) -> str:
    """Return the command that exports the undamaged rows of a study."""
    return f"dse studies export {shlex.quote(study)} --salvage -o FILE.jsonl"


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value: sorted keys, no spaces, ASCII.

    Raises:
        StorageError: the value cannot be represented in JSON.
    """
    return _text(value, _SORTED)


def in_order(value: object) -> str:
    """Return a value as JSON text in which objects keep the order of their keys.

    Raises:
        StorageError: the value cannot be represented in JSON.
    """
    return _text(value, _IN_ORDER)


def parse_json(text: str) -> Any:
    """Parse a text of :func:`canonical` or :func:`in_order`.

    Raises:
        StorageError: the text is not valid JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise StorageError(f"the storage contains invalid JSON: {text[:60]!r}") from error


def checksum(*values: object) -> int:
    """Compute a CRC-32 checksum over the text of the values, to detect damage."""
    return zlib.crc32(" ".join(map(str, values)).encode("utf-8", "surrogatepass"))


def numbers_text(numbers: Mapping[str, float]) -> str:
    """Return a mapping from names to numbers as canonical JSON text."""
    return canonical({name: float(value) for name, value in numbers.items()})


def failure_text(failure: Failure | None) -> str | None:
    """Return a failure (why a trial failed) as JSON text; ``None`` without a failure."""
    return None if failure is None else canonical({"kind": failure.kind, "reason": failure.reason})


def failure_of(text: str | None) -> Failure | None:
    """Parse the JSON text of a failure; the inverse of :func:`failure_text`."""
    return None if text is None else Failure(**json.loads(text))


def _text(value: object, encoder: json.JSONEncoder) -> str:
    try:
        return encoder.encode(value)
    except (ValueError, TypeError) as error:
        raise StorageError(f"a value cannot be stored as JSON: {error}") from error
