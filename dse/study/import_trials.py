"""Import of another tool's trials as the initial history of a new study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.problem import Problem
from dse.core.trial import Outcome, State
from dse.core.values import Value
from dse.errors import DesignError, SpecError, StudyError
from dse.interop.document import legal_name
from dse.interop.found_trials import ExternalTrial, strip_formula_guards
from dse.interop.value_conversion import value_of
from dse.protocols import Storage
from dse.schema.study.plan import Plan, plan_of
from dse.study.migrate import build_history
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage
from dse.study.study_engine import StudyEngine
from dse.system.credentials import mask
from dse.units import units

_LOCAL = ("sqlite", "memory")
"""Schemes of storages that need no network."""

_FAULTS = {State.INFEASIBLE: "infeasible", State.FAILED: "raised"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of an import: study, trials inside and outside its space, and skipped trials."""

    study: StudyEngine
    inside: int
    outside: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ImportedTrial:
    """Design in a study's space, with the outcome that another tool or the user has recorded."""

    design: Design
    outcome: Outcome


def begun(
    path: str | Path,
    found: Sequence[ExternalTrial],
    *,
    source: str,
    name: str | None = None,
    storage: str | Storage | None = None,
    trusted: bool = False,
) -> ImportResult:
    """Create the study that a study file describes, with trials that another tool has recorded.

    Parameters and metrics are matched by name; metrics of analytical models are computed anew. A
    design that is not legal in the space is stored as *outside*: surrogates learn from it, but it
    is never part of the front. The trials do not count against the budget. Of equal designs the
    first is used.

    Args:
        path: the new study's file.
        found: the trials, in the order in which they ended.
        source: their origin, for the record.
        name: the new study's name, instead of the file's.
        storage: a storage or its URL, instead of the file's.
        trusted: whether the file's model evaluators may start programs, and its storages may be
            opened.

    Raises:
        StudyError: no trial can be imported, a study of that name exists, or the file names a
            storage on a network and is not trusted.
        SpecErrors: the file has mistakes.
    """
    source = mask(source)
    plan = plan_of(Path(path).resolve())
    plan.pipeline.may_start = trusted
    if not trusted:
        _check_local(plan, storage)
    importer = TrialImporter(
        plan.problem, plan.problem.measured if trusted else plan.problem.unprobed
    )
    for one in found:
        importer.take(one)
    taken = compute_modelled_metrics(plan.problem, importer.taken)
    if not taken:
        listed = "; ".join(f"{count}: {reason}" for reason, count in importer.left_out.items())
        raise StudyError(f"no trial of {source} can be imported", hint=listed or "it has no trials")
    opened = opened_storage(storage or plan.storage or DEFAULT_STORAGE, begins=True)
    if (name or plan.name) in opened.studies():
        taken_name = f"there is a study {name or plan.name!r} already"
        raise StudyError(taken_name, hint="take another name: --name NAME")
    outside = sum(one.outcome.state is State.OUTSIDE for one in taken)
    text = f"{len(taken) - outside} trials of {source} taken over, {outside} outside the space"
    study = StudyEngine.open(
        path,
        name=name,
        storage=opened,
        carried={"from": source, "trials": len(taken)},
        history=build_history(((one.design, one.outcome) for one in taken), text),
    )
    return ImportResult(
        study=study, inside=len(taken) - outside, outside=outside, left_out=importer.left_out
    )


def _check_local(plan: Plan, storage: str | Storage | None) -> None:
    """Check that the file itself names no storage on a network, which creation would connect to.

    Raises:
        StudyError: the file names a storage on a network.
    """
    named = [one.storage for one in plan.transfer_from] + [
        plan.storage if storage is None else None
    ]
    for url in filter(None, named):
        scheme = url.partition(":")[0]
        if scheme not in _LOCAL:
            raise StudyError(
                f"the study file names a storage of its own on a network ({scheme})",
                hint="--trust opens it: check first that you trust its owner",
            )


