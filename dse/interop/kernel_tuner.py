"""Results of Kernel Tuner, in its output format T4: read as external trials, and written.

Source:
    Hozzová, Torring, van Werkhoven and others: FAIR sharing of data in autotuning research, 2024
    (the formats T1 and T4); T4/1.0.0/results-schema.json of the package kernel-tuner 1.5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.errors import StorageError
from dse.interop.found_trials import ExternalTrial

_CORRECT = "correct"
_VERSION = "1.0.0"
_TIMED_OUT, _COMPILE, _RUNTIME, _CONSTRAINTS = "timeout", "compile", "runtime", "constraints"


def read_t4(path: Path, metrics: Iterable[str]) -> list[ExternalTrial]:
    """Return one external trial per result of a T4 file.

    A measurement such as ``time`` becomes the metric ``EVALUATOR.time`` if one metric alone has
    this name. Failed configurations become failed trials; those that broke a constraint are
    infeasible.

    Args:
        path: the file.
        metrics: full names of the study's metrics: ``EVALUATOR.METRIC``.

    Raises:
        StorageError: the file cannot be read, or is not a T4 file.
    """
    names = _full_names(metrics)
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StorageError(f"{path} cannot be read as JSON: {error}") from error
    results = text.get("results") if isinstance(text, dict) else None
    if not isinstance(results, list):
        hint = "write it with kernel_tuner.file_utils.store_output_file"
        raise StorageError("the file has no 'results' of Kernel Tuner", where=str(path), hint=hint)
    return [_trial(one, names, f"{path}: results[{place}]") for place, one in enumerate(results)]


def _trial(result: Any, names: Mapping[str, str], where: str) -> ExternalTrial:
    try:
        values = dict(result["configuration"])
        validity = str(result["invalidity"])
        units = {}
        for one in result.get("measurements", []):
            name = names.get(one["name"], one["name"])
            if isinstance(one["value"], int | float) and name not in values:
                values[name], units[name] = one["value"], one.get("unit", "")
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise StorageError(
            f"this result is not in Kernel Tuner's format T4: {error!r}", where=where
        ) from error
    if validity == _CORRECT:
        return ExternalTrial(values=values, units=units)
    state = State.INFEASIBLE if validity == "constraints" else State.FAILED
    return ExternalTrial(
        values=values, units=units, state=state, reason=f"Kernel Tuner: {validity}"
    )


def write_t4(problem: Problem, trials: Iterable[Trial]) -> str:
    """Return the finished trials in the format T4, as :func:`read_t4` reads them.

    A measurement has the metric's name within its evaluator, where this is unique, and its unit.
    Modelled metrics are left out, because a study computes them anew.

    Args:
        problem: the study's problem, whose measured metrics are written.
        trials: trials of the study; those that are not finished are left out.
    """
    own = {full: name for name, full in _full_names(problem.measured).items()}
    named = {name for one in problem.objectives for name in one.expression.names}
    objectives = sorted(named & problem.measured)
    results = [
        {
            **_time_stamp(trial),
            "configuration": dict(trial.design),
            "times": {"benchmark": 1e3 * trial.cost_s, "runtimes": []},
            "invalidity": _validity(trial),
            "correctness": 1 if trial.state is State.DONE else 0,
            "measurements": [
                {"name": own.get(name, name), "value": value, "unit": problem.metrics[name].unit}
                for name, value in sorted(trial.metrics.items())
                if name in problem.measured
            ],
            "objectives": [own.get(name, name) for name in objectives],
        }
        for trial in trials
        if trial.state in (State.DONE, State.FAILED, State.INFEASIBLE)
    ]
    value = {"results": results, "schema_version": _VERSION}
    return json.dumps({**value, "metadata": {"timeunit": "milliseconds"}}, indent=1) + "\n"


def _time_stamp(trial: Trial) -> dict[str, str]:
    at = trial.finished_at
    return {} if at is None else {"timestamp": datetime.fromtimestamp(at, UTC).isoformat()}


def _validity(trial: Trial) -> str:
    match trial.state:
        case State.DONE:
            return _CORRECT
        case State.INFEASIBLE:
            return _CONSTRAINTS
        case _:
            failure = trial.failure
            if failure is not None and failure.kind == "timeout":
                return _TIMED_OUT
            is_build = failure is not None and failure.reason.startswith("the build")
            return _COMPILE if is_build else _RUNTIME


def _full_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return ``EVALUATOR.METRIC`` by ``METRIC``, where only one evaluator has such a metric."""
    found: dict[str, list[str]] = {}
    for name in metrics:
        found.setdefault(name.partition(".")[2], []).append(name)
    return {own: full[0] for own, full in found.items() if len(full) == 1}
