"""Migration: carry a study's trials over to a new study with a changed space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from dse.core.design import Design
from dse.core.space import DesignSpace
from dse.core.trial import Asked, Event, History, Outcome, State, Trial
from dse.core.user_events import carry_user_events
from dse.core.values import Value
from dse.errors import DesignError, StudyError
from dse.evaluation.recorded_weights import weights_of_study
from dse.protocols import Storage
from dse.schema.study.plan import plan_of
from dse.study.proposers import CARRIED
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

_FIXED = ("use", "options", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationResult:
    """Result of a migration: the new study, and its numbers of trials in and outside its space."""

    study: StudyEngine
    inside: int
    outside: int


def migrate_stored_study(
    name: str,
    path: str | Path,
    *,
    to: str | None = None,
    settings: Mapping[str, Value] | None = None,
    storage: str | Storage | None = None,
) -> MigrationResult:
    """Create the study that a study file describes, with the finished trials of the study ``name``.

    A trial that is legal in the new space counts like a trial that the new study ran, except for
    the budget. A trial that is illegal there is stored as *outside*: surrogates learn from it, but
    it is never part of the front. Attributes and answers on pairs of trials are copied. The old
    study is unchanged.

    Args:
        name: the old study's name.
        path: the new study's file.
        to: the new study's name; by default the file's, with the next free number if it is taken.
        settings: values that the old trials get for the parameters that only the new space has.
        storage: the storage of both studies, or its URL; by default :data:`DEFAULT_STORAGE`.

    Raises:
        StudyError: the old study does not exist, the new name is taken, or the evaluators differ.
    """
    opened = opened_storage(storage) if isinstance(storage, str) else storage
    old = StudyEngine.load(name, opened)
    plan = plan_of(Path(path).resolve())
    new_name = to or _free(plan.name, old.storage.studies())
    if new_name in old.storage.studies():
        raise StudyError(f"there is a study {new_name!r} already", hint="take another name: --to")
    fixed = dict(settings or {})
    _check_evaluators(_identity(old), plan.identity, fixed)
    outcomes = [(trial, *_fit_design(trial, plan.problem.space, fixed)) for trial in old.finished]
    outside = sum(not inside for _, _, inside in outcomes)
    text = f"{len(outcomes) - outside} trials of {name} carried over, {outside} outside the space"
    number = {trial.number: place for place, (trial, _, _) in enumerate(outcomes)}
    history = build_history(
        ((design, _outcome(trial, inside)) for trial, design, inside in outcomes),
        text,
        carry_user_events(old.events, number, len(outcomes)),
    )
    weights = weights_of_study(old.storage, name)  # those that runs of the new one must have
    study = StudyEngine.open(
        path,
        name=new_name,
        storage=old.storage,
        carried={
            "from": name,
            "trials": len(outcomes),
            **({"weights": weights} if weights else {}),
        },
        history=history,
    )
    return MigrationResult(study=study, inside=len(outcomes) - outside, outside=outside)


def build_history(
    outcomes: Iterable[tuple[Design, Outcome]], text: str, events: Iterable[Event] = ()
) -> History:
    """Build the initial history of a new study from evaluated designs, at no cost to its budget.

    Args:
        outcomes: the designs with their outcomes, in the order of their new numbers.
        text: text of the event that records the origin of the trials.
        events: further events, such as the attributes of the old trials.
    """
    trials = [
        Trial(number=number, design=design).finished(outcome)
        for number, (design, outcome) in enumerate(outcomes)
    ]
    return History(
        trials=trials,
        order=range(len(trials)),
        events=[Event(kind="carried", text=text), *events],
        asks=[Asked(first=0, count=len(trials), by=CARRIED)],
    )


def _outcome(trial: Trial, inside: bool) -> Outcome:  # noqa: FBT001 - a fact, not a switch
    return Outcome(
        state=trial.state if inside else State.OUTSIDE,
        metrics=trial.metrics,
        spread=trial.spread,
        failure=trial.failure,
    )


def _fit_design(
    trial: Trial, space: DesignSpace, settings: Mapping[str, Value]
) -> tuple[Design, bool]:
    """Return the trial's design with the new space's parameters, and whether it is legal there."""
    values = {name: value for name, value in trial.design.items() if name in space.by_name}
    with_settings = Design({**settings, **values})
    for design in (with_settings, Design(values)):
        try:
            space.check(design)
        except DesignError:
            continue
        return space.batch([design]).design(0), trial.state is not State.OUTSIDE
    return with_settings, False


def _identity(study: StudyEngine) -> Mapping[str, Any]:
    spec = study.storage.spec(study.name)
    assert spec is not None
    return dict(spec["identity"])


def _check_evaluators(
    old: Mapping[str, Any], new: Mapping[str, Any], settings: Mapping[str, Value]
) -> None:
    """Check that the old study's metrics have the same meaning in the new one.

    Raises:
        StudyError: an evaluator differs, or reads a parameter whose value is unknown.
    """
    for name, after in new["evaluators"].items():
        before = old["evaluators"].get(name)
        if before is None:
            raise StudyError(
                f"the old study has no evaluator {name!r}",
                hint="the old trials lack its metrics; begin a new study: dse run",
            )
        for part in _FIXED:
            if before[part] != after[part]:
                raise StudyError(
                    f"the evaluator {name!r} is another one: {part} was {before[part]!r} and is "
                    f"{after[part]!r}",
                    hint="its numbers would not be comparable; begin a new study: dse run",
                )
        gone = sorted(set(before["reads"].values()) - set(after["reads"].values()))
        if gone:
            raise StudyError(
                f"the evaluator {name!r} read {gone[0]!r}, which the new space does not have",
                hint=f"the old measurements depend on it: keep it, fixed to one value, such as "
                f"'{gone[0]}: {{choice: [...]}}'",
            )
        unknown = sorted(
            set(after["reads"].values()) - set(before["reads"].values()) - set(settings)
        )
        if unknown:
            raise StudyError(
                f"the evaluator {name!r} reads {unknown[0]!r}, which the old trials do not have",
                hint=f"give the value that they were run with: --set {unknown[0]}=...",
            )


def _free(name: str, taken: Sequence[str]) -> str:
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)
