"""Merge of the finished trials of several studies of the same space into one record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dse.core.design import Design
from dse.core.trial import Asked, Event, State, Trial
from dse.core.user_events import carry_user_events
from dse.errors import StudyError
from dse.evaluation.recorded_weights import check_weights, read_weights
from dse.interop.archive.study_record import Record

_FIXED = ("use", "options", "version", "reads")
_LEARNT = (State.DONE, State.INFEASIBLE, State.SCREENED, State.STOPPED, State.FAILED)
"""States by descending information: of trials of one design the first in this order is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Result of a merge: the merged record, and how many designs several studies share.

    ``shared`` is the number of designs that occur in more than one study; ``unlike`` is the number
    of shared designs whose metrics differ between studies.
    """

    record: Record
    shared: int
    unlike: int


def merge_records(
    records: Sequence[Record], identities: Sequence[Mapping[str, Any]], name: str, *, by: str
) -> Merged:
    """Merge the trials of all records into one study, with the first record's problem.

    The trials are in the order of the first appearance of their designs, study by study, and do not
    count against the new study's budget. For a design in several studies, the trial with the most
    informative state is kept (see :data:`_LEARNT`), among equals the first. The users' attributes,
    and their answers on which of two trials is better, are merged, too; where studies contradict
    one another, the first study counts.

    Args:
        records: the studies.
        identities: the settings with which each study was created, in the current format.
        name: name of the new study.
        by: name recorded in place of the optimizer that proposed the imported trials.

    Raises:
        StudyError: a space, an evaluator or the trained weights of a model differ.
    """
    for record, identity in zip(records[1:], identities[1:], strict=True):
        _check_alike(records[0].study, record.study, identities[0], identity)
    weights = _merge_weights(records)
    best: dict[Design, Trial] = {}
    owners: dict[Design, set[int]] = {}
    unlike: set[Design] = set()
    for place, record in enumerate(records):
        for trial in record.finished:
            design = trial.design
            first = best.setdefault(design, trial)
            owners.setdefault(design, set()).add(place)
            if _rank_state(trial) == _rank_state(first) == 0 and trial.metrics != first.metrics:
                unlike.add(design)
            if _rank_state(trial) < _rank_state(first):
                best[design] = trial
    shared = sum(len(places) > 1 for places in owners.values())
    sources = ", ".join(record.study for record in records)
    text = f"{len(best)} trials of {sources}; {shared} designs in more than one of them"
    if unlike:
        text += f", {len(unlike)} of these with unlike numbers: the first are kept"
    event = Event(kind="carried", text=text)
    asked = Asked(first=0, count=len(best), by=by)
    record = _record(records[0], name, list(best.values()), sources, weights)
    events = (event, *_merge_user_events(records, best))
    record = replace(record, events=events, asks=(asked,))
    return Merged(record=record, shared=shared, unlike=len(unlike))


def _merge_user_events(records: Sequence[Record], designs: Iterable[Design]) -> list[Event]:
    """Return the attributes and answers of all records, those of the first record last.

    The last event counts for each attribute name and each pair of trials.
    """
    place = {design: number for number, design in enumerate(designs)}
    found: list[Event] = []
    for record in reversed(records):  # so that the first record's are the last
        number = {trial.number: place[trial.design] for trial in record.finished}
        found += carry_user_events(record.events, number, len(place))
    return found


def _merge_weights(records: Sequence[Record]) -> dict[str, str]:
    """Return the hashes of trained weights by the name of the model.

    Raises:
        StudyError: two studies were measured with other weights of a model.
    """
    found: dict[str, str] = {}
    for record in records:
        own = read_weights(record.drivers, record.spec)
        check_weights(records[0].study, found, own, place=f"in the study {record.study!r}")
        found |= own
    return found


def _record(
    first: Record, name: str, found: Sequence[Trial], sources: str, weights: Mapping[str, str]
) -> Record:
    trials = tuple(
        Trial(
            number=number,
            design=trial.design,
            state=trial.state,
            metrics=trial.metrics,
            spread=trial.spread,
            failure=trial.failure,
        )
        for number, trial in enumerate(found)
    )
    return replace(
        first,
        study=name,
        spec={
            **first.spec,
            "carried": {
                "from": sources,
                "trials": len(trials),
                **({"weights": dict(weights)} if weights else {}),
            },
        },
        trials=trials,
        finished_order=tuple(range(len(trials))),
        attempts=(),
        reports=(),
        drivers=(),
    )


def _rank_state(trial: Trial) -> int:
    return _LEARNT.index(trial.state) if trial.state in _LEARNT else len(_LEARNT)


def _check_alike(one: str, other: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    for part in ("space", "order of parameters"):
        if ours.get(part) != theirs.get(part):
            raise StudyError(
                f"{one!r} and {other!r} have different spaces: {_difference(ours, theirs, part)}",
                hint="migrate one of them to the other's space first: dse studies migrate",
            )
    for name in sorted(ours["evaluators"].keys() | theirs["evaluators"].keys()):
        mine, its = ours["evaluators"].get(name), theirs["evaluators"].get(name)
        for part in _FIXED:
            before = mine and mine.get(part)
            after = its and its.get(part)
            if before != after:
                raise StudyError(
                    f"the evaluator {name!r} of {one!r} and {other!r} is not the same: {part} is "
                    f"{before!r} and {after!r}",
                    hint="their numbers would not be comparable",
                )


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any], part: str) -> str:
    """Return the first difference between two studies' settings under a key, as a string."""
    mine, its = ours.get(part), theirs.get(part)
    if isinstance(mine, Mapping) and isinstance(its, Mapping):
        key = min(k for k in mine.keys() | its.keys() if mine.get(k) != its.get(k))
        return f"{key} is {mine.get(key)!r:.120} and {its.get(key)!r:.120}"
    return f"{mine!r:.120} and {its!r:.120}"
