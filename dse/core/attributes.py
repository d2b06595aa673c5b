"""User attributes of a study and of its trials: named JSON values, recorded as events.

An attribute is recorded as an event: every storage keeps it, an exported file holds it, and older
databases need no change. If several events set the same name, the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dse.core.judged_trials import JUDGED
from dse.core.recorded_gap import latest_gap_only
from dse.core.trial import Event
from dse.errors import SpecError

KIND = "attribute"
"""Kind of the events that record attributes."""

MOST_LETTERS = 65_536
"""Most characters of an attribute's value, written as JSON."""

_MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class Attributes:
    """User-defined attributes of a study and of its trials: JSON values by name.

    Attributes of trials are stored by trial number.
    """

    study: Mapping[str, Any] = field(default_factory=dict)
    trials: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @staticmethod
    def of(events: Iterable[Event]) -> Attributes:
        """Return the attributes that events record; unreadable events are skipped."""
        study: dict[str, Any] = {}
        trials: dict[int, dict[str, Any]] = {}
        for event in events:
            number, name, value = _read(event)
            if not name:
                continue
            own = study if number is None else trials.setdefault(number, {})
            if value is None:
                own.pop(name, None)
            else:
                own[name] = value
        return Attributes(study, {number: own for number, own in trials.items() if own})


def attribute_event(name: str, value: Any, *, trial: int | None = None, finished: int = 0) -> Event:
    """Return the event that records an attribute.

    Args:
        name: the attribute's name, of 1 to 200 characters.
        value: a JSON value; ``None`` removes the attribute.
        trial: the number of the trial that it belongs to; ``None`` for the study's own.
        finished: the number of finished trials at this time.

    Raises:
        SpecError: the name is empty or too long, or the value is not JSON or too long.
    """
    _check_name(name)
    try:
        text = json.dumps({"trial": trial, "name": name, "value": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(
            f"the value of the attribute {name!r} cannot be written as JSON: {error}",
            hint="numbers that are finite, texts, truth values, lists and mappings of them",
        ) from error
    if len(text) > MOST_LETTERS:
        raise SpecError(
            f"the attribute {name!r} has {len(text):,} characters as JSON",
            hint=f"{MOST_LETTERS:,} are allowed: keep the value in a file, and its path here",
        )
    return Event(kind=KIND, text=text, told=finished)


def _check_name(name: object) -> None:
    """Check that an attribute may have this name.

    Raises:
        SpecError: the name is not a string of 1 to 200 characters.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME:
        raise SpecError(
            f"an attribute cannot be called {str(name)[:60]!r}",
            hint=f"a name is a text of 1 to {_MOST_NAME} characters",
        )


def renumbered(event: Event, number: Mapping[int, int]) -> Event | None:
    """Return an attribute's event with its trial's new number, for a copy of the study.

    The result is ``None`` if the trial is not in the copy. Events that record no attribute, or an
    attribute of the study itself, are returned unchanged.

    Args:
        event: an event of the record.
        number: new numbers of the trials by their old numbers.
    """
    old, name, value = _read(event)
    if not name or old is None:
        return event
    if old not in number:
        return None
    return replace(event, text=attribute_event(name, value, trial=number[old]).text)


def others(events: Iterable[Event]) -> list[Event]:
    """Return the study's events without attributes and results on the test split.

    The remaining events are those that the user sees. Of the recorded hypervolume gaps, only the
    last is kept. The order is unchanged.
    """
    return latest_gap_only(event for event in events if event.kind not in (KIND, JUDGED))


def _read(event: Event) -> tuple[int | None, str, Any]:
    """Return the trial, name and value of an attribute's event; an empty name for other events."""
    if event.kind != KIND:
        return None, "", None
    try:
        parsed = json.loads(event.text, parse_constant=lambda _: None)
        number, name = parsed["trial"], parsed["name"]
    except (ValueError, TypeError, KeyError, RecursionError):  # a stranger's file may hold anything
        return None, "", None
    if not isinstance(name, str) or not (number is None or type(number) is int):
        return None, "", None
    return number, name, parsed.get("value")
