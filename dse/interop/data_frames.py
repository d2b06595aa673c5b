"""Export of a study's trials as a pandas or polars data frame, with one row per trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Value
from dse.errors import PluginError


class TabularStudy(Protocol):
    """Interface that a study needs for conversion to a data frame: name, problem, trials."""

    @property
    def name(self) -> str:
        """Name of the study."""
        ...

    @property
    def problem(self) -> Problem:
        """Problem that the study solves."""
        ...

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials of the study, by number."""
        ...


def to_pandas(study: TabularStudy) -> Any:  # pandas is an extra
    """Return the trials as a pandas frame; ``frame.attrs["units"]`` has the column units.

    Raises:
        PluginError: pandas is not installed.
    """
    try:
        import pandas as pd  # type: ignore[import-untyped]  # it has no stubs of its own
    except ImportError as error:
        raise _missing("pandas") from error
    trials = study.trials
    frame = pd.DataFrame(_columns(study.problem, trials))
    frame.attrs = {"study": study.name, "units": units(study)}
    return frame


def to_polars(study: TabularStudy) -> Any:  # polars is an extra
    """Return the trials as a polars frame; :func:`units` gives the unit of each column.

    Raises:
        PluginError: polars is not installed.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise _missing("polars") from error
    columns = _columns(study.problem, study.trials)
    series = [_series(pl, name, cells) for name, cells in columns.items()]
    return pl.DataFrame(series)


def units(study: TabularStudy) -> dict[str, str]:
    """Return the unit of each data-frame column that has one."""
    problem = study.problem
    found = {"cost_s": "s"}
    found |= {p.name: p.unit for p in problem.space.parameters}
    for name, metric in problem.metrics.items():
        found |= {name: metric.unit, f"{name}.spread": metric.unit}
    found |= {o.text: o.unit for o in problem.objectives if o.text not in problem.metrics}
    return {name: unit for name, unit in found.items() if unit}


def _columns(problem: Problem, trials: Sequence[Trial]) -> Mapping[str, Sequence[Value | None]]:
    metrics = sorted(problem.metrics)
    spreads = [name for name in metrics if any(name in trial.spread for trial in trials)]
    return {
        "trial": [trial.number for trial in trials],
        "state": [trial.state.value for trial in trials],
        "feasible": problem.feasible(trials).tolist(),
        "fault": [trial.failure.kind if trial.failure else None for trial in trials],
        "cost_s": [trial.cost_s for trial in trials],
        **{p.name: [t.design.get(p.name) for t in trials] for p in problem.space.parameters},
        **{name: [trial.metrics.get(name) for trial in trials] for name in metrics},
        **{f"{name}.spread": [trial.spread.get(name) for trial in trials] for name in spreads},
        **_objectives(problem, trials),
    }


def _objectives(problem: Problem, trials: Sequence[Trial]) -> dict[str, list[float | None]]:
    """Return the values of each objective that combines metrics, keyed by its expression.

    An objective that is a single metric has a column already. Values that are not finite are
    ``None``.
    """
    columns = problem.columns(trials)
    objective_values = {
        o.text: o.values(columns, len(trials)).tolist()
        for o in problem.objectives
        if o.text not in problem.metrics
    }
    return {
        text: [v if np.isfinite(v) else None for v in cells]
        for text, cells in objective_values.items()
    }


_TEXTS = ("state", "fault")
"""Columns that have a text type even if empty, so that frames of two studies can be joined."""


def _series(pl: Any, name: str, cells: Sequence[Value | None]) -> Any:
    kinds = {type(cell) for cell in cells if cell is not None}
    if not kinds:
        return pl.Series(name, cells, dtype=pl.String if name in _TEXTS else pl.Float64)
    if len(kinds) > 1 and kinds != {int, float}:
        return pl.Series(name, [None if cell is None else str(cell) for cell in cells])
    if kinds == {int, float}:
        return pl.Series(name, cells, dtype=pl.Float64, strict=False)
    return pl.Series(name, cells)


def _missing(library: str) -> PluginError:
    return PluginError(
        f"{library} is not installed", hint="it comes with: pip install 'dse-engine[frames]'"
    )
