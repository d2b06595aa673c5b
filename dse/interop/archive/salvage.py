"""Recovery of the intact records of a damaged study, renumbered as a complete study.

Intact trials keep their order and get consecutive numbers; their indices in the order of finishing,
and all references to numbers or indices, are changed to match. The number of finished trials that
an ask (a request to an optimizer) knew is reduced by the lost ones. Asks that knew a lost trial can
no longer be verified; ``spec["salvaged"]`` records the number of the first trial of such an ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dse.core.trial import Asked, Attempt, Damage, Driver, Event, Report
from dse.core.user_events import renumber_trials
from dse.core.values import Ints
from dse.interop.archive.stream import PlacedTrial, Stream
from dse.protocols import StudyReader, SupportsReading
from dse.storage.trust import remove_import_mark, without_trust

MARK = "salvaged"
"""Key of the spec, and kind of the event, that mark a salvaged study."""

UNKNOWN = "unknown"
"""Host name given to a driver whose row is lost."""


@dataclass(frozen=True, kw_only=True)
class Salvage:
    """Intact records of a damaged study; ``damages`` lists the records that are lost.

    ``numbers`` (n,) are the original numbers of the intact trials. ``places`` (m,) are the original
    indices, in the order of finishing, of the intact trials that finished. Both arrays ascend.
    ``attempts`` counts the intact attempts of each trial. The first ``intact`` trials were
    suggested from intact data only.
    """

    study: str
    spec: Mapping[str, Any]
    reader: StudyReader
    damages: Sequence[Damage]
    numbers: Ints
    places: Ints
    attempts: Mapping[int, int]
    intact: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of intact trials."""
        return len(self.numbers)

    def placed_trials(self) -> Iterator[PlacedTrial]:
        """Iterate over the intact trials, renumbered, with new indices in finishing order."""
        stream = Stream(study=self.study, spec=self.spec, reader=self.reader)
        for number, (trial, place) in enumerate(stream.placed_trials()):
            moved = replace(
                trial,
                number=number,
                told=self._renumber_finished(trial.told),
                attempts=self.attempts.get(trial.number, 0),
                worker=trial.worker if self._is_driver(trial.worker) else None,
            )
            yield moved, None if place is None else self._renumber_finished(place)

    def others(self, part: str) -> Iterator[Any]:
        """Iterate over the intact records of one kind, such as ``asks``, with new trial numbers."""
        mend: Mapping[str, Callable[[], Iterator[Any]]] = {
            "drivers": self._drivers,
            "asks": self._asks,
            "attempts": self._attempts,
            "reports": self._reports,
            "events": self._events,
        }
        return mend[part]()

    def _renumber_finished(self, count: int) -> int:
        """Return how many of the ``count`` trials that finished first are intact."""
        return int(np.searchsorted(self.places, count))

    def _number(self, number: int) -> int:
        """Return the new number of a trial: the number of intact trials before it."""
        return int(np.searchsorted(self.numbers, number))

    def _is_sound(self, number: int) -> bool:
        place = self._number(number)
        return place < len(self.numbers) and int(self.numbers[place]) == number

    def _is_driver(self, worker: int | None) -> bool:
        return worker is not None and worker < self.reader.counts["drivers"]

    def _drivers(self) -> Iterator[Driver]:
        """Iterate over all drivers (processes that run the study); lost ones get placeholders."""
        place = 0
        for one in self.reader.others("drivers"):
            yield from (Driver(id=n, host=UNKNOWN, left=True) for n in range(place, one.id))
            yield replace(one, left=True)
            place = one.id + 1
        count = self.reader.counts["drivers"]
        yield from (Driver(id=n, host=UNKNOWN, left=True) for n in range(place, count))

    def _asks(self) -> Iterator[Asked]:
        """Iterate over the asks (optimizer requests) of intact trials, and those without trials."""
        for one in self.reader.others("asks"):
            first = self._number(one.first)
            count = self._number(one.first + one.count) - first
            if count or not one.count:
                worker = one.worker if self._is_driver(one.worker) else None
                finished = self._renumber_finished(one.told)
                yield replace(one, first=first, count=count, told=finished, worker=worker)

    def _attempts(self) -> Iterator[Attempt]:
        seen = Counter[int]()
        for one in self.reader.others("attempts"):
            if self._is_sound(one.number):
                yield replace(one, number=self._number(one.number), attempt=seen[one.number])
                seen[one.number] += 1

    def _reports(self) -> Iterator[Report]:
        for one in self.reader.others("reports"):
            if self._is_sound(one.number):
                attempt = min(one.attempt, self.attempts.get(one.number, 0))
                worker = one.worker if self._is_driver(one.worker) else None
                number = self._number(one.number)
                yield replace(one, number=number, attempt=attempt, worker=worker)

    def _events(self) -> Iterator[Event]:
        numbers = {int(old): new for new, old in enumerate(self.numbers)}
        events = list(without_trust(self.reader.others("events")))
        for one in renumber_trials(events, numbers):
            yield replace(one, told=self._renumber_finished(one.told))
        if self.damages:
            yield Event(kind=MARK, text=salvage_words(self), told=len(self.places))


