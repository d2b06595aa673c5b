"""Conversion of studies and trials to the models of the API."""

from __future__ import annotations

import time
from collections.abc import Iterator

from dse.core.attributes import others
from dse.core.trial import Attempt, Driver, Report, Trial
from dse.errors import DseError
from dse.report.json.front_json import finite, front_json, trials_json
from dse.report.json.gap_json import gap_json, known_gap
from dse.report.schemas.front_schema import FrontFacts
from dse.serve import api_models
from dse.serve.error_responses import UnknownError
from dse.serve.runners import Runners
from dse.serve.snapshot import Snapshot
from dse.serve.snapshot_cache import StorageMonitor

_SHOWN_FAILURES = 50
_SHOWN_EVENTS = 200
_SHOWN_NUMBERS = 8


def rows(watch: StorageMonitor, runners: Runners) -> Iterator[api_models.StudySummary]:
    """Yield the summary of each study; for a study that cannot be read it states the reason."""
    for name in watch.names():
        try:
            yield _row(watch.snapshot(name), runners)
        except UnknownError:  # deleted a moment ago
            continue
        except DseError as error:
            yield api_models.StudySummary(
                name=name,
                question="",
                state="unreadable",
                trials=0,
                finished=0,
                done=0,
                of=None,
                counted="trials",
                front=0,
                hypervolume=None,
                hypervolume_share=None,
                hypervolume_estimated=False,
                quiet_s=None,
                problem=str(error)[:500],
            )


def state(snapshot: Snapshot, runners: Runners) -> api_models.StudyState:
    """Return the present state of a study as a model of the web API."""
    study, trials = snapshot.study, snapshot.trials
    runner = runners.of(study.name)
    return api_models.StudyState(
        **_row(snapshot, runners).model_dump(),
        mark=snapshot.mark + f".{_condition(snapshot, runners)}",
        exact=snapshot.proof.exact,
        exact_over=snapshot.proof.over,
        failed=snapshot.proof.valueless,
        failure=snapshot.proof.failed_words,
        measurements=snapshot.measured,
        gap=gap_json(known_gap(snapshot.proof, snapshot.events)),
        seconds=float(trials.cost_s.sum()),
        reason="" if snapshot.room.count > 0 else snapshot.room.reason,
        counts={one.value: count for one, count in trials.counts.items()},
        drivers=[
            api_models.DriverRow(
                id=one.id, host=one.host, pid=one.pid, own=runners.own(study.name, one)
            )
            for one in snapshot.there
        ],
        events=[
            api_models.EventRow(kind=one.kind, text=one.text, told=one.told)
            for one in others(snapshot.events)[-_SHOWN_EVENTS:]
        ],
        failures=_failures(snapshot),
        last_words="" if runner is None else runner.last_words,
    )


def front(snapshot: Snapshot) -> FrontFacts:
    """Return the Pareto front of a study for the web API.

    Without a feasible design, the designs of least violation are returned.
    """
    name, proof = snapshot.study.name, snapshot.proof
    facts = front_json(name, snapshot.front, snapshot.finished, proof=proof)
    facts["gap"] = gap_json(known_gap(proof, snapshot.events))
    return facts


def trials(snapshot: Snapshot, some: api_models.TrialFilter) -> api_models.TrialPage:
    """Return selected trials for the web API, with the total number in the selected state."""
    found = snapshot.trials
    if some.state is not None:
        found = found.take(found.are(some.state))
    shown = found[some.first : some.first + some.count]
    rows = trials_json(snapshot.study.name, snapshot.study.problem, shown)
    return api_models.TrialPage.model_validate({**rows, "total": len(found)})


def trial_row(snapshot: Snapshot, trial: Trial) -> api_models.TrialDetail:
    """Return a trial as a model of the web API."""
    facts = trials_json(snapshot.study.name, snapshot.study.problem, [trial])
    return api_models.TrialDetail.model_validate(facts["trials"][0])


