"""Columnar storage of trials: a million of them fit in a few hundred megabytes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Column
from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import State, Trial
from dse.core.values import Floats, Ints, Mask
from dse.errors import StorageError
from dse.system.former_fields import accept_former_field

Objects = NDArray[np.object_]

STATES = tuple(State)
_CODES = {state: code for code, state in enumerate(STATES)}
TIMES = ("asked_at", "begun_at", "finished_at")
"""Names of the columns that hold times."""

_FINISHED = np.array([state.finished for state in STATES])
_PAGE = 4096


@accept_former_field("faults", "failures")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Trials(Sequence[Trial]):
    """Sequence of trials stored as columns; a :class:`Trial` is built when it is accessed."""

    number: Ints
    told: Ints
    state: NDArray[np.int8]  # indices into STATES
    cost_s: Floats
    measured: Ints
    attempts: Ints
    worker: Ints  # id of the driver; -1: none
    ended: Ints  # index in the order of finishing; -1: not finished
    asked_at: Floats  # wall clock, seconds since 1970 (UTC); NaN: not recorded
    begun_at: Floats
    finished_at: Floats
    designs: Objects  # each a Design, or its JSON
    failures: Objects  # each a Failure or None
    metrics: Mapping[str, Floats]  # NaN where a trial has none
    spread: Mapping[str, Floats]

    @staticmethod
    def of(trials: Sequence[Trial], order: Sequence[int] = ()) -> Trials:
        """Convert trials to columns; a :class:`Trials` is returned unchanged.

        Args:
            trials: the trials.
            order: the indices of the finished trials in the order in which they finished.
        """
        if isinstance(trials, Trials):
            return trials
        ended = np.full(len(trials), -1)
        ended[list(order)] = np.arange(len(order))
        return Trials(
            number=_ints([t.number for t in trials]),
            told=_ints([t.told for t in trials]),
            state=np.array([_CODES[t.state] for t in trials], dtype=np.int8),
            cost_s=np.array([t.cost_s for t in trials], dtype=np.float64),
            measured=_ints([t.measured for t in trials]),
            attempts=_ints([t.attempts for t in trials]),
            worker=_ints([-1 if t.worker is None else t.worker for t in trials]),
            ended=ended,
            **{name: np.array([getattr(t, name) for t in trials], float) for name in TIMES},
            designs=objects([t.design for t in trials]),
            failures=objects([t.failure for t in trials]),
            metrics=numbers([t.metrics for t in trials]),
            spread=numbers([t.spread for t in trials]),
        )

    @staticmethod
    def joined(parts: Sequence[Trials]) -> Trials:
        """Concatenate several columnar sequences of trials to one."""
        parts = [part for part in parts if len(part)] or [Trials.of([])]
        joined: dict[str, Any] = {}
        for one in fields(Trials):
            held = [getattr(part, one.name) for part in parts]
            named = isinstance(held[0], Mapping)
            joined[one.name] = _joined_maps(held, parts) if named else np.concatenate(held)
        return Trials(**joined)

    @property
    def finished(self) -> Trials:
        """Finished trials, in the order in which they finished."""
        rows = np.flatnonzero(self.ended >= 0)
        return self.take(rows[np.argsort(self.ended[rows])])

    @property
    def over(self) -> Mask:
        """Mask of the n trials that is true for finished ones, (n,)."""
        return np.asarray(_FINISHED[self.state], dtype=bool)

    @property
    def counts(self) -> dict[State, int]:
        """Number of trials by state, for the states that occur."""
        found = np.bincount(self.state, minlength=len(STATES)).tolist()
        return {state: count for state, count in zip(STATES, found, strict=True) if count}

    def are(self, state: State) -> Mask:
        """Return the mask of the trials that are in a state, such as DONE, (n,)."""
        return np.asarray(self.state == _CODES[state])

    def column(self, name: str) -> Column:
        """Return a metric or, if there is none of that name, a parameter as a column, (n,)."""
        values = self.metrics.get(name)
        if values is None:
            return Column.of([design.get(name) for design in self.iter_designs()])
        gone = np.isnan(values)
        if not gone.any():
            return Column(values)
        filler = values[np.argmin(gone)] if not gone.all() else 0.0
        return Column(np.where(gone, filler, values), gone)

    def take(self, rows: Any) -> Trials:
        """Return the selected trials, given by indices, a mask or a slice."""
        taken: dict[str, Any] = {}
        for one in fields(self):
            held = getattr(self, one.name)
            named = isinstance(held, Mapping)
            taken[one.name] = {n: v[rows] for n, v in held.items()} if named else held[rows]
        return Trials(**taken)

    def parts(self, size: int = _PAGE) -> Iterator[Trials]:
        """Yield the trials in order, in chunks of at most ``size`` trials."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def iter_designs(self) -> Iterator[Design]:
        """Yield the trials' designs in order."""
        for start in range(0, len(self), _PAGE):
            yield from _designs(self.designs[start : start + _PAGE].tolist())

    def __len__(self) -> int:
        return len(self.number)

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> Trials: ...
    def __getitem__(self, place: int | slice) -> Trial | Trials:
        if isinstance(place, slice):
            return self.take(place)
        row = range(len(self))[place]
        plain = tuple(getattr(self, name)[row].item() for name in _PLAIN)
        held = ({n: float(v[row]) for n, v in m.items()} for m in (self.metrics, self.spread))
        (design,) = _designs([self.designs[row]])
        return _trial(plain, design, self.failures[row], *map(_drop_nans, held))

    def __iter__(self) -> Iterator[Trial]:
        for start in range(0, len(self), _PAGE):
            page = self.take(slice(start, start + _PAGE))
            plain = zip(*(getattr(page, name).tolist() for name in _PLAIN), strict=True)
            maps = (_rows(columns, len(page)) for columns in (page.metrics, page.spread))
            yield from map(_trial, plain, page.iter_designs(), page.failures, *maps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # equal to a list, which has none either

    def __repr__(self) -> str:
        more = f", and {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""
        return f"Trials([{', '.join(map(repr, self[:_SHOWN]))}{more}])"


_SHOWN = 3  # trials that repr shows

_PLAIN = ("number", "told", "state", "cost_s", "measured", "attempts", "worker", *TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStream:
    """All trials of a study at one time, sorted by number, as a stream of :class:`Trials`."""

    size: int
    """Total number of trials."""
    spread: frozenset[str]
    """Names of the metrics for which any trial has a standard error."""
    parts: Iterator[Trials]

    @staticmethod
    def of(trials: Sequence[Trial]) -> TrialStream:
        """Return a stream of trials that are in memory."""
        held = Trials.of(trials)
        spread = {name for name, values in held.spread.items() if not np.isnan(values).all()}
        return TrialStream(size=len(held), spread=frozenset(spread), parts=held.parts())


def column_of(trials: Sequence[Trial], name: str) -> Column:
    """Return a metric as a column with one value per trial, (n,).

    A trial without a metric of this name gets the value of its parameter of this name.
    """
    if isinstance(trials, Trials):
        return trials.column(name)
    return Column.of([t.metrics[name] if name in t.metrics else t.design.get(name) for t in trials])


def are(trials: Sequence[Trial], state: State) -> Mask:
    """Return the mask of the trials that are in a state, such as DONE, (n,)."""
    if isinstance(trials, Trials):
        return trials.are(state)
    return np.array([trial.state is state for trial in trials], dtype=bool)


def numbers(rows: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """Convert n mappings of numbers to one column per name, (n,); NaN where a name is missing."""
    names = sorted({name for row in rows for name in row})
    return {
        name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names
    }


def objects(values: Sequence[Any]) -> Objects:
    """Return a one-dimensional array with the values as Python objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _designs(held: Sequence[Design | str]) -> list[Design]:
    texts = [one for one in held if isinstance(one, str)]
    try:
        read = json.loads(f"[{','.join(texts)}]")  # parsing them at once takes half the time
        found = dict(zip(texts, map(Design, read), strict=True))
        return [found[one] if isinstance(one, str) else one for one in held]
    except (ValueError, TypeError, AttributeError) as error:
        raise StorageError(f"a stored design cannot be read: {error}") from error


def _joined_maps(
    held: Sequence[Mapping[str, Floats]], parts: Sequence[Trials]
) -> dict[str, Floats]:
    names = sorted({name for columns in held for name in columns})
    return {
        name: np.concatenate(
            [
                columns[name] if name in columns else np.full(len(part), np.nan)
                for columns, part in zip(held, parts, strict=True)
            ]
        )
        for name in names
    }


def _drop_nans(row: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if value == value}  # noqa: PLR0124 - NaN


def _rows(columns: Mapping[str, Floats], size: int) -> Iterator[dict[str, float]]:
    """Return an iterator of mappings, one per trial, from column name to value, without NaN."""
    if not columns:
        return ({} for _ in range(size))
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    named = (dict(zip(columns, row, strict=True)) for row in rows)
    whole = not any(np.isnan(values).any() for values in columns.values())
    return named if whole else map(_drop_nans, named)


def _trial(
    plain: tuple[Any, ...],  # in the order of _PLAIN
    design: Design,
    failure: Failure | None,
    metrics: Mapping[str, float],
    spread: Mapping[str, float],
) -> Trial:
    number, known, state, cost_s, measured, attempts, worker, *times = plain
    asked_at, begun_at, finished_at = (None if math.isnan(one) else one for one in times)
    return Trial(
        number=number,
        design=design,
        told=known,
        state=STATES[state],
        metrics=metrics,
        spread=spread,
        failure=failure,
        cost_s=cost_s,
        measured=measured,
        attempts=attempts,
        worker=None if worker < 0 else worker,
        asked_at=asked_at,
        begun_at=begun_at,
        finished_at=finished_at,
    )