def salvage_words(found: Salvage) -> str:
    """Return a sentence on the number of lost trials and the reason of the loss."""
    written = found.reader.counts["trials"]
    parts = "; ".join(map(damage_text, found.damages))
    return f"{written - found.count} of {written} trials were left out of a damaged study ({parts})"


def damage_text(damage: Damage) -> str:
    """Return a group of damaged records as one line of text: ``trials 4, 7-9: missing``."""
    rows = ranges_text(damage.rows)
    return f"{damage.part}{' ' if rows else ''}{rows}: {damage.reason}"


def ranges(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive numbers among ascending numbers, as (first, last)."""
    if not len(rows):
        return []
    numbers = np.unique(np.asarray(rows, dtype=np.int64))
    cuts = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[[0, *(cuts + 1)]], numbers[[*cuts, len(numbers) - 1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def ranges_text(rows: Sequence[int]) -> str:
    """Return numbers as compact text: ``4, 7-9``."""
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges(rows))


@contextmanager
def open_salvage(
    storage: SupportsReading, study: str, spec: Mapping[str, Any] | None = None
) -> Iterator[Salvage]:
    """Open a damaged study for export, after a first pass that finds the intact records.

    Args:
        storage: storage of the study.
        study: name of the study.
        spec: specification to use if the stored one is damaged.

    Raises:
        StudyError: there is no such study.
    """
    notes = DamageNotes()
    with storage.reader(study, notes.take) as reader:
        numbers, places = _sound_trials(reader)
        counted = Counter(one.number for one in reader.others("attempts"))
        tried = np.fromiter(counted, dtype=np.int64, count=len(counted))
        sound = tried[np.isin(tried, numbers)].tolist()
        intact = _count_intact(reader, numbers, places)
        for part in ("reports", "drivers", "events"):
            for _ in reader.others(part):
                pass
        notes.close()
        if any(one.part == "events" for one in notes.damages):
            intact = 0  # the lost events may include the optimizer chosen by ``auto``
        found = Salvage(
            study=study,
            spec=remove_import_mark(reader.spec if spec is None else spec),
            reader=reader,
            damages=notes.damages,
            numbers=numbers,
            places=places,
            attempts={number: counted[number] for number in sound},
            intact=intact,
        )
        yield replace(found, spec=_mark_spec(found)) if found.damages else found


class DamageNotes:
    """Collector of the damages found while a study is read, by kind of record and reason."""

    def __init__(self) -> None:
        self._rows = dict[tuple[str, str, str], list[int]]()
        self._open = True

    def take(self, damage: Damage) -> None:
        """Record a damaged row; after :meth:`close`, ignore it."""
        if self._open:
            key = damage.study, damage.part, damage.reason
            self._rows.setdefault(key, []).extend(damage.rows)

    def close(self) -> None:
        """Ignore damages found from now on, so that a second pass does not record them twice."""
        self._open = False

    @property
    def damages(self) -> list[Damage]:
        """Damages recorded so far, sorted."""
        found = [
            Damage(study=study, part=part, rows=rows, reason=reason)
            for (study, part, reason), rows in self._rows.items()
        ]
        return sorted(found, key=lambda one: (one.part, *one.rows[:1]))


def _sound_trials(reader: StudyReader) -> tuple[Ints, Ints]:
    """Return intact trials' numbers, and their indices in finishing order, both ascending."""
    numbers, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for page in reader.trials():
        numbers.append(page.number)
        places.append(page.ended[page.ended >= 0])
    return np.concatenate(numbers), np.sort(np.concatenate(places))


def _count_intact(reader: StudyReader, numbers: Ints, places: Ints) -> int:
    """Return how many of the first trials were suggested from intact data only.

    These are the trials before the first whose ask knew a lost trial.
    """
    trials, finished = _until_gap(numbers), _until_gap(places)
    first = min(trials, reader.counts["trials"])
    for one in reader.others("asks"):
        if one.first + one.count > trials or one.told > finished:
            first = min(first, one.first)
    return first


def _until_gap(ascending: Ints) -> int:
    """Return the smallest of the integers 0, 1, 2 ... that is missing from ascending integers."""
    same = ascending == np.arange(len(ascending))
    return len(ascending) if same.all() else int(np.argmin(same))


def _mark_spec(found: Salvage) -> dict[str, Any]:
    """Return the specification with an entry that describes the lost records.

    The number of ``carried`` trials is reduced by the lost ones.
    """
    spec = dict(found.spec)
    if "carried" in spec:
        carried = int(spec["carried"].get("trials", 0))
        left = int(np.searchsorted(found.numbers, carried))
        spec["carried"] = {**spec["carried"], "trials": left}
    before = spec.get(MARK, {}).get("intact", found.intact)
    spec[MARK] = {
        "trials": found.count,
        "of": found.reader.counts["trials"],
        "intact": min(found.intact, before),
        "left_out": [
            {"part": one.part, "rows": ranges_text(one.rows), "reason": one.reason}
            for one in found.damages
        ],
    }
    return spec
