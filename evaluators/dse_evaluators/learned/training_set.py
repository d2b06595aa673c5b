"""Runs that are checked and cleaned for learning: inputs, metrics, groups, and what was done."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError, nearest
from dse.units.units import converted
from dse_evaluators.learned.run_columns import InputColumn, TextColumn, column_of
from dse_evaluators.learned.run_features import is_constant
from dse_evaluators.learned.runs_file import RunsFile

LEAST_DESIGNS = 20
"""Fewest different designs to learn from: a band of 90 % needs some residuals on either side."""

_EDITION = "1"
"""Edition of the method; part of the version of every learned evaluator."""

_ALMOST_NUMBERS = 0.8
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """Options of a learned evaluator, as a study states them."""

    metrics: Mapping[str, str]
    reads: tuple[str, ...] | None = None
    units: Mapping[str, str] | None = None
    group: str = ""
    monotone: Mapping[str, str] | None = None

    def digest(self, data: str) -> str:
        """Return a hash of the options, of the data and of scikit-learn's version."""
        facts = [
            _EDITION,
            data,
            version("scikit-learn"),
            sorted(self.metrics.items()),
            None if self.reads is None else sorted(self.reads),
            sorted((self.units or {}).items()),
            self.group,
            sorted((self.monotone or {}).items()),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def directions(self) -> dict[str, int]:
        """The direction of each monotone input: 1 rising, -1 falling."""
        known = {"rising": 1, "falling": -1}
        return {name: known[text] for name, text in (self.monotone or {}).items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet:
    """Training data of a regression: distinct designs, with the mean of each metric.

    Two sets are equal if their versions are. ``targets`` are NaN for designs without the metric.
    """

    version: str
    columns: tuple[InputColumn, ...]
    values: Mapping[str, Any]  # each (n,)
    targets: Mapping[str, Floats]  # each (n,)
    groups: Ints  # (n,)
    settings: FitSettings
    notes: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingSet) and other.version == self.version

    def __hash__(self) -> int:
        return hash(self.version)


def prepare_runs(runs: RunsFile, settings: FitSettings) -> TrainingSet:
    """Check and clean runs for a regression, and note what was changed.

    Args:
        runs: the runs.
        settings: the options; names of columns are checked.

    Raises:
        SpecError: a column is missing, has the wrong kind, or is the metric itself; too few
            designs; a metric is the same in all runs.
    """
    notes = list[str]()
    if runs.total > runs.size:
        notes.append(f"{runs.size:,} of {runs.total:,} runs are used, drawn by seed 0")
    for state, count in sorted(runs.left_out.items()):
        notes.append(f"{count} trials are left out: their state is {state}")
    targets = {name: _target(runs, name, unit) for name, unit in settings.metrics.items()}
    names = _input_names(runs, settings)
    found = {name: _input(runs, name) for name in names}
    for name, (column, values) in [*found.items()]:
        reason = _reason_to_leave_out(column, values, targets, runs)
        if reason and settings.reads is None:
            notes.append(reason)
            del found[name]
    notes += [*_notes_on_columns(found, runs), *_notes_on_order(found, targets, settings)]
    _check_inputs(runs, settings, [*found])
    groups = _groups(runs, settings.group)
    kept, place = _merge(found)
    merged = {name: _mean(values, place) for name, values in targets.items()}
    notes += _notes_on_repeats(targets, merged, place)
    for name, values in merged.items():
        _check_target(runs, name, values)
        missing = int(np.isnan(targets[name]).sum())
        if missing:
            notes.append(f"{missing} of {runs.size} runs have no {name}, and are not used for it")
    return TrainingSet(
        version=settings.digest(runs.digest),
        columns=tuple(column for column, _ in found.values()),
        values={name: values[kept] for name, (_, values) in found.items()},
        targets=merged,
        groups=groups[kept],
        settings=settings,
        notes=tuple(notes),
    )


def _target(runs: RunsFile, name: str, unit: str) -> Floats:
    """Return a metric of each run, (r,), in the stated unit; NaN where the cell is empty or NaN.

    Raises:
        SpecError: there is no such column, a cell is no finite number, or the units do not fit.
    """
    column = runs.find(name, "metrics")
    numbers = np.full(runs.size, np.nan)
    for row, value in enumerate(runs.columns[column]):
        if _is_absent(value):
            continue
        # A text in one cell makes texts of the numbers in the others.
        number = float(value) if isinstance(value, str) and _is_number(value) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or math.isinf(number):
            raise SpecError(
                f"{runs.locate(row)}: {name} is {value!r}, which is no finite number",
                hint=_mend_metric(name, str(value)),
                part=["metrics", name],
            )
        numbers[row] = number
    stated = runs.metric_units.get(column, unit)
    try:
        return numbers if stated == unit else numbers * converted(1.0, stated, unit)
    except SpecError as error:
        raise SpecError(
            f"{name}: {error.problem}",
            hint=f"{runs.path} states it in {stated}",
            part=["metrics", name],
        ) from error


def _mend_metric(name: str, text: str) -> str:
    """Return the mend of a metric's text: a number without its unit, or an empty cell."""
    number, _, unit = text.strip().partition(" ")
    if unit and _is_number(number):
        return f"write {number} in the cell, and the unit as {name}={unit}"
    return "leave the cell empty: runs without the metric are not used for it"


def _input_names(runs: RunsFile, settings: FitSettings) -> list[str]:
    """Return the columns that are inputs: those named, or all but metrics and groups.

    Raises:
        SpecError: a named column does not exist, or is a metric as well.
    """
    metrics = {runs.find(name, "metrics") for name in settings.metrics}
    if settings.reads is None:
        others = {*metrics, *runs.metric_units, settings.group}
        return sorted(name for name in runs.columns if name not in others)
    for name in settings.reads:
        if runs.find(name, "reads") in metrics:
            raise SpecError(f"{name!r} is a metric and an input", hint="take it out of one")
    return sorted(set(settings.reads))


def _input(runs: RunsFile, name: str) -> tuple[InputColumn, Any]:
    """Return an input's description and values.

    Raises:
        SpecError: a column of numbers has a few texts in it, or a number is not finite.
    """
    values = [None if _is_absent(value) else value for value in runs.columns[name]]
    texts = {value for value in values if isinstance(value, str)}
    odd = sorted(text for text in texts if not _is_number(text))
    if texts and odd and len(odd) <= (1 - _ALMOST_NUMBERS) * len(texts):
        raise SpecError(
            f"{runs.locate(values.index(odd[0]))}: {name} is {odd[0]!r}, and numbers in other runs",
            hint="leave the cell empty if the input is absent there",
        )
    if texts and not odd:
        values = [None if value is None else float(value) for value in values]
    for row, value in enumerate(values):
        if isinstance(value, float) and math.isinf(value):
            problem = f"{runs.locate(row)}: {name} is infinite"
            raise SpecError(problem, hint="fix or remove the run")
    return column_of(name, values)


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _reason_to_leave_out(
    column: InputColumn, values: Any, targets: Mapping[str, Floats], runs: RunsFile
) -> str:
    """Return why an input cannot be one: it is a metric in disguise, or differs in every run."""
    name = column.name
    if isinstance(column, TextColumn):
        many = len(column.words) > max(LEAST_DESIGNS, runs.size // 2)
        return f"{name} is left out: its text differs in most runs" if many else ""
    for metric, target in targets.items():
        if _is_copy(values, target):
            return (
                f"{name} is left out: it is {metric} itself, up to a factor and an offset; if it "
                f"is an input, list the inputs in reads"
            )
    return ""


def _notes_on_columns(
    found: Mapping[str, tuple[InputColumn, Any]], runs: RunsFile
) -> Iterator[str]:
    """Yield notes on inputs that are constant, or absent in some runs."""
    for name, (column, _) in found.items():
        if is_constant(column):
            yield f"{name} is the same in all runs: other values are extrapolated"
        elif column.may_be_absent:
            absent = sum(map(_is_absent, runs.columns[name]))
            yield f"{name} is absent in {absent} of {runs.size} runs, as one more value"


def _notes_on_order(
    found: Mapping[str, tuple[InputColumn, Any]],
    targets: Mapping[str, Floats],
    settings: FitSettings,
) -> list[str]:
    """Return notes on inputs that may be computed from a metric, such as its inverse.

    A single input may order the runs, too, and an input that the user lists is meant.
    """
    if settings.reads is not None or len(found) == 1:
        return []
    return [
        f"{name} orders all runs as {metric} does: if it is measured and not set, the stated "
        f"error is that of a copy; list the inputs in reads"
        for name, (column, values) in found.items()
        if not isinstance(column, TextColumn)
        for metric, target in targets.items()
        if _is_same_order(values, target)
    ]


def _is_same_order(values: Floats, target: Floats) -> bool:
    """Return whether a metric strictly rises or falls with an input, over all runs."""
    both = ~np.isnan(values) & ~np.isnan(target)
    if len(np.unique(values[both])) < LEAST_DESIGNS:
        return False
    pairs = np.unique(np.stack([values[both], target[both]], axis=1), axis=0)  # by the input
    if (np.diff(pairs[:, 0]) == 0).any():
        return False
    steps = np.diff(pairs[:, 1])
    return bool((steps > 0).all() or (steps < 0).all())


def _is_copy(values: Floats, target: Floats) -> bool:
    """Return whether an input is a metric times a factor plus an offset, in all runs."""
    both = ~np.isnan(values) & ~np.isnan(target)
    if len(np.unique(values[both])) < LEAST_DESIGNS or np.ptp(target[both]) == 0:
        return False
    correlation = np.corrcoef(values[both], target[both])[0, 1]
    return bool(1 - abs(correlation) < _SAME)


def _check_inputs(runs: RunsFile, settings: FitSettings, names: Sequence[str]) -> None:
    """Raise SpecError unless there are inputs, and monotone ones are among them."""
    if not names:
        raise SpecError(f"{runs.path} has no column that is an input", hint="reads: [...]")
    for name, text in (settings.monotone or {}).items():
        if name not in names:
            problem = f"monotone names {name!r}, which is not an input"
            raise SpecError(problem, hint=nearest(name, names), part=["monotone", name])
        if text not in ("rising", "falling"):
            problem = f"{name} cannot be monotone {text!r}"
            raise SpecError(problem, hint="write rising or falling", part=["monotone", name])


def _groups(runs: RunsFile, group: str) -> Ints:
    """Return the number of each run's group, (r,); without groups, each run is a group."""
    if not group:
        return np.arange(runs.size)
    column = runs.columns[runs.find(group, "group")]
    numbers = dict[Any, int]()
    found = np.array([numbers.setdefault(value, len(numbers)) for value in column])
    if len(numbers) < 2:
        raise SpecError(
            f"{group} is the same in all runs, so no group can be held out", part=["group"]
        )
    return found


def _merge(found: Mapping[str, tuple[InputColumn, Any]]) -> tuple[Ints, Ints]:
    """Return the first run of each distinct design, (n,), and the design of each run, (r,).

    A design that is in two groups stays in that of its first run.
    """
    columns = [np.nan_to_num(values, nan=math.inf).tolist() for _, values in found.values()]
    numbers, kept, place = dict[Any, int](), list[int](), list[int]()
    for row, key in enumerate(zip(*columns, strict=True)):
        number = numbers.setdefault(key, len(numbers))
        if number == len(kept):
            kept.append(row)
        place.append(number)
    return np.array(kept), np.array(place)


def _mean(values: Floats, place: Ints) -> Floats:
    """Return the mean of a metric over each design's runs, (n,); NaN if no run has the metric."""
    known = ~np.isnan(values)
    size = int(place.max()) + 1
    count = np.bincount(place[known], minlength=size)
    total = np.bincount(place[known], values[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _notes_on_repeats(
    targets: Mapping[str, Floats], merged: Mapping[str, Floats], place: Ints
) -> list[str]:
    repeats = np.bincount(place)
    if (repeats == 1).all():
        return []
    several = f"{int((repeats > 1).sum())} designs have several runs, whose mean is used"
    notes = list[str]()
    for name, values in targets.items():
        scale = np.abs(merged[name][place])
        apart = np.abs(values - merged[name][place]) / np.where(scale > 0, scale, 1.0)
        worst = float(np.nanmax(apart, initial=0.0))
        if worst > 0:
            notes.append(f"{several}: {name} of a run differs from it by up to {worst:.1%}")
    return notes or [several]


def _check_target(runs: RunsFile, name: str, values: Floats) -> None:
    """Raise SpecError unless enough designs have the metric, and it varies."""
    known = values[~np.isnan(values)]
    if len(known) < LEAST_DESIGNS:
        raise SpecError(
            f"{runs.path} has {len(known)} different designs with {name}: too few to learn from",
            hint=f"at least {LEAST_DESIGNS}; 'use: table' looks designs up",
        )
    if np.ptp(known) == 0:
        raise SpecError(
            f"{name} is {known[0]:g} in all runs of {runs.path}: nothing can be learned",
            hint="take it out of metrics",
        )