class TrialImporter:
    """Converter of external trials to a study's designs and metrics.

    Skipped trials are counted by reason.

    Args:
        problem: the problem.
        needed: names of the metrics that a trial must have.
        seen: designs that are skipped, because they are known already.
    """

    def __init__(
        self, problem: Problem, needed: frozenset[str], seen: Iterable[Design] = ()
    ) -> None:
        self.taken: list[ImportedTrial] = []
        self._needed = needed
        self.left_out: dict[str, int] = {}
        self._problem = problem
        self._seen = set(seen)
        self._alone = [o.text if o.text in problem.metrics else None for o in problem.objectives]

    def take(self, found: ExternalTrial) -> None:
        """Convert and keep an external trial, or count the reason why it is skipped."""
        reason = self._reason(found)
        if reason:
            self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def _reason(self, found: ExternalTrial) -> str:
        if found.state not in (State.DONE, State.OUTSIDE, *_FAULTS):
            return f"it is {found.state.value}"
        design, legal = self._design(found.values)
        if not design:
            return "it has none of the space's parameters"
        if design in self._seen:
            return "its design was there before"
        state = found.state if legal else State.OUTSIDE
        metrics = self._metrics(found)
        missing = min(self._needed - metrics.keys(), default="")
        if missing and state in (State.DONE, State.OUTSIDE):
            measured = self._problem.sources[missing].kind == "measured"
            why = "is measured" if measured else "a program computes: --trust lets it start"
            return f"it lacks {missing}, which {why}"
        self._seen.add(design)
        kind = _FAULTS.get(state)
        failure = Failure(kind=kind, reason=found.reason) if kind else None  # type: ignore[arg-type]
        outcome = Outcome(state=state, metrics=metrics, failure=failure)
        self.taken.append(ImportedTrial(design, outcome))
        return ""

    def _design(self, values: Mapping[str, Any]) -> tuple[Design, bool]:
        """Return the design with an external trial's parameter values, and whether it is legal."""
        space = self._problem.space
        found = {
            (name if name in space.by_name else legal_name(name)): v for name, v in values.items()
        }
        chosen = {name: found[name] for name in space.by_name if name in found}
        try:
            exact = {name: _value(space.by_name[name], value) for name, value in chosen.items()}
            space.check(exact)
        except (DesignError, SpecError):
            return Design({name: _plain(value) for name, value in chosen.items()}), False
        return space.batch([exact]).design(0), True

    def _metrics(self, found: ExternalTrial) -> dict[str, float]:
        """Return the finite metrics of an external trial, converted to the problem's units.

        The value of an objective that is a single metric also provides that metric.
        """
        problem = self._problem
        metrics: dict[str, float] = {}
        for name, objective, value in zip(
            self._alone, problem.objectives, found.objectives, strict=False
        ):
            if name is not None:
                metrics[name] = units.converted(value, objective.unit, problem.metrics[name].unit)
        for name, metric in problem.metrics.items():
            number = found.values.get(name)
            if isinstance(number, int | float):
                unit = found.units.get(name) or metric.unit
                metrics[name] = units.converted(float(number), unit, metric.unit)
        return {name: value for name, value in sorted(metrics.items()) if math.isfinite(value)}


def compute_modelled_metrics(
    problem: Problem, taken: Sequence[ImportedTrial]
) -> list[ImportedTrial]:
    """Return the trials with the metrics that analytical models compute, computed anew.

    Another tool's values of these metrics are overridden.
    """
    places = [place for place, one in enumerate(taken) if one.outcome.state is State.DONE]
    if not places:
        return list(taken)
    batch: Batch = problem.space.batch([taken[place].design for place in places])
    known = problem.known(batch)
    found = list(taken)
    for row, place in enumerate(places):
        outcome, failure = found[place].outcome, known.failures.get(row)
        metrics = {n: float(np.asarray(values)[row]) for n, values in known.columns.items()}
        defined = {name: value for name, value in metrics.items() if math.isfinite(value)}
        now = replace(outcome, metrics={**outcome.metrics, **defined})
        if failure is not None:
            state = State.INFEASIBLE if failure.kind == "infeasible" else State.FAILED
            now = replace(outcome, state=state, failure=failure)
        found[place] = ImportedTrial(found[place].design, now)
    return found


def _value(parameter: Any, value: Any) -> Value:
    """Return the value of the parameter that an external value (of a table) denotes.

    A number in a table may denote a string choice ('8'), and a spreadsheet may hold -O2 as "'-O2".
    """
    for meant in (value, str(value)):
        with suppress(SpecError):
            return value_of(parameter, meant)
    return value_of(parameter, strip_formula_guards(str(value)))


def _plain(value: Any) -> Value:
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, bool | int | float | str) else str(value)
