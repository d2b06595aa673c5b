"""Codec between records of a study (trials, asks ...) and JSON; decoding validates each field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from dse.core.design import Design
from dse.core.metric import Failure, FailureKind
from dse.core.trial import Asked, Attempt, Driver, Event, Report, State, Trial
from dse.errors import StorageError

Noun = TypeVar("Noun", Asked, Attempt, Driver, Event, Report, Trial)

_LARGEST = 1 << 63
"""Exclusive upper bound of integers: databases store 64-bit ones."""


def plain(noun: Asked | Attempt | Driver | Event | Report | Trial) -> dict[str, Any]:
    """Encode a record (trial, ask, attempt, driver, event or report) as a JSON object."""
    shape, late = SHAPES[type(noun)], LATE.get(type(noun), frozenset())
    fields = {
        name: _encode_value(getattr(noun, _FIELDS.get(name, name)), reader)
        for name, reader in shape.items()
    }
    return {name: one for name, one in fields.items() if name not in late or one is not None}


def noun_of(kind: type[Noun], content: Any) -> Noun:  # untrusted JSON
    """Decode a JSON object to a record of the given class; the inverse of :func:`plain`.

    Raises:
        StorageError: a field is missing, unknown, or has an invalid value.
    """
    shape, what = SHAPES[kind], kind.__name__.lower()
    if not isinstance(content, dict):
        raise StorageError(f"this is no {what}")
    content = {**dict.fromkeys(LATE.get(kind, ())), **content}
    odd = sorted(shape.keys() ^ content.keys())
    if odd:
        says = "has no" if odd[0] in shape else "cannot have a"
        raise StorageError(f"the {what} {says} {odd[0]!r}")
    fields = {}
    for name, reader in shape.items():
        try:
            fields[_FIELDS.get(name, name)] = reader(content[name])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise StorageError(f"{name} of the {what} is {str(content[name])[:60]!r}") from error
    return kind(**fields)


def number(value: Any) -> float:
    """Return a finite number as a float; raise ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def text(value: Any) -> str:
    """Return the value if it is a string; raise ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError
    return value


def _word(value: Any) -> str:
    """Return the string if every database can store it, else raise ValueError.

    It has to be valid UTF-8 without null characters.
    """
    text(value).encode()
    if "\0" in value:
        raise ValueError
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        raise ValueError
    return value


def _count(value: Any) -> int:
    if _whole(value) < 0:
        raise ValueError
    return int(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _numbers(value: Any) -> dict[str, float]:
    return {text(name): number(one) for name, one in sorted(value.items())}


def _texts(value: Any) -> dict[str, str]:
    return {text(name): text(one) for name, one in value.items()}


def _design(value: Any) -> Design:
    for one in value.values():
        if not isinstance(one, bool | int | str):
            number(one)
    return Design(value)


def _failure(value: Any) -> Failure:
    kind, reason = value["kind"], value["reason"]
    if kind not in get_args(FailureKind) or len(value) > 2:
        raise ValueError
    return Failure(kind=kind, reason=text(reason))


def _maybe(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else reader(value)


_TIMES = {name: _maybe(number) for name in ("asked_at", "begun_at", "finished_at")}

_FIELDS = {"fault": "failure"}
"""Fields of records whose key in files is another one."""

LATE: Mapping[type, frozenset[str]] = {
    Trial: frozenset(_TIMES),
    Attempt: frozenset({"begun_at", "finished_at"}),
    Report: frozenset({"worker"}),
}
"""Fields that older files lack; they are omitted if they are ``None``."""

SHAPES: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    Trial: {
        "number": _count,
        "design": _design,
        "told": _count,
        "state": State,
        "metrics": _numbers,
        "spread": _numbers,
        "fault": _maybe(_failure),
        "cost_s": number,
        "measured": _count,
        "attempts": _count,
        "worker": _maybe(_count),
        **_TIMES,
    },
    Event: {"kind": _word, "text": text, "told": _count},
    Asked: {
        "first": _count,
        "count": _count,
        "wanted": _maybe(_count),
        "told": _count,
        "seconds": number,
        "by": _word,
        "worker": _maybe(_count),
    },
    Attempt: {
        "number": _count,
        "attempt": _count,
        "fault": _maybe(_failure),
        "cost_s": number,
        "begun_at": _maybe(number),
        "finished_at": _maybe(number),
    },
    Report: {
        "number": _count,
        "attempt": _count,
        "step": _whole,
        "metrics": _numbers,
        "worker": _maybe(_count),
    },
    Driver: {
        "id": _count,
        "host": _word,
        "pid": _count,
        "started": _word,
        "beat": _count,
        "left": _truth,
        "provenance": _texts,
    },
}
"""Schema of each kind of entry: its fields, each with the function that decodes it."""


def _encode_value(value: Any, reader: Callable[[Any], Any]) -> Any:
    if reader in (number, _numbers):  # write an integer as the float that it will be read as
        return reader(value)
    if isinstance(value, Failure):
        return {"kind": value.kind, "reason": value.reason}
    return dict(value) if isinstance(value, Mapping) else value
