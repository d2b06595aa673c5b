"""Results of trials on a test split in the record of a study, as events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dse.core.trial import Event

JUDGED = "judged"
"""Kind of the events that record the metrics of a trial on the test split, as JSON.

Events of this kind that name a driver in place of metrics are claims to measure a trial.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTrial:
    """Metrics of a trial on the test split, which no optimizer receives.

    Args:
        number: number of the trial.
        metrics: all metrics of its design, by the study's names.
        spread: standard errors of metrics.
        resamples: metrics on bootstrap resamples of the test examples; the n-th resample has the
            same examples for all trials, so that differences of trials are paired.
        remeasured: names of the metrics that depend on the test split and were measured on it; the
            other metrics are copied from the trial.
        failure: why the metrics could not be measured; empty if they were measured.
    """

    number: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    resamples: Mapping[str, Sequence[float]] = field(default_factory=dict)
    remeasured: tuple[str, ...] = ()
    failure: str = ""

    def event(self, finished: int) -> Event:
        """Return the event that records these metrics after ``finished`` finished trials."""
        resamples = {
            name: [float(f"{value:.6g}") for value in values]
            for name, values in self.resamples.items()
        }
        content = {
            "trial": self.number,
            "metrics": dict(self.metrics),
            "spread": dict(self.spread),
            "resamples": resamples,
            "remeasured": list(self.remeasured),
            "fault": self.failure,
        }
        return Event(kind=JUDGED, text=json.dumps(content, allow_nan=False), told=finished)


def read_judged(events: Iterable[Event]) -> dict[int, JudgedTrial]:
    """Return the metrics on the test split by trial number; the last event of a trial counts.

    Unreadable events are skipped.

    Args:
        events: all events of the record, oldest first.
    """
    found = (_parse(event) for event in events)
    return {one.number: one for one in found if one is not None}


def claim_event(number: int, driver: int, finished: int) -> Event:
    """Return the event by which a process reserves a trial for evaluation on the test split.

    Args:
        number: number of the trial.
        driver: the driver (process that runs the study).
        finished: number of finished trials.
    """
    text = json.dumps({"trial": number, "driver": driver})
    return Event(kind=JUDGED, text=text, told=finished)


def read_claims(events: Iterable[Event]) -> dict[int, list[int]]:
    """Return, by trial number, the processes that reserved the trial for the test split.

    Each process is given by its driver number. A process reserves a trial before it measures the
    trial; the earliest reservation comes first.

    Args:
        events: all events of the record, oldest first.
    """
    found: dict[int, list[int]] = {}
    for event in events:
        try:
            content = json.loads(event.text) if event.kind == JUDGED else {}
            number, driver = content["trial"], content["driver"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # a result, or an event of an imported file
        if type(number) is int and type(driver) is int:
            found.setdefault(number, []).append(driver)
    return found


def renumber_judged(event: Event, number: Mapping[int, int]) -> Event | None:
    """Return the event of a test-split result with its trial's new number, for a copied study.

    The result is ``None`` if the trial is not copied.

    Args:
        event: an event of the kind :data:`JUDGED`.
        number: new numbers of the trials by their old numbers.
    """
    judged = _parse(event)
    if judged is None or judged.number not in number:
        return None
    return replace(judged, number=number[judged.number]).event(event.told)


def _parse(event: Event) -> JudgedTrial | None:
    """Return an event's result on the test split; ``None`` for other or unreadable events."""
    if event.kind != JUDGED:
        return None
    try:
        content = json.loads(event.text)
        number, failure = content["trial"], content["fault"]
        if type(number) is not int or not isinstance(failure, str):
            return None
        return JudgedTrial(
            number=number,
            metrics=_numbers(content["metrics"]),
            spread=_numbers(content["spread"]),
            resamples=_resamples(content["resamples"]),
            remeasured=tuple(str(name) for name in content["remeasured"]),
            failure=failure,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # an imported file may hold anything


def _resamples(content: Mapping[str, Sequence[Any]]) -> dict[str, tuple[float, ...]]:
    found = {name: tuple(float(value) for value in row) for name, row in content.items()}
    if len({len(row) for row in found.values()}) > 1 or not all(
        math.isfinite(value) for row in found.values() for value in row
    ):
        raise ValueError("the resamples differ in number, or are not finite")
    return {name: row for name, row in found.items() if len(row) > 1}


def _numbers(content: Mapping[str, Any]) -> dict[str, float]:
    found = {str(name): float(value) for name, value in content.items()}
    return {name: value for name, value in found.items() if math.isfinite(value)}
