"""How tables and JSON of trials were written before: row by row, a trial at a time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from itertools import chain

from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import TIMES
from dse.report.answer import broken_limits, objective_values
from dse.report.json.front_json import finite, objectives_json
from dse.report.words import broken_text, parameter_units, word_of


def csv_by_rows(problem: Problem, trials: Sequence[Trial]) -> str:
    sheet = _columns(problem, trials)
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in chain([tuple(sheet)], zip(*sheet.values(), strict=True)):
        broken = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoted if broken else plain).writerow(row)
    return text.getvalue()


def json_by_rows(study: str, problem: Problem, trials: Sequence[Trial], indent: int | None) -> str:
    rows = zip(
        trials,
        objective_values(problem, trials).tolist(),
        problem.feasible(trials).tolist(),
        broken_limits(problem, trials),
        strict=True,
    )
    metrics = sorted(problem.metrics.items())
    told = {
        "study": study,
        "objectives": objectives_json(problem.objectives),
        "limits": sorted({limit.text for limit in problem.limits}),
        "metrics": {name: metric.unit for name, metric in metrics},
        "words": {name: list(metric.words) for name, metric in metrics if metric.words},
        "parameters": parameter_units(problem),
        "trials": [_entry(problem, *row) for row in rows],
    }
    return json.dumps(told, indent=indent, allow_nan=False)


def _entry(problem, trial, values, feasible, broken):
    blank = problem.sources if trial.state is State.DONE else ()
    failure = trial.failure
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "design": dict(trial.design),
        "metrics": {**dict.fromkeys(blank), **_finite(trial.metrics)},
        "spread": _finite(trial.spread),
        "objectives": list(map(finite, values)),
        "feasible": feasible,
        "broken": broken,
        "fault": None if failure is None else {"kind": failure.kind, "reason": failure.reason},
        "cost_s": finite(trial.cost_s),
        "measured": trial.measured,
        "told": trial.told,
        "attempts": trial.attempts,
        "asked_at": trial.asked_at,
        "begun_at": trial.begun_at,
        "finished_at": trial.finished_at,
    }


def _finite(numbers):
    return {name: finite(value) for name, value in numbers.items()}


def _columns(problem, trials):
    failures = [trial.failure for trial in trials]
    return {
        "trial": [trial.number for trial in trials],
        "state": [trial.state.value for trial in trials],
        "feasible": problem.feasible(trials).tolist(),
        "broken": [
            broken_text(problem, broken) or None for broken in broken_limits(problem, trials)
        ],
        "fault": [failure.kind if failure else None for failure in failures],
        "reason": [failure.reason if failure else None for failure in failures],
        "cost [s]": [finite(trial.cost_s) for trial in trials],
        "measured": [trial.measured for trial in trials],
        "told": [trial.told for trial in trials],
        "attempts": [trial.attempts for trial in trials],
        **{f"{name} [s]": [getattr(trial, name) for trial in trials] for name in TIMES},
        **_quantities(problem, trials),
    }


def _quantities(problem, trials):
    values = objective_values(problem, trials).T.tolist()
    metrics = sorted(problem.metrics.items())
    parameters = {
        _named(name, unit): [trial.design.get(name) for trial in trials]
        for name, unit in parameter_units(problem).items()
    }
    known = {
        _named(name, metric.unit): [_told(trial.metrics.get(name), metric) for trial in trials]
        for name, metric in metrics
    }
    spreads = {
        _named(f"{name} spread", metric.unit): [finite(t.spread.get(name)) for t in trials]
        for name, metric in metrics
        if any(name in trial.spread for trial in trials)
    }
    objectives = {
        _named(objective.name, objective.unit): list(map(finite, column))
        for objective, column in zip(problem.objectives, values, strict=True)
    }
    return {**parameters, **known, **spreads, **objectives}


def _told(value, metric):
    word = word_of(value, metric)
    return finite(value) if word is None else word


def _named(name, unit):
    return f"{name} [{unit}]" if unit else name
