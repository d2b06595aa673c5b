"""Values as JSON and back: exact, never NaN, and plain enough for any other tool to read."""

from __future__ import annotations

import json
import shlex
import zlib
from collections.abc import Mapping
from typing import Any

from dse.core.metric import Fault
from dse.errors import StorageError

_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_IN_ORDER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)

DAMAGED = "the disk or another program changed it; take a copy from before"
"""The hint where a checksum is wrong."""

_DOCTOR = "dse doctor --storage URL lists all damage"


def build_damage_error(study: str, what: str) -> StorageError:
    """Return the error for a study with a part that is not as it was written.

    Args:
        study: its name.
        what: which part, and what is wrong with it: ``trial 17 is damaged``.
    """
    hint = f"{DAMAGED}, or keep what is sound: {salvage_command(study)}; {_DOCTOR}"
    return StorageError(f"study {study!r}: {what}", hint=hint)


def salvage_command(study: str) -> str:
    """Return the command that keeps what is sound of a study."""
    return f"dse studies export {shlex.quote(study)} --salvage -o FILE.jsonl"


def canonical(value: object) -> str:
    """The one text of a value: sorted keys, no spaces, ASCII.

    Raises:
        StorageError: JSON has no word for the value.
    """
    return _text(value, _SORTED)


def in_order(value: object) -> str:
    """The value as JSON with its keys as they come: where the order means something.

    Raises:
        StorageError: JSON has no word for the value.
    """
    return _text(value, _IN_ORDER)


def parse_json(text: str) -> Any:
    """Parse a text of :func:`canonical` or :func:`in_order`.

    Raises:
        StorageError: it is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise StorageError(f"the storage holds {text[:60]!r}, which is no JSON") from error


def checksum(*values: object) -> int:
    """Compute a checksum that reveals whether any of the values was damaged on the disk."""
    return zlib.crc32(" ".join(map(str, values)).encode("utf-8", "surrogatepass"))


def numbers_text(numbers: Mapping[str, float]) -> str:
    """Numbers by name as JSON."""
    return canonical({name: float(value) for name, value in numbers.items()})


def fault_text(fault: Fault | None) -> str | None:
    """A fault as JSON, or nothing."""
    return None if fault is None else canonical({"kind": fault.kind, "reason": fault.reason})


def fault_of(text: str | None) -> Fault | None:
    """The fault of a text of :func:`fault_text`."""
    return None if text is None else Fault(**json.loads(text))


def _text(value: object, encoder: json.JSONEncoder) -> str:
    try:
        return encoder.encode(value)
    except (ValueError, TypeError) as error:
        raise StorageError(f"this cannot be stored as JSON: {error}") from error
