"""Trust in stored studies: one that was imported runs only with the user's consent.

An imported study carries a mark in its record; the user's word is an event after it. Both stay in
the storage: a file of ``dse studies export`` carries neither, whatever a stranger wrote into it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from dse.core.trial import Event
from dse.errors import StudyError
from dse.protocols import Storage

TRUST = "trust"
"""The kind of the event that keeps the user's word."""

_ORIGIN, _IMPORTED = "origin", "imported"


def has_trust(storage: Storage, study: str) -> bool:
    """Return whether a study may be run: it was begun here, or the user has trusted it."""
    spec = storage.spec(study) or {}
    return is_trusted_record(spec, ()) or is_trusted_record(spec, storage.events(study))


def is_trusted_record(spec: Mapping[str, Any], events: Iterable[Event]) -> bool:
    """Return the same for a record that was read already: its beginning and its events."""
    return spec.get(_ORIGIN) != _IMPORTED or any(event.kind == TRUST for event in events)


def trust(storage: Storage, study: str) -> None:
    """Let an imported study be run from now on; one that may be run already stays as it is."""
    if not has_trust(storage, study):
        text = "trusted by the user: its evaluators may start programs"
        storage.record(study, [Event(kind=TRUST, text=text)])


def check_trust(storage: Storage, study: str) -> None:
    """Raise StudyError unless a study may be run.

    Raises:
        StudyError: it was imported, and the user has not trusted it.
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
    """Return a study's specification without the mark of its origin."""
    return {key: value for key, value in spec.items() if key != _ORIGIN}


def without_trust(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events but for the user's word, which holds in one storage alone."""
    return tuple(event for event in events if event.kind != TRUST)