def outcome_row(snapshot: Snapshot, trial: Trial) -> api_models.OutcomeRow:
    """Return the result of a design that was evaluated outside of the study."""
    row = trial_row(snapshot, trial).model_dump(include=set(api_models.OutcomeRow.model_fields))
    return api_models.OutcomeRow(**row)


def trial(snapshot: Snapshot, number: int) -> api_models.TrialRecord:
    """Return the complete record of a trial.

    Raises:
        UnknownError: no trial has that number.
    """
    if not 0 <= number < len(snapshot.trials):
        raise UnknownError(f"there is no trial {number}", hint=f"0 to {len(snapshot.trials) - 1}")
    found, study = snapshot.trials[number], snapshot.study
    storage, name = study.storage, study.name
    drivers = {one.id: process(one) for one in storage.drivers(name)}
    asks = (one for one in storage.asks(name) if one.first <= number < one.first + one.count)
    return api_models.TrialRecord(
        trial=trial_row(snapshot, found),
        asked_by=next((one.by for one in asks), ""),
        worker="" if found.worker is None else drivers.get(found.worker, ""),
        attempts=[_attempt(one) for one in storage.attempts(name) if one.number == number],
        reports=[_report(one) for one in storage.reports(name) if one.number == number],
    )


def process(driver: Driver) -> str:
    """Return a driver (process that runs a study) as text: ``process 4711 of host``."""
    return f"process {driver.pid} of {driver.host.partition(' ')[0]}"


def _row(snapshot: Snapshot, runners: Runners) -> api_models.StudySummary:
    at, bounds = snapshot.changed_at, snapshot.study.bounds()
    by_measurements = bounds.measurements is not None
    return api_models.StudySummary(
        name=snapshot.study.name,
        question=snapshot.study.plan.question,
        state=_condition(snapshot, runners),
        trials=len(snapshot.trials),
        finished=len(snapshot.finished),
        done=snapshot.measured if by_measurements else len(snapshot.finished),
        of=bounds.measurements if by_measurements else bounds.trials,
        counted="measurements" if by_measurements else "trials",
        front=len(snapshot.front.trials),
        hypervolume=finite(snapshot.front.hypervolume),
        hypervolume_share=finite(snapshot.front.hypervolume_share),
        hypervolume_estimated=not snapshot.front.hypervolume_is_exact,
        quiet_s=None if at is None else round(time.monotonic() - at, 1),
        problem="",
    )


def _condition(snapshot: Snapshot, runners: Runners) -> api_models.Condition:
    runner = runners.of(snapshot.study.name)
    if runner is not None and runner.runs:
        return "stopping" if runner.stopping else "running"
    if snapshot.there:
        return "running"
    complete = snapshot.proof.searched or snapshot.room.count <= 0 or snapshot.exhausted
    return "complete" if complete and snapshot.trials.over.all() else "paused"


def _failures(snapshot: Snapshot) -> list[api_models.FailureRow]:
    return [
        api_models.FailureRow(
            kind=one.kind,
            reason=one.reason[:2_000],
            count=len(one.trials),
            trials=list(one.trials[:_SHOWN_NUMBERS]),
        )
        for one in snapshot.failure_reasons[:_SHOWN_FAILURES]
    ]


def _attempt(one: Attempt) -> api_models.AttemptRow:
    failure = one.failure
    failure_row = (
        None if failure is None else api_models.FaultRow(kind=failure.kind, reason=failure.reason)
    )
    return api_models.AttemptRow(
        attempt=one.attempt,
        fault=failure_row,
        cost_s=finite(one.cost_s),
        begun_at=one.begun_at,
        finished_at=one.finished_at,
    )


def _report(one: Report) -> api_models.ReportRow:
    metrics = {name: finite(value) for name, value in one.metrics.items()}
    return api_models.ReportRow(
        attempt=one.attempt, step=one.step, metrics=metrics, worker=one.worker
    )
