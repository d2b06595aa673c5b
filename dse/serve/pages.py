"""The pages beside that of a study: studies, trials, one trial, a choice, the token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from dse.core.problem import Problem
from dse.report.page_parts import facts, section
from dse.report.words import (
    broken_text,
    metric_text,
    number_text,
    parameter_units,
    seconds_text,
    value_text,
)
from dse.serve import models
from dse.serve.frame import framed, study_url
from dse.study import Study


def list_page(storage: str, rows: Sequence[models.StudyRow]) -> str:
    """The studies of the storage; a script keeps the lines as they stand."""
    lines = "".join(_study_line(row) for row in rows)
    heads = ("study", "state", "trials", "on the front", "hypervolume", "last news")
    none = (
        "" if rows else "<p>There is no study yet. Begin one: <code>dse run STUDY.yaml</code></p>"
    )
    body = (
        f"<header><h1>Studies</h1><p>{escape(storage)}</p></header>{none}"
        f"{table(heads, lines, key='studies', texts=(0, 1))}"
    )
    return framed("Studies", body, scripts=("studies.js", "tables.js"))


def trials_page(told: models.Trials, first: int) -> str:
    """A hundred trials in a table, with the way to the ones before and after."""
    names = [objective.name for objective in told.objectives]
    lines = "".join(_trial_line(told.study, one) for one in told.trials)
    steps = [
        f'<a href="{study_url(told.study, "trials")}?first={at}">{words}</a>'
        for at, words, there in (
            (max(first - 100, 0), "earlier", first > 0),
            (first + 100, "later", first + 100 < told.total),
        )
        if there
    ]
    body = (
        f"{_header(told.study, f'{told.total} trials, in the units of the study')}"
        f"{table(('trial', 'state', *names, 'reason'), lines, texts=(1, len(names) + 2))}"
        f"<p>{' '.join(steps)}</p>"
    )
    return framed(f"trials of {told.study}", body, scripts=("tables.js",))


def trial_page(study: Study, told: models.TrialTold) -> str:
    """One trial: its design, its numbers, why it failed, and what its evaluators said."""
    problem, trial = study.problem, told.trial
    units = parameter_units(problem)
    design = facts((n, value_text(v, units.get(n, ""))) for n, v in trial.design.items())
    body = (
        f"{_header(study.name, f'trial {trial.trial}: {trial.state}')}"
        f"{_reason(problem, trial)}"
        f"{section('Objectives', facts(_objectives(trial, problem)))}"
        f"{section('Design', design)}"
        f"{section('Metrics', facts(_metrics(trial, problem)))}"
        f"{section('Log of its evaluators', _log(told))}"
        f"{section('How it came about', facts(_story(told)))}"
        f'<p><a href="{study_url(study.name, "design")}?like={trial.trial}">'
        "Change it, and try that by hand</a></p>"
    )
    return framed(f"trial {trial.trial} of {study.name}", body, scripts=("tables.js",))


def compare_page(names: Sequence[str]) -> str:
    """Which studies to compare."""
    boxes = "".join(
        f'<label><input type="checkbox" name="study" value="{escape(name)}"> {escape(name)}</label>'
        for name in names
    )
    body = (
        "<header><h1>Compare studies</h1><p>They have to ask the same of the same space.</p>"
        f'</header><form action="/compare/report" method="get" class="choices">{boxes}<hr>'
        '<label><input type="checkbox" name="seeds" value="true"> Studies that differ in their '
        "seed alone are one group</label>"
        '<label><input type="checkbox" name="joint" value="true"> Take the worst of all fronts as '
        "the reference point where no study states one</label>"
        "<p><button>Compare</button></p></form>"
    )
    return framed("Compare studies", body)


def login_page() -> str:
    """Where the token is told; a script sends it as a header, never in an address."""
    body = (
        "<h1>The token</h1><p><code>dse serve</code> printed it when it started.</p>"
        '<form id="login" class="choices"><label>token <input id="token" type="password"'
        ' autocomplete="off" required></label><p><button>Go on</button></p>'
        '<p id="answer" role="status"></p></form>'
    )
    return framed("The token", body, scripts=("login.js",))


def table(heads: Iterable[str], lines: str, *, key: str = "", texts: Sequence[int] = ()) -> str:
    """A table that can be sorted; ``texts`` are the columns that hold words."""
    cells = "".join(
        f'<th scope="col" class="{"text" if place in texts else ""}">'
        f'<button type="button">{escape(head)}</button></th>'
        for place, head in enumerate(heads)
    )
    named = f' id="{key}"' if key else ""
    return (
        f'<div class="box scroll"{named}><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _header(study: str, words: str) -> str:
    link = f'<a href="{study_url(study)}">{escape(study)}</a>'
    return f"<header><h1>{link}</h1><p>{escape(words)}</p></header>"


def _study_line(row: models.StudyRow) -> str:
    volume = "-" if row.hypervolume is None else f"{row.hypervolume:.5g}"
    quiet = "-" if row.quiet_s is None else f"{seconds_text(row.quiet_s)} ago"
    told = escape(row.problem or row.question)
    return (
        f'<tr><td class="text"><a href="{study_url(row.name)}">{escape(row.name)}</a>'
        f'<small class="soft">{told}</small></td>'
        f'<td class="text"><span class="state {row.state}">{row.state}</span></td>'
        f"<td>{row.finished}</td><td>{row.front}</td><td>{volume}</td><td>{quiet}</td></tr>"
    )


def _trial_line(study: str, row: models.TrialRow) -> str:
    values = "".join(
        f"<td>{'-' if value is None else f'{value:.5g}'}</td>" for value in row.objectives
    )
    reason = f"{row.fault.kind}: {row.fault.reason}" if row.fault else "; ".join(row.broken)
    return (
        f'<tr><td><a href="{study_url(study, "trials", row.trial)}">{row.trial}</a></td>'
        f'<td class="text">{escape(row.state)}</td>{values}'
        f'<td class="text">{escape(reason[:300])}</td></tr>'
    )


def _reason(problem: Problem, trial: models.TrialRow) -> str:
    told = f"{trial.fault.kind}: {trial.fault.reason}" if trial.fault else ""
    words = told or broken_text(problem, trial.broken)
    return f'<pre class="warn">{escape(words)}</pre>' if words else ""


def _objectives(trial: models.TrialRow, problem: Problem) -> list[tuple[str, str]]:
    pairs = zip(problem.objectives, trial.objectives, strict=True)
    return [(f"{o.goal} {o.name}", number_text(value, o.unit)) for o, value in pairs]


def _metrics(trial: models.TrialRow, problem: Problem) -> list[tuple[str, str]]:
    known = ((name, value) for name, value in sorted(trial.metrics.items()))
    return [
        (name, metric_text(value, problem.metrics[name], trial.spread.get(name)))
        for name, value in known
        if name in problem.metrics
    ]


def _log(told: models.TrialTold) -> str:
    """What the record keeps of its evaluators: attempts that were given up, and reports."""
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
        + (table(("attempt", "step", "told"), reports, texts=(2,)) if reports else "")
    ) or '<p class="soft">They told nothing on their way.</p>'


def _numbers(metrics: Mapping[str, float | None]) -> str:
    return ", ".join(f"{n} {'-' if v is None else f'{v:.6g}'}" for n, v in metrics.items())


def _story(told: models.TrialTold) -> list[tuple[str, str]]:
    trial = told.trial
    many = "1 measurement" if trial.measured == 1 else f"{trial.measured} measurements"
    measured = many if trial.measured else "all modelled"
    return [
        ("asked for by", told.asked_by or "the record does not tell: by hand, or an older version"),
        ("known then", f"{trial.told} finished trials"),
        ("run by", told.worker or "nobody yet"),
        ("took", f"{seconds_text(trial.cost_s or 0.0)}, {measured}"),
    ]
