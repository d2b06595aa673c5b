"""Pages of trials: a table of many, and the complete record of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import urlencode

from dse.core.problem import Problem
from dse.core.trial import State
from dse.report.html.page_parts import facts, section
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
from dse.serve import models
from dse.serve.pages.frame import render_frame, study_url
from dse.serve.pages.lists import header, table
from dse.study.study import StudyEngine

_CHOSEN = ' aria-current="true"'
_SILENT = {True: "No reports yet.", False: "They made no reports."}
_OPEN = State.PENDING, State.RUNNING


def trials_page(told: models.TrialPage, some: models.TrialView, counts: Mapping[State, int]) -> str:
    """Return a table of selected trials, with links to the others and to those of each state.

    Args:
        told: the trials.
        some: the requested selection.
        counts: how many of the study's trials there are in each state.
    """
    heads = [f"{o.name} [{o.unit}]" if o.unit else o.name for o in told.objectives]
    lines = "".join(_trial_line(told.study, one) for one in told.trials)
    rows = table(
        ("trial", "state", *heads, "reason"), lines, key="trials", texts=(1, len(heads) + 2)
    )
    body = (
        f"{header(told.study, 'Trials')}{_choice(told, some, counts) if counts else ''}"
        f"{f'{rows}{_steps(told, some)}' if told.trials else _none(told.study, some, counts)}"
    )
    return render_frame(f"trials of {told.study}", body, scripts=("tables.js",))


def _none(study: str, some: models.TrialView, counts: Mapping[State, int]) -> str:
    """Return the hint that is shown where there are no trials to list."""
    if not counts:
        way = f'<a href="{study_url(study)}">the page of the study</a>'
        return f"<p>No trial has been asked for yet. Start the study on {way}.</p>"
    kind = "" if some.state is None else f"{some.state.value} "
    return f"<p>There are no {kind}trials from number {some.first} on.</p>"


def _choice(told: models.TrialPage, some: models.TrialView, counts: Mapping[State, int]) -> str:
    """Return the links that select a state, and the form that selects the first trial."""
    kinds = (
        ("all", sum(counts.values()), None),
        *((state.value, counts.get(state, 0), state) for state in State),
    )
    links = " ".join(
        f'<a href="{_address(told.study, some, 0, state)}"'
        f'{_CHOSEN if state is some.state else ""}>{words}</a> <span class="soft">{count}</span>'
        for words, count, state in kinds
        if count or state is some.state
    )
    asked = some.model_dump(mode="json", exclude_defaults=True, exclude={"first"})
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(str(value))}">'
        for name, value in asked.items()
    )
    return (
        f'<p class="links">{links}</p><form class="controls" method="get">{kept}'
        f'<label>from <input name="first" type="number" min="0" required value="{some.first}">'
        f"</label> <button>Show</button></form>{_steps(told, some)}"
    )


def _steps(told: models.TrialPage, some: models.TrialView) -> str:
    """Return links to the first, the earlier, the later and the last trials."""
    last = (max(told.total, 1) - 1) // some.count * some.count
    places = (
        ("first", 0, some.first > 0),
        ("earlier", max(some.first - some.count, 0), some.first > 0),
        ("later", some.first + some.count, some.first + some.count < told.total),
        ("last", last, some.first < last),
    )
    links = " ".join(
        f'<a href="{_address(told.study, some, at, some.state)}">{words}</a>'
        if there
        else f'<span class="soft">{words}</span>'
        for words, at, there in places
    )
    upto = min(some.first + some.count, told.total)
    shown = f"{some.first + 1} to {upto} of {told.total}" if some.first < told.total else ""
    return f'<p class="links">{links} <span class="soft">{shown}</span></p>'


def _address(study: str, some: models.TrialView, first: int, state: State | None) -> str:
    asked = some.model_copy(update={"first": first, "state": state})
    told = asked.model_dump(mode="json", exclude_defaults=True)
    return escape(f"{study_url(study, 'trials')}?{urlencode(told)}")


def trial_page(study: StudyEngine, told: models.TrialRecord, total: int) -> str:
    """Return the page of one trial of ``total``: design, metrics, failure, evaluator log."""
    problem, trial = study.problem, told.trial
    units = parameter_units(problem)
    design = facts((n, value_text(v, units.get(n, ""))) for n, v in trial.design.items())
    body = (
        f'<div id="trial"{" data-open" if trial.state in _OPEN else ""}>'
        f"{header(study.name, f'Trial {trial.trial}', trial.state)}"
        f"{_neighbours(study.name, trial.trial, total)}{_reason(problem, trial)}"
        '<div class="sides">'
        f"{section('Objectives', facts(_objectives(trial, problem)))}"
        f"{section('Design', design)}"
        f"{section('Metrics', facts(_metrics(trial, problem)))}"
        f"{section('How it came about', facts(_story(told)))}</div>"
        f"{section('Log of its evaluators', _log(told))}</div>"
    )
    title = f"trial {trial.trial} of {study.name}"
    return render_frame(title, body, scripts=("tables.js", "trial.js"))


def _neighbours(study: str, number: int, total: int) -> str:
    """Return links to the trials before and after."""
    links = " ".join(
        f'<a href="{study_url(study, "trials", other)}">{words}</a>'
        for words, other in (("earlier", number - 1), ("later", number + 1))
        if 0 <= other < total
    )
    more = f'<a href="{study_url(study, "trials")}?first={number // 100 * 100}">all trials</a>'
    like = f'<a href="{study_url(study, "design")}?like={number}">change it by hand</a>'
    return f'<p class="links">{links} {more} {like}</p>'


def _trial_line(study: str, row: models.TrialDetail) -> str:
    values = "".join(
        f"<td>{'-' if value is None else f'{value:.5g}'}</td>" for value in row.objectives
    )
    reason = f"{row.fault.kind}: {row.fault.reason}" if row.fault else "; ".join(row.broken)
    return (
        f'<tr><td><a href="{study_url(study, "trials", row.trial)}">{row.trial}</a></td>'
        f'<td class="text">{escape(row.state)}</td>{values}'
        f'<td class="text">{escape(reason[:300])}</td></tr>'
    )


def _reason(problem: Problem, trial: models.TrialDetail) -> str:
    told = f"{trial.fault.kind}: {trial.fault.reason}" if trial.fault else ""
    words = told or broken_text(problem, trial.broken)
    return f'<pre class="warn">{escape(words)}</pre>' if words else ""


def _objectives(trial: models.TrialDetail, problem: Problem) -> list[tuple[str, str]]:
    pairs = zip(problem.objectives, trial.objectives, strict=True)
    if all(value is None for value in trial.objectives):
        return []
    return [
        (f"{o.goal} {o.name}", number_text(value, o.unit, written=o.written)) for o, value in pairs
    ]


def _metrics(trial: models.TrialDetail, problem: Problem) -> list[tuple[str, str]]:
    known = ((name, value) for name, value in sorted(trial.metrics.items()))
    return [
        (name, metric_text(value, problem.metrics[name], trial.spread.get(name)))
        for name, value in known
        if name in problem.metrics
    ]


def _log(told: models.TrialRecord) -> str:
    """Return the recorded log of the evaluators: attempts that were given up, and reports."""
    attempts = "".join(
        f'<tr><td>{one.attempt}</td><td class="text">'
        f"{escape(f'{one.fault.kind}: {one.fault.reason}' if one.fault else '')}</td>"
        f"<td>{seconds_text(one.cost_s or 0.0)}</td></tr>"
        for one in told.attempts
    )
    reports = "".join(
        f'<tr><td>{one.attempt}</td><td>{one.step}</td><td class="text">'
        f"{escape(_numbers(one.metrics))}</td></tr>"
        for one in told.reports[-1_000:]
    )
    return (
        (table(("attempt", "given up", "after"), attempts, texts=(1,)) if attempts else "")
        + (table(("attempt", "step", "reported"), reports, texts=(2,)) if reports else "")
    ) or f'<p class="soft">{_SILENT[told.trial.state in _OPEN]}</p>'


def _numbers(metrics: Mapping[str, float | None]) -> str:
    return ", ".join(f"{n} {'-' if v is None else f'{v:.6g}'}" for n, v in metrics.items())


def _story(told: models.TrialRecord) -> list[tuple[str, str]]:
    trial = told.trial
    measured = (
        f"{format_count(trial.measured, 'evaluator')} measured"
        if trial.measured
        else "all modelled"
    )
    took = f"{seconds_text(trial.cost_s or 0.0)}, {measured}"
    return [
        ("asked for by", told.asked_by or "unknown: added by hand, or by an older version"),
        ("known then", f"{trial.told} finished trials"),
        ("run by", told.worker or "no process yet"),
        ("took", "it is not over yet" if trial.state in _OPEN else took),
        *((name, moment_text(at)) for name, at in _moments(trial) if at is not None),
    ]


def _moments(trial: models.TrialDetail) -> Iterator[tuple[str, float | None]]:
    yield "asked", trial.asked_at
    yield "begun", trial.begun_at
    yield "finished", trial.finished_at
