"""Trust in stored studies: an imported study runs only with the user's consent.

The record of an imported study has a mark, and the user's consent is stored as an event. Both stay
in the storage: files of ``dse studies export`` contain neither, even if a file's author adds them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from dse.core.trial import Event
from dse.errors import StudyError
from dse.protocols import Storage

TRUST = "trust"
"""Kind of the event that records the user's consent."""

_ORIGIN, _IMPORTED = "origin", "imported"


def has_trust(storage: Storage, study: str) -> bool:
    """Return whether a study may be run: it was not imported, or the user has trusted it."""
    spec = storage.spec(study) or {}
    return is_trusted_record(spec, ()) or is_trusted_record(spec, storage.events(study))


def is_trusted_record(spec: Mapping[str, Any], events: Iterable[Event]) -> bool:
    """Return whether a study with this specification and these events may be run."""
    return spec.get(_ORIGIN) != _IMPORTED or any(event.kind == TRUST for event in events)


def trust(storage: Storage, study: str) -> None:
    """Record the user's consent to run an imported study, unless the study is trusted already."""
    if not has_trust(storage, study):
        text = "trusted by the user: its evaluators may start programs"
        storage.record(study, [Event(kind=TRUST, text=text)])


def check_trust(storage: Storage, study: str) -> None:
    """Check that a study may be run.

    Raises:
        StudyError: the study was imported, and the user has not trusted it.
    """
    if not has_trust(storage, study):
        name = shlex.quote(study)
        raise StudyError(
            f"the study {study!r} was imported and is not trusted: to run it starts what it names",
            hint=f"dse studies trust {name} shows that and asks, or dse resume {name} --trust",
        )


def add_import_mark(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's specification, marked as imported."""
    return {**spec, _ORIGIN: _IMPORTED}


def remove_import_mark(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's specification without the mark that it was imported."""
    return {key: value for key, value in spec.items() if key != _ORIGIN}


def without_trust(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return a study's events without the user's consent, which is valid in one storage only."""
    return tuple(event for event in events if event.kind != TRUST)
