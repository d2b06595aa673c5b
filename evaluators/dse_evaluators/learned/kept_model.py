"""Files of kept learned evaluators: runs, options and a digest as JSON; a fit repeats them.

A file holds data and no code, so that opening one from elsewhere is safe. Candidates have fixed
seeds and one thread, so that the same runs and options yield the same predictions with the same
version of scikit-learn, whose version is part of that of the evaluator.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dse.errors import SpecError
from dse_evaluators.learned.runs_file import RunsFile
from dse_evaluators.learned.training_set import FitSettings

SUFFIX = ".dse"
_KIND = "learned evaluator"
_EDITION = 1


def write_model(runs: RunsFile, settings: FitSettings) -> str:
    """Return the content of the file that keeps a learned evaluator."""
    body = {
        "kind": _KIND,
        "edition": _EDITION,
        "settings": asdict(settings),
        "runs": {
            "digest": runs.digest,
            "total": runs.total,
            "left_out": dict(runs.left_out),
            "metric_units": dict(runs.metric_units),
            "input_units": dict(runs.input_units),
            "columns": {
                name: [_plain(one) for one in column] for name, column in runs.columns.items()
            },
        },
    }
    return json.dumps({"digest": _digest(body), **body}, allow_nan=False) + "\n"


def read_model(path: Path) -> tuple[RunsFile, FitSettings]:
    """Read the runs and options of a learned evaluator from its file.

    Raises:
        SpecError: there is no such file, it is no kept evaluator, or it was changed.
    """
    hint = f"make it again: dse learn RUNS --metrics NAME=UNIT -o {path.name}"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    except ValueError as error:
        raise SpecError(f"{path} is no kept evaluator: it is no JSON", hint=hint) from error
    if not isinstance(body, dict) or body.get("kind") != _KIND:
        raise SpecError(f"{path} is no kept evaluator", hint=hint)
    if body.get("edition") != _EDITION:
        raise SpecError(f"{path} was kept by another version of dse", hint=hint)
    digest = body.pop("digest", None)
    if digest != _digest(body):
        raise SpecError(f"{path} was changed after it was kept", hint=hint)
    try:
        settings = dict(body["settings"])
        reads = settings.pop("reads")
        return RunsFile(path=path, **body["runs"]), FitSettings(
            reads=None if reads is None else tuple(reads), **settings
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SpecError(f"{path} is no kept evaluator", hint=hint) from error


def _plain(value: Any) -> Any:
    """Return a cell as JSON has it: NaN is an absent value.

    Raises:
        SpecError: the value is neither a number nor a text, or infinite.
    """
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise SpecError("a run has an infinite value", hint="fix or remove the run")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
