"""Page with a form in which a user enters a design, one field per parameter."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.parameter import Integer, Parameter, Real
from dse.core.values import Value
from dse.report.words import value_text
from dse.serve.pages.frame import render_page
from dse.serve.snapshot import Snapshot

_MOST_OPTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """Value that a form field offers for selection; ``value`` is its JSON."""

    value: str
    words: str
    is_selected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """Form field for a parameter: a list of options, or a text field with a note on its range."""

    name: str
    is_active: bool
    options: list[_Option]
    shown: str = ""
    about: str = ""


def design_page(snapshot: Snapshot, like: int | None = None) -> str:
    """Return the page for entering a design; an empty field means an inactive parameter.

    Args:
        snapshot: the study.
        like: the trial whose design fills the form; by default the knee of the front.
    """
    study = snapshot.study
    known = _choose_start_design(snapshot, like)
    return render_page(
        "design",
        study=study.name,
        fields=[_field(one, known.get(one.name)) for one in study.problem.space.parameters],
        units=json.dumps({name: metric.unit for name, metric in study.problem.metrics.items()}),
    )


def _choose_start_design(snapshot: Snapshot, like: int | None) -> Design:
    """Return the design with which the form is filled at first.

    It is that of the trial ``like``, else the knee of the front, else the first trial's.
    """
    if like is not None and like < len(snapshot.trials):
        return snapshot.trials[like].design
    knee = snapshot.front.knee
    if knee is not None:
        return knee.design
    return snapshot.trials[0].design if len(snapshot.trials) else Design({})


def _field(parameter: Parameter, value: Value | None) -> _Field:
    is_active, unit = value is not None, parameter.unit
    values = _values(parameter)
    if values is None:
        shown = json.dumps(value) if is_active else ""
        about = f"now {value_text(value, unit)}; " if is_active else ""
        about += _range(parameter)
        return _Field(
            name=parameter.name, is_active=is_active, options=[], shown=shown, about=about
        )
    options = [
        _Option(value=json.dumps(one), words=value_text(one, unit), is_selected=one == value)
        for one in values
    ]
    return _Field(name=parameter.name, is_active=is_active, options=options)


def _values(parameter: Parameter) -> tuple[Value, ...] | None:
    """Return the values for a drop-down list; ``None`` if there are too many or they are real."""
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
