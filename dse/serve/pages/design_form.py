"""Form for a user-supplied design, with a field for each parameter that the script reads."""

from __future__ import annotations

import json
from html import escape

from dse.core.design import Design
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value
from dse.report.words import value_text
from dse.serve.pages.frame import render_frame, study_url
from dse.serve.pages.lists import header
from dse.serve.snapshot import Snapshot

_MOST_OPTIONS = 200

_ABOUT = (
    "A design is first checked for legality. <strong>Evaluate</strong> shows its metrics and "
    "stores nothing. <strong>Add to the study</strong> keeps it as a trial, which the next run of "
    "the study evaluates first; it counts for the budget, and <code>dse verify</code> will report "
    "that no optimizer asked for it."
)


def design_page(snapshot: Snapshot, like: int | None = None) -> str:
    """Return the form; an empty field is an inactive parameter.

    Args:
        snapshot: the study.
        like: the trial whose design fills the form; by default the knee of the front.
    """
    study = snapshot.study
    known = _choose_start_design(snapshot, like)
    rows = "".join(_row(one, known.get(one.name)) for one in study.problem.space.parameters)
    head = '<tr><th class="text">parameter</th><th class="text">value</th></tr>'
    body = (
        f"{header(study.name, 'A design by hand')}"
        f'<p class="soft">{_ABOUT}</p>'
        f'<form id="design"><div class="box scroll"><table><thead>{head}</thead>'
        f'<tbody>{rows}</tbody></table></div><p class="controls">'
        '<button type="button" data-action="judge">Judge</button> '
        '<button type="button" data-action="evaluate">Evaluate</button> '
        '<button type="button" data-action="add">Add to the study</button></p></form>'
        '<div id="answer" role="status"></div>'
    )
    return render_frame(
        f"design for {study.name}",
        body,
        scripts=("design.js",),
        study=study.name,
        units=json.dumps({name: metric.unit for name, metric in study.problem.metrics.items()}),
        url=study_url(study.name),
    )


def _choose_start_design(snapshot: Snapshot, like: int | None) -> Design:
    """Return the design that fills the form: of the trial, else the knee, else the first trial."""
    if like is not None and like < len(snapshot.trials):
        return snapshot.trials[like].design
    knee = snapshot.front.knee
    if knee is not None:
        return knee.design
    return snapshot.trials[0].design if len(snapshot.trials) else Design({})


def _row(parameter: Parameter, value: Value | None) -> str:
    name = escape(parameter.name)
    return (
        f'<tr><td class="text"><label for="p-{name}">{name}</label></td>'
        f'<td class="text">{_field(parameter, value)}</td></tr>'
    )


def _field(parameter: Parameter, value: Value | None) -> str:
    values = _values(parameter)
    key = f'id="p-{escape(parameter.name)}" name="{escape(parameter.name)}"'
    if values is None:
        shown = "" if value is None else json.dumps(value)
        now = f"now {value_text(value, parameter.unit)}; " if value is not None else ""
        about = escape(f"{now}{_range(parameter)}")
        return f'<input {key} value="{escape(shown)}"> <small class="soft">{about}</small>'
    options = "".join(
        f'<option value="{escape(json.dumps(one))}"{" selected" if one == value else ""}>'
        f"{escape(value_text(one, parameter.unit))}</option>"
        for one in values
    )
    none = "" if value is not None else " selected"
    return f'<select {key}><option value=""{none}>(inactive)</option>{options}</select>'


def _values(parameter: Parameter) -> tuple[Value, ...] | None:
    """Return all values if they can be chosen from a list, else ``None``."""
    if isinstance(parameter, Real):
        return None
    if isinstance(parameter, Integer) and parameter.high - parameter.low > _MOST_OPTIONS:
        return None
    values: tuple[Value, ...] = tuple(parameter.values)
    return values if len(values) <= _MOST_OPTIONS else None


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Real | Integer):
        low, high = parameter.low, parameter.high
    else:
        numbers = [value for value in parameter.values if isinstance(value, int | float)]
        if not numbers:
            return parameter.unit
        low, high = min(numbers), max(numbers)
    return f"{value_text(low, parameter.unit)} to {value_text(high, parameter.unit)}"
