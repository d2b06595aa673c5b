"""Attachment of external results to a study, as finished trials that it did not evaluate."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.trial import Ask, Event, State, Trial
from dse.core.trials import Trials
from dse.errors import Overtaken, StudyError
from dse.interop.found_trials import ExternalTrial
from dse.protocols import traits_of
from dse.schema.study.plugin_checks import AUTO
from dse.study.claimed_trials import Lease
from dse.study.import_trials import ImportedTrial, TrialImporter, compute_modelled_metrics
from dse.study.proposers import ATTACHED, suggesting
from dse.study.study_engine import StudyEngine
from dse.system.credentials import private_environment

_TRIES, _PAUSE_S = 25, 0.2
_OUTSIDE = "its design is not legal in the space"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachResult:
    """Trials whose results a user attached, and the number of results left out, by reason."""

    trials: Sequence[Trial]
    left_out: dict[str, int]


def attach_found(
    study: StudyEngine, found: Sequence[ExternalTrial], *, source: str
) -> AttachResult:
    """Attach external results to a study; parameters and metrics are matched by name.

    A result is left out if its design is not legal, if a trial of the study has the design
    already, or if a measured metric is missing.

    Args:
        study: the study.
        found: the results.
        source: the origin of the results, for the record.

    Raises:
        StudyError: no result can be attached, the study's evaluators or its specification have
            changed since it was begun, it is not trusted and its models start programs, its models
            or its optimizer cannot run here, its optimizer evaluates designs at several fidelities,
            or other processes keep adding trials.
    """
    _check(study)
    problem = study.problem
    importer = TrialImporter(problem, problem.measured, study.trials.iter_designs())
    for one in found:
        importer.take(one)
    inside = [one for one in importer.taken if one.outcome.state is not State.OUTSIDE]
    left_out = dict(importer.left_out)
    if len(inside) < len(importer.taken):
        left_out[_OUTSIDE] = len(importer.taken) - len(inside)
    if not inside:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in left_out.items())
        raise StudyError(f"no result of {source} can be attached", hint=reasons or "it has none")
    return AttachResult(trials=_store(study, inside, source), left_out=left_out)


def attach_results(
    study: StudyEngine, results: Sequence[ImportedTrial], *, source: str
) -> list[Trial]:
    """Attach results whose designs are legal; return them as the study's trials.

    Args:
        study: the study.
        results: designs with outcomes, which have every measured metric unless they failed.
        source: the origin of the results, for the record.

    Raises:
        StudyError: a trial has one of the designs already, a measured metric is missing, the
            study's evaluators or its specification have changed since it was begun, it is not
            trusted and its models start programs, its models or its optimizer cannot run here, its
            optimizer evaluates designs at several fidelities, or other processes keep adding
            trials.
    """
    _check(study)
    needed = study.problem.measured
    for one in results:
        missing = min(needed - one.outcome.metrics.keys(), default="")
        if missing and one.outcome.state is State.DONE:
            raise StudyError(
                f"the result lacks {missing}, which is measured",
                hint="attach all of " + ", ".join(sorted(needed)),
            )
    return _store(study, results, source)


def _check(study: StudyEngine) -> None:
    study.check_runnable(["modelled"])
    use = study.plan.optimizer.use
    if use != AUTO and traits_of(suggesting(study.plan, use)).multi_fidelity:
        raise StudyError(
            f"the optimizer {use!r} evaluates fidelity by fidelity, and cannot take results",
            hint="begin a study with another optimizer, or import the results into a new study: "
            "dse studies import --study",
        )
    study.plan.pipeline.may_start = True  # models compute the modelled metrics


def _store(study: StudyEngine, results: Sequence[ImportedTrial], source: str) -> list[Trial]:
    """Add the designs as trials that this process holds, and finish them at once."""
    with private_environment():
        known = compute_modelled_metrics(study.problem, results)
    designs = [one.design for one in known]
    with Lease(study.storage, study.name) as lease:
        for _ in range(_TRIES):
            trials = study.trials
            _check_new(trials.iter_designs(), designs)
            try:
                ask = _ask(trials, len(designs), lease.id)
                new = study.storage.add(study.name, designs, ask)
            except Overtaken:
                time.sleep(_PAUSE_S)
                continue
            outcomes = {trial.number: one.outcome for trial, one in zip(new, known, strict=True)}
            numbers = f"{new[0].number}" if len(new) == 1 else f"{new[0].number}-{new[-1].number}"
            event = Event(kind="attached", text=f"trials {numbers} attached: {source}")
            study.storage.finish(study.name, outcomes, [event], lease.id)
            return [study.trials[trial.number] for trial in new]
    raise StudyError("other processes keep adding trials to the study", hint="try again")


def _ask(trials: Trials, count: int, worker: int) -> Ask:
    return Ask(
        told=int(trials.over.sum()),
        after=len(trials),
        wanted=count,
        by=ATTACHED,
        worker=worker,
        at=time.time(),
    )


def _check_new(known: Iterable[Design], designs: Sequence[Design]) -> None:
    """Check that no trial has one of the designs.

    Raises:
        StudyError: a trial has one of the designs.
    """
    wanted = set(designs)
    number = next((place for place, one in enumerate(known) if one in wanted), None)
    if number is not None:
        raise StudyError(
            f"trial {number} is this design already",
            hint="a result never changes; report an open trial by study.tell",
        )
