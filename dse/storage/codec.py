"""Values as JSON and back: exact, never NaN, and plain enough for any other tool to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dse.core.design import Design
from dse.core.metric import Fault
from dse.core.trial import Event, Outcome, State, Trial
from dse.errors import StorageError

Row = Sequence[Any]
"""What the database gives for one row: its types are those of the columns asked for."""

TRIAL_COLUMNS = (
    "number",
    "design",
    "told",
    "state",
    "metrics",
    "spread",
    "fault",
    "cost_s",
    "measured",
)
EVENT_COLUMNS = ("kind", "text", "told")


def canonical(value: object) -> str:
    """The one text of a value: sorted keys, no spaces, ASCII.

    Raises:
        StorageError: JSON has no word for the value.
    """
    return _text(value, sort_keys=True)


def in_order(value: object) -> str:
    """The value as JSON with its keys as they come: where the order means something.

    Raises:
        StorageError: JSON has no word for the value.
    """
    return _text(value, sort_keys=False)


def read(text: str) -> Any:
    """What a text of :func:`canonical` or :func:`in_order` says.

    Raises:
        StorageError: it is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise StorageError(f"the storage holds {text[:60]!r}, which is no JSON") from error


def row_of_trial(trial: Trial) -> dict[str, Any]:
    """A trial that was just asked, as columns."""
    return {
        "number": trial.number,
        "design": canonical(dict(trial.design)),
        "key": trial.design.key,
        "told": trial.told,
        "state": trial.state.value,
        **_ending(Outcome(state=trial.state)),
    }


def row_of_outcome(outcome: Outcome) -> dict[str, Any]:
    """The columns that an outcome fills."""
    return {"state": outcome.state.value, **_ending(outcome)}


def row_of_event(event: Event) -> dict[str, Any]:
    """An event, as columns."""
    return {"kind": event.kind, "text": canonical(event.text), "told": event.told}


def trial_of(row: Row) -> Trial:
    """The trial of one row of :data:`TRIAL_COLUMNS`.

    Raises:
        StorageError: the row is damaged.
    """
    number, design, told, state, metrics, spread, fault, cost_s, measured = row
    try:
        return Trial(
            number=number,
            design=Design(json.loads(design)),
            told=told,
            state=State(state),
            metrics=json.loads(metrics),
            spread=json.loads(spread),
            fault=None if fault is None else Fault(**json.loads(fault)),
            cost_s=cost_s,
            measured=measured,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"trial {number} cannot be read: {error}") from error


def event_of(row: Row) -> Event:
    """The event of one row of :data:`EVENT_COLUMNS`.

    Raises:
        StorageError: the row is damaged.
    """
    kind, text, told = row
    return Event(kind=kind, text=read(text), told=told)


def _ending(outcome: Outcome) -> dict[str, Any]:
    fault = outcome.fault
    return {
        "metrics": canonical(_floats(outcome.metrics)),
        "spread": canonical(_floats(outcome.spread)),
        "fault": None if fault is None else canonical({"kind": fault.kind, "reason": fault.reason}),
        "cost_s": float(outcome.cost_s),
        "measured": int(outcome.measured),
    }


def _floats(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items()}


def _text(value: object, *, sort_keys: bool) -> str:
    try:
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        raise StorageError(f"this cannot be stored as JSON: {error}") from error
