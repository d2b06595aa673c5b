"""The evaluator ``learned``: regression over measured runs, with its held-out error and a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, SpecError, nearest
from dse.protocols import HeldOutError, LearnedMetric, LearningResult, Regression
from dse_evaluators.generic.options import metrics_of, texts_of, units_of
from dse_evaluators.learned.held_out_report import HeldOutReport, report_held_out
from dse_evaluators.learned.kept_model import SUFFIX, read_model, write_model
from dse_evaluators.learned.metric_model import MetricModel, fit_metric
from dse_evaluators.learned.permutation_importance import measure_importance
from dse_evaluators.learned.run_columns import NumberColumn, find_outside, number_or_infinity
from dse_evaluators.learned.run_features import Encoder, is_constant
from dse_evaluators.learned.runs_file import RunsFile, read_runs
from dse_evaluators.learned.study_regression import STANDARD_ERRORS, fit_study_metric
from dse_evaluators.learned.training_set import FitSettings, TrainingSet, prepare_runs

_EXTRAPOLATED = "extrapolated"

_OPTIONS = frozenset(("metrics", "reads", "units", "group", "monotone"))


class Learned:
    """Regression that replaces a slow simulator or program, fitted to a table of its runs.

    For each metric, gradient boosting, extra trees, a Gaussian process, ridge regression and the
    mean of the four are compared by cross-validation, and the best is fitted to all runs.
    ``METRIC_low`` and ``METRIC_high`` are the ends of a conformal 90 % band. ``extrapolated`` is
    yes for a design with a value outside of the runs' range, or with a text that no run has.
    ``dse check`` prints the error on held-out runs.

    Args:
        file: a table (``.csv``, ``.csv.gz``, ``.tsv``, ``.parquet``), an exported study
            (``.jsonl``), a folder of such files, or a file of ``dse learn`` (``.dse``), which
            states all other options.
        metrics: the unit of each column that is a metric.
        reads: the columns that are inputs; by default all columns but metrics and the group.
        units: the unit of each input's column; by default the coherent SI unit.
        group: a column of runs that belong together, such as the network or the device: a group is
            held out as a whole, so that the stated error is that on a new group.
        monotone: inputs in which all metrics are ``rising`` or ``falling``.

    Limits:
        A new design is assumed to be like the runs: the error and the band hold for designs drawn
        as the runs were, not where a search drives to a corner, and not where ``extrapolated`` is
        yes. At most 20,000 runs are used.

    Error:
        Stated for each file of runs: see ``dse check``, and ``benchmarks/learned.py``.

    Source:
        Vovk: Cross-conformal predictors, 2015; Lei et al.: Distribution-Free Predictive Inference
        for Regression, 2018.

    Example:
        options: {file: runs.csv, metrics: {latency: ms}}
        parameters: {threads: [1, 2, 4, 8], block: [16, 32, 64], format: [int8, fp16]}
        objectives: {latency: minimize, extrapolated: minimize}
        files:
          runs.csv: |
            threads,block,format,latency
            1,16,fp16,9.1
            1,32,fp16,8.0
            1,64,fp16,7.6
            2,16,fp16,5.2
            2,32,fp16,4.7
            2,64,fp16,4.5
            4,16,fp16,3.4
            4,32,fp16,3.1
            4,64,fp16,3.0
            8,16,fp16,2.6
            8,32,fp16,2.3
            8,64,fp16,2.2
            1,16,int8,5.0
            1,32,int8,4.6
            1,64,int8,4.4
            2,16,int8,3.0
            2,32,int8,2.7
            2,64,int8,2.6
            4,16,int8,2.2
            4,32,int8,1.9
            4,64,int8,1.8
            8,16,int8,1.7
            8,32,int8,1.5
            8,64,int8,1.4
    """

    kind: Kind = "modelled"
    pure = True

    def __init__(
        self,
        *,
        file: str,
        metrics: Mapping[str, str] | None = None,
        reads: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        group: str | None = None,
        monotone: Mapping[str, str] | None = None,
    ) -> None:
        given = {"metrics": metrics, "reads": reads, "units": units}
        given |= {"group": group, "monotone": monotone}
        given = {name: value for name, value in given.items() if value is not None}
        runs, settings = _open(Path(file), given)
        declared = metrics_of(settings.metrics)
        self._set = prepare_runs(runs, settings)
        self._source = runs.path.name
        names = frozenset(one.name for one in self._set.columns)
        self.optional = frozenset(
            one.name for one in self._set.columns if one.may_be_absent or is_constant(one)
        )
        self.reads = names - self.optional
        self.units = {**runs.input_units, **units_of(settings.units, names)}
        self.units = {name: unit for name, unit in self.units.items() if name in names and unit}
        self.provides = _provided(declared)
        self.version = self._set.version

    @property
    def notes(self) -> Sequence[str]:
        """The held-out error of each metric, and how the runs were cleaned."""
        return (*(one.sentence for one in self.reports), *self.cleaning_notes)

    @property
    def cleaning_notes(self) -> Sequence[str]:
        """Notes on how the runs were cleaned; computed without a fit."""
        return self._set.notes

    @property
    def reports(self) -> tuple[HeldOutReport, ...]:
        """The held-out error of each metric; computed by refitting, so that it takes seconds."""
        return _report(self._set)

    @staticmethod
    def learn(file: Path, options: Mapping[str, Any]) -> LearningResult:
        """Fit the evaluator to the runs of a file, and return the file to keep.

        Raises:
            DseError: the runs cannot be read or learned from, or an option is wrong.
        """
        for name in options.keys() - _OPTIONS:
            hint = nearest(name, _OPTIONS)
            raise PluginError(f"there is no option {name!r}", hint=hint, part=[name])
        if file.suffix == SUFFIX:
            raise SpecError(f"{file} is kept already", hint="name the runs it was learned from")
        stated = read_runs(str(file))
        units = {
            name: unit or stated.metric_units.get(stated.find(name, "metrics"), "")
            for name, unit in options.get("metrics", {}).items()
        }
        runs, settings = _open(file, {**options, "metrics": units})
        prepared = prepare_runs(runs, settings)
        encoder, _, _ = _encode(prepared)
        models = _fit(prepared).models
        metrics = tuple(
            LearnedMetric(
                **asdict(one),
                unit=units[one.metric],
                importances=measure_importance(prepared, encoder, models[one.metric], one.metric),
            )
            for one in _report(prepared)
        )
        text = write_model(runs, settings)
        return LearningResult(text=text, metrics=metrics, notes=prepared.notes)

    @staticmethod
    def regress(batch: Batch, values: Floats) -> Regression:
        """Fit the regression of one metric to measured designs, as an optimizer does."""
        return fit_study_metric(batch, values)

    @property
    def held_out_errors(self) -> Sequence[HeldOutError]:
        return [
            HeldOutError(
                name=f"{one.metric}: {one.model}",
                fitted=one.runs,
                held_out=one.held_out,
                mean=one.mape,
                largest=one.largest,
                source=f"{self._source}; rank correlation {one.spearman:.3f}, the 90 % band covers "
                f"{one.coverage:.0%}",
            )
            for one in self.reports
        ]

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        for column in self._set.columns:
            if not isinstance(column, NumberColumn):
                continue
            for value in values.get(column.name, ()):
                if number_or_infinity(value) == np.inf:
                    raise SpecError(
                        f"{column.name} may be {value!r}, and is a number in all runs of "
                        f"{self._source}",
                        hint="add runs with this value, or take it out of the space",
                    )

    def evaluate(self, batch: Batch) -> Metrics:
        fitted = _fit(self._set)
        among = batch.distinct(one.name for one in self._set.columns)
        found = fitted.predict(batch.take(among.rows) if among.place is not None else batch)
        return Metrics(
            columns={name: among.spread(values) for name, values in found.columns.items()},
            spread={name: among.spread(values) for name, values in found.spread.items()},
        )


def _open(path: Path, given: Mapping[str, Any]) -> tuple[RunsFile, FitSettings]:
    """Return the runs of a file and the options, which a kept evaluator states itself.

    Raises:
        PluginError: an option has the wrong form, or a kept evaluator is given options.
        SpecError: the file cannot be read.
    """
    if path.suffix == SUFFIX:
        for name in given:
            problem = f"{name} has no effect: {path} states it"
            raise PluginError(problem, hint=f"take it out, or learn anew with {name}", part=[name])
        return read_model(path)
    monotone = given.get("monotone")
    if monotone is not None and not isinstance(monotone, Mapping):
        raise PluginError(f"monotone is {monotone!r}", hint="write monotone: {threads: falling}")
    declared = metrics_of(given.get("metrics"))
    reads = given.get("reads")
    return read_runs(str(path)), FitSettings(
        metrics={name: metric.unit for name, metric in declared.items()},
        reads=None if reads is None else texts_of("reads", reads),
        units=given.get("units"),
        group=given.get("group", ""),
        monotone=monotone,
    )


@dataclass(frozen=True, kw_only=True)
class _Fitted:
    """Models of all metrics over one set of features."""

    encoder: Encoder
    runs: TrainingSet
    models: Mapping[str, MetricModel]

    def predict(self, batch: Batch) -> Metrics:
        values = {one.name: one.read(batch) for one in self.runs.columns}
        features = self.encoder.encode(values)  # (n, f)
        columns, spread = dict[str, Floats](), dict[str, Floats]()
        for name, model in self.models.items():
            columns[name], low, high = model.predict(features)
            columns[f"{name}_low"], columns[f"{name}_high"] = low, high
            spread[name] = (high - low) / (2 * STANDARD_ERRORS)
        columns[_EXTRAPOLATED] = find_outside(self.runs.columns, values).astype(np.float64)
        return Metrics(columns=columns, spread=spread)


def _provided(declared: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return all metrics: the learned ones, the ends of their bands, and ``extrapolated``.

    Raises:
        PluginError: two of them have the same name.
    """
    found = dict(declared)
    ends = [
        (f"{name}_{end}", one.unit) for name, one in declared.items() for end in ("low", "high")
    ]
    for name, unit in [*ends, (_EXTRAPOLATED, "")]:
        if name in declared:
            raise PluginError(f"{name!r} is a metric that the evaluator adds", hint="rename yours")
        words = ("no", "yes") if name == _EXTRAPOLATED else ()
        found[name] = Metric(name=name, unit=unit, words=words)
    return found


@lru_cache(maxsize=8)
def _fit(runs: TrainingSet) -> _Fitted:
    """Fit the models of all metrics; the same data and options are fitted once in a process."""
    encoder, features, directions = _encode(runs)
    models = dict[str, MetricModel]()
    for name, target in runs.targets.items():
        known = ~np.isnan(target)
        models[name] = fit_metric(features[known], target[known], runs.groups[known], directions)
    return _Fitted(encoder=encoder, runs=runs, models=models)


@lru_cache(maxsize=8)
def _report(runs: TrainingSet) -> tuple[HeldOutReport, ...]:
    """Return the held-out error of each metric."""
    _, features, directions = _encode(runs)
    found = list[HeldOutReport]()
    for name, target in runs.targets.items():
        known = ~np.isnan(target)
        found.append(
            report_held_out(
                name,
                features[known],
                target[known],
                runs.groups[known],
                directions,
                model=_fit(runs).models[name].regressor.name,
                grouped_by=runs.settings.group,
            )
        )
    return tuple(found)


def _encode(runs: TrainingSet) -> tuple[Encoder, Floats, list[int]]:
    encoder = Encoder.of(runs.columns)
    return encoder, encoder.encode(runs.values), encoder.directions(runs.settings.directions)
