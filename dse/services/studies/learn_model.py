"""Learned evaluators of a user's runs, as files that studies name."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dse.errors import DseError, PluginError, SpecError, StudyError
from dse.protocols import HasLearning, LearningResult, Storage
from dse.registry import load

EVALUATOR = "learned"
SUFFIX = ".dse"


def learn(
    runs: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    metrics: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
    storage: str | Storage | None = None,
) -> LearningResult:
    """Fit regressions to recorded runs, and write a file for the evaluator ``learned``.

    A study uses the file by ``{use: learned, file: ...}``. It holds the runs, the options and a
    digest as JSON, and no code; each study that uses it fits the same regressions anew.

    Args:
        runs: a table, an exported study, a folder of such files, or the name of a stored study.
        output: file to write, with the suffix ``.dse``; by default nothing is written.
        metrics: the unit of each metric; an empty text stands for the unit in the study.
        options: other options of the evaluator ``learned``: ``reads``, ``units``, ``group`` and
            ``monotone``.
        storage: storage of the study, or its URL.

    Returns:
        Held-out errors, the importance of the inputs, and what was done with the runs.

    Raises:
        DseError: the runs cannot be read or learned from, or the file cannot be written.

    Example:
        ``dse.learn("runs.csv", "latency.dse", metrics={"latency": "ms"})``
    """
    from dse.report.json.atomic_file import write_whole

    target = None if output is None else Path(output)
    if target is not None and target.suffix != SUFFIX:
        raise SpecError(f"the output {target} does not end in {SUFFIX}", hint=f"{target.stem}.dse")
    evaluator = load("evaluators", EVALUATOR)
    if not isinstance(evaluator, HasLearning):
        raise PluginError(f"the evaluator {EVALUATOR!r} installed here cannot be kept")
    found = _learn(evaluator, runs, {**(options or {}), "metrics": dict(metrics)}, storage)
    if target is not None:
        write_whole(target, found.text)
    return found


def _learn(
    evaluator: HasLearning,
    runs: str | PathLike[str],
    options: Mapping[str, Any],
    storage: str | Storage | None,
) -> LearningResult:
    """Learn from a file or folder; if none has this name, from the stored study of the name."""
    from dse.services.studies.study_transfer import write_study_export
    from dse.study.study_engine import StudyEngine

    file = Path(runs)
    if file.exists() or file.suffix:
        return evaluator.learn(file, options)
    try:
        study = StudyEngine.load(str(runs), storage)
    except StudyError as error:
        problem = f"there is no file and no study {str(runs)!r}"
        raise StudyError(problem, hint=error.hint or "dse studies list") from error
    with TemporaryDirectory() as folder:
        exported = Path(folder) / f"{study.name}.jsonl"
        write_study_export(study, exported)
        try:
            return evaluator.learn(exported, options)
        except DseError as error:  # its text has the temporary file, which the user does not know
            problem = error.problem.replace(str(exported), f"the study {study.name}")
            hint = error.hint.replace(str(exported), study.name)
            raise type(error)(problem, hint=hint, part=error.part) from error
