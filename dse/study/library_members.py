"""Prior data of a new study from a library of exported studies, whose code is never run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.design import Design
from dse.core.metric import Metric
from dse.core.problem import Prior, Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Value
from dse.errors import DseError, StorageError
from dse.interop.archive.archive import read_archive
from dse.interop.archive.study_record import Record
from dse.schema.history.earlier_studies import MOST
from dse.schema.history.lineage import corresponding, normalize_value
from dse.schema.history.recorded_specification import Inherited
from dse.units import units

_FEWEST = 2
"""Least number of finished trials of a useful member."""
_MEND = "export it again (dse studies export NAME -o FILE), or take it out of the library"


def inherit_libraries(libraries: Mapping[str, str], problem: Problem) -> Inherited:
    """Return prior data from libraries (folders of exported studies), and the files left out.

    Args:
        libraries: the SHA-256 and name of each file, one a line, by folder.
        problem: the new study's problem.

    Raises:
        StorageError: a file is no exported study, is damaged, or has just been changed.
    """
    found = Inherited(studies={})
    for folder, digests in libraries.items():
        for line in digests.splitlines():
            digest, _, name = line.partition("  ")
            record = _read(Path(folder) / name, digest)
            title = (
                record.study if record.study not in _names(found) else f"{record.study} ({name})"
            )
            try:
                own = _inherit(title, record, problem)
            except (AttributeError, KeyError, TypeError, ValueError, DseError) as error:
                problem_text = f"the parameters or metrics of the study cannot be read: {error}"
                where = str(Path(folder) / name)
                raise StorageError(problem_text[:300], where=where, hint=_MEND) from error
            found = found.joined(own)
    return found


def _names(found: Inherited) -> set[str]:
    return {*found.studies, *found.left_out}


def _read(file: Path, digest: str) -> Record:
    """Read an exported study, whose content must have the SHA-256 ``digest``."""
    try:
        with file.open("rb") as opened:
            now = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror}", hint=_MEND) from error
    if now != digest:
        raise StorageError(f"{file} was changed while the study was begun", hint="begin it again")
    try:
        return read_archive(file)
    except StorageError as error:
        raise StorageError(error.problem, where=error.where or str(file), hint=_MEND) from error


def _inherit(name: str, record: Record, problem: Problem) -> Inherited:
    """Return the prior data of one exported study, or the reason why it is left out."""
    done = [one for one in record.finished if one.state in (State.DONE, State.OUTSIDE)]
    parameters = _match_parameters(record.about.get("parameters", {}), problem)
    metrics = _match_metrics(record.about.get("metrics", {}), problem)
    why = ""
    if not record.about.get("metrics"):
        why = "its file does not state the units of its metrics"
    elif not parameters:
        why = f"no parameter in common (it has {_list(record.about.get('parameters', {}))})"
    elif not metrics:
        why = f"no measured metric in common (it has {_list(record.about['metrics'])})"
    elif len(done) < _FEWEST:
        why = f"fewer than {_FEWEST} finished trials"
    if why:
        return Inherited(studies={}, left_out={name: why})
    if len(done) > MOST:
        done = [done[place] for place in np.linspace(0, len(done) - 1, MOST).round().astype(int)]
    columns = {
        own: factor * np.array([trial.metrics.get(other, np.nan) for trial in done])
        for own, (other, factor) in metrics.items()
    }
    prior = Prior(
        study=name,
        designs=tuple(_translate(trial, parameters, problem) for trial in done),
        metrics={own: _finite(values) for own, values in columns.items()},
        library=True,
    )
    return Inherited(studies={name: len(done)}, priors=(prior,))


def _match_parameters(about: Mapping[str, Any], problem: Problem) -> dict[str, tuple[str, str]]:
    """Return the unit in a library's study, and in this study, of each common parameter.

    Parameters of the same name whose units have different dimensions are not in common.
    """
    return {
        name: (str(about[name]["unit"]), parameter.unit)
        for name, parameter in problem.space.by_name.items()
        if name in about and units.same_dimension(str(about[name]["unit"]), parameter.unit)
    }


def _match_metrics(about: Mapping[str, Any], problem: Problem) -> dict[str, tuple[str, float]]:
    """Return the name in a library's study, and a unit factor, of each common measured metric.

    The keys are this study's names of the metrics. The factor converts a value from the unit of
    the library's study to the unit of this study.
    """
    others = {name: Metric(name=name, unit=str(one["unit"])) for name, one in about.items()}
    found = {}
    for metric in sorted(problem.measured):
        own = problem.metrics[metric]
        other = corresponding(metric, own, others)
        if other is not None:
            found[metric] = other, units.converted(1.0, others[other].unit, own.unit)
    return found


def _translate(trial: Trial, parameters: Mapping[str, tuple[str, str]], problem: Problem) -> Design:
    """Return the trial's values of the parameters in common, in this study's units."""
    values: dict[str, Value] = {}
    for name, (unit, own) in parameters.items():
        if name in trial.design:
            value = trial.design[name]
            if unit != own and isinstance(value, int | float) and not isinstance(value, bool):
                value = units.converted(float(value), unit, own)
            values[name] = normalize_value(value, name, problem.space)
    return Design(values)


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def _list(names: Sequence[str] | Mapping[str, Any], most: int = 5) -> str:
    listed = ", ".join(list(names)[:most])
    return listed + (", ..." if len(names) > most else "") if listed else "none"
