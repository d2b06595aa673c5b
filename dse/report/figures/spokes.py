"""Axes of the parallel-coordinates figure: the position of each design, and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.objective import Objective
from dse.core.parameter import Choice, Integer, Parameter, Real
from dse.core.values import Floats, Value
from dse.report.answer import Answer
from dse.report.axes import is_log, shares
from dse.report.words import number_text, value_text

_MAX_RANKS = 9
_BELOW = -0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """Axis of a parallel-coordinates plot: the position of each design in [0, 1], and ticks."""

    title: str
    places: Floats  # (n,)
    ticks: tuple[tuple[float, str], ...]


def spokes(answer: Answer) -> list[Spoke]:
    """Return the parallel axes: varying parameters, then objectives with the best at the top.

    The more important a parameter, the nearer it is to the objectives. If there are too many
    parameters, only those that the report shows for each design have an axis.
    """
    rank = {name: -place for place, name in enumerate(answer.weighty)}
    told = [name for name in answer.varying if name in set(answer.told)]
    names = sorted(told, key=lambda name: rank.get(name, -len(rank)))
    by_name = answer.problem.space.by_name
    parameters = [
        _parameter_spoke(by_name[name], [trial.design.get(name) for trial in answer.trials])
        for name in names
    ]
    columns = zip(answer.problem.objectives, answer.values.T, strict=True)
    return parameters + [_objective_spoke(objective, column) for objective, column in columns]


def _parameter_spoke(parameter: Parameter, values: Sequence[Value | None]) -> Spoke:
    present = {value for value in values if value is not None}
    if isinstance(parameter, Choice):
        return _rank_values(parameter, values, [v for v in parameter.values if v in present])
    if len(present) == 1 or (not isinstance(parameter, Real) and len(present) <= _MAX_RANKS):
        return _rank_values(parameter, values, sorted(present, key=float))
    return _continuous(parameter, values)


def _rank_values(
    parameter: Parameter, values: Sequence[Value | None], order: Sequence[Value]
) -> Spoke:
    """Place the occurring values at equal distances, with inactive ones lowest."""
    ordered: list[Value | None] = [None, *order] if None in values else [*order]
    place = {value: rank / max(len(ordered) - 1, 1) for rank, value in enumerate(ordered)}
    ticked = ordered[:: -(-len(ordered) // (2 * _MAX_RANKS))]
    return Spoke(
        title=parameter.name,
        places=np.array([place[value] for value in values]),
        ticks=tuple((place[value], value_text(value, parameter.unit)) for value in ticked),
    )


def _continuous(parameter: Parameter, values: Sequence[Value | None]) -> Spoke:
    """Place numbers on the parameter's scale between the occurring ends, inactive ones below."""
    numbers = np.array([np.nan if value is None else float(value) for value in values])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    log = _has_log_scale(parameter, numbers)
    along = shares(numbers, low, high, log=log)
    middle = float(np.sqrt(low * high)) if log else (low + high) / 2
    ends = ((0.0, low), (0.5, middle), (1.0, high))
    ticks = [(place, number_text(value, parameter.unit)) for place, value in ends]
    if np.isnan(along).any():
        ticks.append((_BELOW, value_text(None)))
    places = np.where(np.isnan(along), _BELOW, along)
    return Spoke(title=parameter.name, places=places, ticks=tuple(ticks))


def _has_log_scale(parameter: Parameter, numbers: Floats) -> bool:
    """Return whether to use a log scale; a list of numbers has no scale, so its range decides."""
    if isinstance(parameter, Real | Integer):
        return parameter.scale == "log"
    return is_log(numbers)


def _objective_spoke(
    objective: Objective,
    values: Floats,  # (n,)
) -> Spoke:
    best_first = 1.0 if objective.goal == "maximize" else -1.0
    worst, best = np.min(best_first * values), np.max(best_first * values)
    span = best - worst
    places = (best_first * values - worst) / span if span > 0 else np.ones(len(values))
    ends = [(1.0, best)] if span == 0 else [(0.0, worst), (0.5, (worst + best) / 2), (1.0, best)]
    ticks = [(at, number_text(float(best_first * end), objective.unit)) for at, end in ends]
    return Spoke(title=objective.name, places=places, ticks=tuple(ticks))
