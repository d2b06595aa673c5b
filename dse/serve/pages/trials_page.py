"""Pages of trials: a table of many, and the complete record of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from dse.core.problem import Problem
from dse.core.trial import State
from dse.report.text.space_words import format_count
from dse.report.words import (
    broken_text,
    metric_text,
    moment_text,
    number_text,
    parameter_units,
    seconds_text,
    value_text,
)
from dse.serve import api_models
from dse.serve.pages.frame import render_page, study_url
from dse.study.study_engine import StudyEngine

_OPEN = State.PENDING, State.RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """Link to a selection of trials: those in a state, or those on another page of the table.

    ``there`` is whether the state is the selected one, or whether that page exists.
    """

    words: str
    address: str
    there: bool
    count: int = 0


def trials_page(
    page: api_models.TrialPage, some: api_models.TrialView, counts: Mapping[State, int]
) -> str:
    """Return the page with a table of the selected trials, and links to others.

    Args:
        page: the trials.
        some: the requested selection.
        counts: how many of the study's trials there are in each state.
    """
    upto = min(some.first + some.count, page.total)
    return render_page(
        "trials",
        page=page,
        heads=[f"{o.name} [{o.unit}]" if o.unit else o.name for o in page.objectives],
        kinds=_kinds(page.study, some, counts) if counts else [],
        kind_words="" if some.state is None else f"{some.state.value} ",
        kept=some.model_dump(mode="json", exclude_defaults=True, exclude={"first"}),
        first=some.first,
        steps=_steps(page, some),
        shown=f"{some.first + 1} to {upto} of {page.total}" if some.first < page.total else "",
    )


def _kinds(study: str, some: api_models.TrialView, counts: Mapping[State, int]) -> list[_Link]:
    """Return the links that select the trials of one state."""
    kinds = (
        ("all", sum(counts.values()), None),
        *((state.value, counts.get(state, 0), state) for state in State),
    )
    return [
        _Link(
            words=words,
            address=_address(study, some, 0, state),
            there=state is some.state,
            count=count,
        )
        for words, count, state in kinds
        if count or state is some.state
    ]


def _steps(page: api_models.TrialPage, some: api_models.TrialView) -> list[_Link]:
    """Return links to the first, previous, next and last page of trials."""
    last = (max(page.total, 1) - 1) // some.count * some.count
    places = (
        ("first", 0, some.first > 0),
        ("earlier", max(some.first - some.count, 0), some.first > 0),
        ("later", some.first + some.count, some.first + some.count < page.total),
        ("last", last, some.first < last),
    )
    return [
        _Link(words=words, address=_address(page.study, some, at, some.state), there=there)
        for words, at, there in places
    ]


def _address(study: str, some: api_models.TrialView, first: int, state: State | None) -> str:
    asked = some.model_copy(update={"first": first, "state": state})
    query = asked.model_dump(mode="json", exclude_defaults=True)
    return f"{study_url(study, 'trials')}?{urlencode(query)}"


def trial_page(study: StudyEngine, record: api_models.TrialRecord, total: int) -> str:
    """Return the page of one trial: design, metrics, failure, and log of the evaluators.

    ``total`` is the number of trials in the study.
    """
    problem, trial = study.problem, record.trial
    units = parameter_units(problem)
    fault = f"{trial.fault.kind}: {trial.fault.reason}" if trial.fault else ""
    return render_page(
        "trial",
        study=study.name,
        record=record,
        trial=trial,
        total=total,
        is_open=trial.state in _OPEN,
        reason=fault or broken_text(problem, trial.broken),
        objectives=_objectives(trial, problem),
        design=[(n, value_text(v, units.get(n, ""))) for n, v in trial.design.items()],
        metrics=_metrics(trial, problem),
        story=_story(record),
    )


def _objectives(trial: api_models.TrialDetail, problem: Problem) -> list[tuple[str, str]]:
    pairs = zip(problem.objectives, trial.objectives, strict=True)
    if all(value is None for value in trial.objectives):
        return []
    return [
        (f"{o.goal} {o.name}", number_text(value, o.unit, written=o.written)) for o, value in pairs
    ]


def _metrics(trial: api_models.TrialDetail, problem: Problem) -> list[tuple[str, str]]:
    known = ((name, value) for name, value in sorted(trial.metrics.items()))
    return [
        (name, metric_text(value, problem.metrics[name], trial.spread.get(name)))
        for name, value in known
        if name in problem.metrics
    ]


def _story(record: api_models.TrialRecord) -> list[tuple[str, str]]:
    trial = record.trial
    measured = (
        f"{format_count(trial.measured, 'evaluator')} measured"
        if trial.measured
        else "all modelled"
    )
    took = f"{seconds_text(trial.cost_s or 0.0)}, {measured}"
    return [
        ("asked for by", record.asked_by or "unknown: added by hand, or by an older version"),
        ("known then", f"{trial.told} finished trials"),
        ("run by", record.worker or "no process yet"),
        ("took", "it is not over yet" if trial.state in _OPEN else took),
        *((name, moment_text(at)) for name, at in _moments(trial) if at is not None),
    ]


def _moments(trial: api_models.TrialDetail) -> Iterator[tuple[str, float | None]]:
    yield "asked", trial.asked_at
    yield "begun", trial.begun_at
    yield "finished", trial.finished_at
