"""A study's trials carried over to a study with another space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from dse.core.design import Design
from dse.core.space import Space
from dse.core.trial import Asked, Event, History, Outcome, State, Trial
from dse.core.values import Value
from dse.errors import DesignError, StudyError
from dse.protocols import Storage
from dse.schema.study.plan import plan_of
from dse.study.proposers import CARRIED
from dse.study.study import StudyEngine, opened_storage

_FIXED = ("use", "options", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A carried study: how many trials are legal in the new space, and how many are outside."""

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
) -> Carried:
    """Begin the study of a file with the finished trials of the study ``name``.

    A trial that is legal in the new space counts like one of the new study's own, but for its
    budget. One that is not is kept as *outside*: the surrogate learns from it, and it is never
    part of the front. The old study stays as it is.

    Args:
        name: the old study.
        path: the new study's file.
        to: the new study's name; by default the file's, with the next free number if it is taken.
        settings: what the old trials had in parameters that only the new space has.
        storage: where both studies are, or its URL; by default the usual one.

    Raises:
        StudyError: there is no such study, or its evaluators are not those of the new one.
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
    study = StudyEngine.open(
        path,
        name=new_name,
        storage=old.storage,
        carried={"from": name, "trials": len(outcomes)},
        history=_history(outcomes, text),
    )
    return Carried(study=study, inside=len(outcomes) - outside, outside=outside)


def _history(outcomes: Sequence[tuple[Trial, Design, bool]], text: str) -> History:
    """Build the history of the designs under new numbers, free of cost for the new study."""
    trials = [
        Trial(number=number, design=design).finished(_outcome(trial, inside))
        for number, (trial, design, inside) in enumerate(outcomes)
    ]
    return History(
        trials=trials,
        order=range(len(trials)),
        events=[Event(kind="carried", text=text)],
        asks=[Asked(first=0, count=len(trials), by=CARRIED)],
    )


def _outcome(trial: Trial, inside: bool) -> Outcome:  # noqa: FBT001 - a fact, not a switch
    return Outcome(
        state=trial.state if inside else State.OUTSIDE,
        metrics=trial.metrics,
        spread=trial.spread,
        fault=trial.fault,
    )


def _fit_design(trial: Trial, space: Space, settings: Mapping[str, Value]) -> tuple[Design, bool]:
    """Return the trial's design in the new space's names, and whether it is legal there."""
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
    """Nothing, if numbers of the old study mean the same in the new one.

    Raises:
        StudyError: an evaluator is another one, or reads a parameter of unknown value.
    """
    for name, after in new["evaluators"].items():
        before = old["evaluators"].get(name)
        if before is None:
            raise StudyError(
                f"the old study has no evaluator {name!r}", hint="its metrics were never found"
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
                hint=f"what was measured depends on it: keep it, fixed to one value, such as "
                f"'{gone[0]}: {{choice: [...]}}'",
            )
        unknown = sorted(
            set(after["reads"].values()) - set(before["reads"].values()) - set(settings)
        )
        if unknown:
            raise StudyError(
                f"the evaluator {name!r} reads {unknown[0]!r}, which the old trials do not tell",
                hint=f"say what they had: --set {unknown[0]}=...",
            )


def _free(name: str, taken: Sequence[str]) -> str:
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)
