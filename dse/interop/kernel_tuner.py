"""Results of Kernel Tuner, in its output format T4, as external trials.

Source:
    Hozzová, Torring, van Werkhoven and others: FAIR sharing of data in autotuning research, 2024
    (the formats T1 and T4); T4/1.0.0/results-schema.json of the package kernel-tuner 1.5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dse.core.trial import State
from dse.errors import StorageError
from dse.interop.found_trials import ExternalTrial

_CORRECT = "correct"


def read_t4(path: Path, metrics: Iterable[str]) -> list[ExternalTrial]:
    """Return one external trial per result of a T4 file.

    A measurement such as ``time`` becomes the metric ``EVALUATOR.time`` if one metric alone has
    this name. Failed configurations become failed trials; those that broke a constraint are
    infeasible.

    Args:
        path: the file.
        metrics: names of the study's metrics, with those of their evaluators.

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


def _full_names(metrics: Iterable[str]) -> dict[str, str]:
    """Return metrics' full names by their names within their evaluators, where these are unique."""
    found: dict[str, list[str]] = {}
    for name in metrics:
        found.setdefault(name.partition(".")[2], []).append(name)
    return {own: full[0] for own, full in found.items() if len(full) == 1}
