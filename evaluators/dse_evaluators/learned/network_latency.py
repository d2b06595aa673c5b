"""The evaluator ``learned-networks``: a time or an energy of networks, from other networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Ints, Mask
from dse.errors import PluginError, SpecError
from dse.protocols import HeldOutError
from dse_evaluators.generic.options import metrics_of
from dse_evaluators.learned.held_out_report import HeldOutReport, judge
from dse_evaluators.learned.metric_model import conformal_quantile, folds_of
from dse_evaluators.learned.operator_features import features_of
from dse_evaluators.learned.operator_sum import fit_operator_sum
from dse_evaluators.learned.runs_file import RunsFile, read_runs
from dse_evaluators.learned.training_set import LEAST_DESIGNS, FitSettings

_STANDARD_ERRORS = 1.645
"""Half-width of a 90 % interval of a normal distribution, in standard errors."""

_COLUMN = "network"
_EXTRAPOLATED = "extrapolated"


class LearnedNetworks:
    """Time or energy of a network that was not measured, from its graph and measured networks.

    The metric is a sum over operators: each kind of operator has a time for each operator, each
    multiply-accumulate, each element of activations and each stored element, fitted to the table.
    ``METRIC_low`` and ``METRIC_high`` are the ends of a conformal 90 % band. ``extrapolated`` is
    yes for a network with more work of a kind than any in the table.

    Reads ``network``: an ONNX file such as ``net.onnx``, or ``onnx:net.onnx,batch=1`` with sizes of
    open axes, or a workload such as ``resnet18:images=1``.

    Args:
        file: a table with a column ``network``, as above, and a column for each metric.
        metrics: the unit of each metric; all its values are above 0.
        group: a column of networks that belong together, such as the family: a family is held out
            as a whole, so that the stated error is that of a new family.

    Limits:
        One device, one runtime and one set of its options for each table. A layer whose speed
        depends on its shape, such as a narrow depthwise convolution, has the mean speed of its
        kind. A workload that is no ONNX file has its convolutions and matrix products only; do not
        mix both forms in a table.

    Error:
        9.5 % median on 96 networks of eight families on one CPU core, each family predicted from
        60 networks of the others, rank correlation .986; 37 % on the worst family, with depthwise
        convolutions (``benchmarks/learned_networks.py``).

    Source:
        Lawson, Hanson: Solving Least Squares Problems, 1974; the sum over kernels as in Zhang et
        al.: nn-Meter, MobiSys 2021, without its detection of fused kernels.

    Example:
        options: {file: networks.csv, metrics: {latency: ms}}
        parameters: {network: [resnet18, resnet50, vgg16]}
        objectives: {latency: minimize, extrapolated: minimize}
        files:
          networks.csv: |
            network,latency
            resnet18,41.3
            resnet50,80
            vgg16,372
            alexnet,39.1
            mobilenetv1,13.1
            mobilenetv2,8.02
            vit-b16,402
            bert-base:tokens=16,64
            bert-base:tokens=32,87.8
            bert-base:tokens=64,140
            bert-base:tokens=128,254
            bert-base:tokens=256,495
            bert-base:tokens=512,934
            gpt2:prefill=16,77.7
            gpt2:prefill=64,155
            gpt2:prefill=256,499
            gpt2:prefill=1024,2.14e+03
            paradnn-fc:nodes=256,0.514
            paradnn-fc:nodes=512,1.35
            paradnn-fc:nodes=1024,4.25
            paradnn-fc:nodes=2048,14.3
    """

    kind: Kind = "modelled"
    pure = True
    reads = frozenset((_COLUMN,))
    optional = frozenset[str]()
    units: Mapping[str, str] = {}

    def __init__(self, *, file: str, metrics: Mapping[str, str], group: str = "") -> None:
        declared = metrics_of(metrics)
        runs = read_runs(file)
        settings = FitSettings(
            metrics={one.name: one.unit for one in declared.values()}, group=group
        )
        self._source = runs.path.name
        self._table = _read_networks(runs, settings)
        self.provides = _provided(declared)
        self.version = self._table.version

    @property
    def notes(self) -> Sequence[str]:
        """The held-out error of each metric."""
        return tuple(one.sentence for one in _report(self._table))

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
            for one in _report(self._table)
        ]

    def evaluate(self, batch: Batch) -> Metrics:
        among = batch.distinct(self.reads)
        rows = batch.take(among.rows) if among.place is not None else batch
        work = np.stack([features_of(str(one)) for one in rows[_COLUMN].tolist()])  # (n, f)
        columns, spread = dict[str, Floats](), dict[str, Floats]()
        for name, one in _fit(self._table).items():
            middle = work @ one.coefficients
            low, high = middle * np.exp(-one.half_width), middle * np.exp(one.half_width)
            columns |= {name: middle, f"{name}_low": low, f"{name}_high": high}
            spread[name] = (high - low) / (2 * _STANDARD_ERRORS)
        columns[_EXTRAPOLATED] = (work > self._table.work.max(axis=0)).any(axis=1).astype(float)
        return Metrics(
            columns={name: among.spread(values) for name, values in columns.items()},
            spread={name: among.spread(values) for name, values in spread.items()},
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _NetworkTable:
    """Measured networks; two tables are equal if they have the same version."""

    version: str
    work: Floats  # (n, f)
    targets: Mapping[str, Floats]  # each (n,)
    groups: Ints  # (n,)
    group: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NetworkTable) and other.version == self.version

    def __hash__(self) -> int:
        return hash(self.version)


@dataclass(frozen=True, kw_only=True)
class _FittedSum:
    coefficients: Floats  # (f,)
    half_width: float  # of the band, of the logarithm


def _read_networks(runs: RunsFile, settings: FitSettings) -> _NetworkTable:
    """Return the work and the metrics of the networks of a table.

    Raises:
        SpecError: a column is missing, a value is no number above 0, or there are too few networks.
    """
    names = runs.columns[runs.find(_COLUMN, "the table of networks")]
    missing = [row for row, one in enumerate(names) if one is None or not str(one).strip()]
    if missing:
        raise SpecError(f"{runs.locate(missing[0])}: there is no network", hint="name an ONNX file")
    if len(set(names)) < LEAST_DESIGNS:
        raise SpecError(
            f"{runs.path} has {len(set(names))} different networks: too few to learn from",
            hint=f"measure at least {LEAST_DESIGNS}",
        )
    labels = runs.columns[runs.find(settings.group, "group")] if settings.group else names
    _, groups = np.unique([str(one) for one in labels], return_inverse=True)
    if groups.max() == 0:
        raise SpecError(f"{settings.group} is the same in all runs", part=["group"])
    work = np.stack([features_of(_found_beside(runs.path, str(one))) for one in names])
    targets = {one: _positive(runs, one) for one in settings.metrics}
    content = f"{runs.digest} {work.tolist()}"
    return _NetworkTable(
        version=settings.digest(content),
        work=work,
        targets=targets,
        groups=groups,
        group=settings.group,
    )


def _found_beside(table: Path, network: str) -> str:
    """Return an ONNX file's path in the table's folder if it is there, else ``network`` itself."""
    beside = table.parent / network
    return str(beside) if network.endswith(".onnx") and beside.is_file() else network


def _positive(runs: RunsFile, name: str) -> Floats:
    values = runs.columns[runs.find(name, "metrics")]
    for row, value in enumerate(values):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and 0 < value < np.inf):
            problem = f"{runs.locate(row)}: {name} is {value!r}, which is no number above 0"
            raise SpecError(problem, part=["metrics", name])
    return np.array(values, dtype=np.float64)


def _provided(declared: Mapping[str, Metric]) -> dict[str, Metric]:
    found = dict(declared)
    for name, one in declared.items():
        for end in ("low", "high"):
            found[f"{name}_{end}"] = Metric(name=f"{name}_{end}", unit=one.unit)
    if len(found) != 3 * len(declared) or _EXTRAPOLATED in found:
        raise PluginError("a metric has a name that the evaluator adds", hint="rename yours")
    found[_EXTRAPOLATED] = Metric(name=_EXTRAPOLATED, unit="", words=("no", "yes"))
    return found


def _predict_others(work: Floats, target: Floats, groups: Ints) -> Floats:
    """Return the prediction of each network by fits without its group, (n,)."""
    found = np.zeros(len(target))
    for out in folds_of(groups, count=10):
        found[out] = fit_operator_sum(work[~out], target[~out]).predict(work[out])
    return np.maximum(found, 1e-3 * target.min())


@lru_cache(maxsize=8)
def _fit(table: _NetworkTable) -> dict[str, _FittedSum]:
    return {
        name: _fit_sum(table.work, target, table.groups) for name, target in table.targets.items()
    }


def _fit_sum(work: Floats, target: Floats, groups: Ints) -> _FittedSum:
    residuals = np.abs(np.log(_predict_others(work, target, groups) / target))
    return _FittedSum(
        coefficients=fit_operator_sum(work, target).coefficients,
        half_width=conformal_quantile(residuals),
    )


@lru_cache(maxsize=8)
def _report(table: _NetworkTable) -> tuple[HeldOutReport, ...]:
    """Return the held-out error of each metric; a fold's band is computed from other folds."""
    found = list[HeldOutReport]()
    for name, target in table.targets.items():
        middle, low, high = np.zeros((3, len(target)))
        out: Mask
        for out in folds_of(table.groups):
            fitted = _fit_sum(table.work[~out], target[~out], table.groups[~out])
            middle[out] = table.work[out] @ fitted.coefficients
            low[out] = middle[out] * np.exp(-fitted.half_width)
            high[out] = middle[out] * np.exp(fitted.half_width)
        found.append(
            judge(
                name,
                target,
                middle,
                (low, high),
                runs=len(target),
                model="sum over operators",
                grouped_by=table.group,
            )
        )
    return tuple(found)
