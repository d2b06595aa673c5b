"""Status of a study, and the result of a run of it, as JSON."""

from __future__ import annotations

from collections import Counter

from dse.analysis.timeline import timeline
from dse.core.attributes import Attributes, others
from dse.core.pareto import ParetoSet
from dse.core.trial import Driver
from dse.core.trials import Trials
from dse.errors import DseError
from dse.protocols import Storage
from dse.report.json.front_json import finite, front_json
from dse.report.json.gap_json import gap_json, known_gap
from dse.report.schemas.base import FailureKind, State
from dse.report.schemas.study_schema import DriverFacts, Ended, Status
from dse.services.studies.results_json import add_judged
from dse.storage.trust import has_trust
from dse.study.liveness import gone
from dse.study.study_engine import StudyEngine


def status_json(study: StudyEngine) -> Status:
    """Return the status of a study: trial counts, front, failures, events and drivers."""
    trials = study.trials
    proof, events = study.proof, study.events
    attributes = Attributes.of(events)
    front = ParetoSet.of(study.problem, trials.finished)
    worked = timeline(trials) if study.problem.measured else None
    return {
        "study": study.name,
        "question": study.plan.question,
        "trials": _counts(trials),
        "measurements": int(study.problem.measurements(trials).sum()),
        "seconds": _seconds(trials),
        "busy": None if worked is None else worked.busy,
        "per_hour": None if worked is None else worked.per_hour,
        "front": len(front.trials),
        "hypervolume": finite(front.hypervolume),
        "hypervolume_share": finite(front.hypervolume_share),
        "hypervolume_estimated": not front.hypervolume_is_exact,
        "exact": proof.exact,
        "exact_over": proof.over,
        "gap": gap_json(known_gap(proof, events)),
        "failed": proof.valueless,
        "failure": proof.failed_words,
        "failures": _failures(trials),
        "trusted": has_trust(study.storage, study.name),
        "warnings": list(study.plan.warnings),
        "attributes": dict(attributes.study),
        "trial_attributes": {str(n): dict(own) for n, own in sorted(attributes.trials.items())},
        "events": [{"kind": e.kind, "text": e.text, "told": e.told} for e in others(events)],
        "drivers": [_driver(one) for one in study.storage.drivers(study.name)],
    }


def all_states(storage: Storage) -> tuple[list[Status], list[DseError]]:
    """Return the status of each study of a storage, and the errors of unreadable studies."""
    states, errors = list[Status](), list[DseError]()
    for name in storage.studies():
        try:
            states.append(status_json(StudyEngine.load(name, storage)))
        except DseError as error:
            errors.append(error)
    return states, errors


def ended_json(study: StudyEngine, reason: str) -> Ended:
    """Return the result of a study's run as JSON, with the reason why it ended.

    Args:
        study: the study after the run.
        reason: why the run ended.
    """
    trials = study.trials
    front = study.front
    answer = front_json(study.name, front, study.finished, proof=study.proof)
    add_judged(answer, front, study.events)
    return {
        "study": study.name,
        "reason": reason,
        "trials": _counts(trials),
        "measurements": int(study.problem.measurements(trials).sum()),
        "seconds": _seconds(trials),
        "failures": _failures(trials),
        "reference_point": answer["reference_point"],
        "hypervolume": answer["hypervolume"],
        "hypervolume_share": answer["hypervolume_share"],
        "hypervolume_estimated": answer["hypervolume_estimated"],
        "exact": answer["exact"],
        "exact_over": answer["exact_over"],
        "failed": answer["failed"],
        "failure": answer["failure"],
        "feasible": answer["feasible"],
        "objectives": answer["objectives"],
        "front": answer["front"],
    }


def _counts(trials: Trials) -> dict[State, int]:
    return {state.value: count for state, count in trials.counts.items()}


def _seconds(trials: Trials) -> float | None:
    return finite(float(trials.cost_s.sum()))


def _failures(trials: Trials) -> dict[FailureKind, int]:
    return dict(Counter(failure.kind for failure in trials.failures if failure is not None))


def _driver(one: Driver) -> DriverFacts:
    return {
        "id": one.id,
        "pid": one.pid,
        "host": one.provenance.get("host", one.host),
        "left": one.left or gone(one),
        "provenance": dict(one.provenance),
    }
