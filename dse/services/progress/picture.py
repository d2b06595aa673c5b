"""Plot of the panel: the front among all feasible trials, or the best value over the trials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from dse.core.objective import Objective
from dse.core.values import Floats
from dse.report.axes import Axis, PlotAxis, is_log, plot_axis
from dse.services.progress.text_scatter import FAINT, Scatter, legend
from dse.services.progress.watch import ProgressTracker

FloatOrFloats = TypeVar("FloatOrFloats", float, Floats)

_ALL_FAILED = "every design has failed so far"
_NONE_WITHIN = "no design is within all limits yet"
_FINE, _STEEP = 2048, 64
"""Number of points that draw the line horizontally, and each of its vertical steps."""


def picture(watch: ProgressTracker, rows: int, *, ascii_only: bool) -> Iterator[RenderableType]:
    """Yield the lines of a scatter plot of the front, ``rows`` lines high, and of its legend.

    Without feasible trials, it yields only a line of text that states so.
    """
    if not len(watch.front):
        all_failed = watch.failed == watch.ended > 0
        yield Text(_ALL_FAILED if all_failed else _NONE_WITHIN, style=FAINT)
    elif len(watch.problem.objectives) == 1:
        yield _descent(watch, rows)
        yield legend(bright="the best so far", faint="other answers", ascii_only=ascii_only)
    elif len(watch.problem.objectives) > 1:
        drawn = _front(watch, rows)
        yield drawn
        many = len(watch.problem.objectives)
        notes = [f"objectives 1 and 2 of {many}"] if many > 2 else []
        notes += ["some outside"] if drawn.hidden else []
        faint = "; ".join(["other answers", *notes])
        yield legend(bright="the front", faint=faint, ascii_only=ascii_only)


def _front(watch: ProgressTracker, rows: int) -> Scatter:
    """Plot the front over the other feasible trials, in the plane of the first two objectives."""
    pair = watch.problem.objectives[:2]
    x, y = (
        axis_of(objective, watch.front[:, place], watch.cloud[:, place])
        for place, objective in enumerate(pair)
    )
    signs = np.array([restore_sign(objective, 1.0) for objective in pair])
    return Scatter(
        x=x, y=y, faint=watch.cloud * signs, bright=watch.front[:, :2] * signs, rows=rows
    )


def _descent(watch: ProgressTracker, rows: int) -> Scatter:
    """Plot the objective over the trial count, with the best value so far as a line."""
    (objective,) = watch.problem.objectives
    when = PlotAxis(name="trials", low=1, high=max(watch.ended, 2))
    sign = restore_sign(objective, 1.0)
    return Scatter(
        x=when,
        y=axis_of(objective, watch.steps[:, 1], watch.cloud[:, 1]),
        faint=watch.cloud * (1, sign),
        bright=_sample_step_function(watch.steps, watch.ended) * (1, sign),
        rows=rows,
        line=True,
    )


def axis_of(
    objective: Objective,
    front: Floats,  # (k,), losses
    answers: Floats,  # (n,), losses of feasible trials
) -> PlotAxis:
    """Return the plot axis of an objective, in its unit and sign, over the range of its values."""
    best, every = (
        restore_sign(objective, losses) for losses in (front, np.concatenate([front, answers]))
    )
    aim = "less is better" if objective.goal == "minimize" else "more is better"
    axis = Axis(name=objective.name, unit=objective.unit, log=is_log(every))
    return plot_axis(axis, best, every, aim=aim, margin=0.0)


def restore_sign(objective: Objective, losses: FloatOrFloats) -> FloatOrFloats:
    """Return losses with the sign of their objective, as users read them."""
    return losses if objective.goal == "minimize" else -losses


def _sample_step_function(
    steps: Floats,  # (s, 2): trial count at which the best loss fell, and its new value
    ended: int,
) -> Floats:
    """Return closely spaced points along the step function of the best loss so far, (n, 2).

    Drawn as dots, they form a line.
    """
    along = np.linspace(steps[0, 0], max(ended, steps[0, 0]), _FINE)
    level = steps[np.searchsorted(steps[:, 0], along, side="right") - 1, 1]
    fell = np.flatnonzero(np.diff(level))
    drops = np.linspace(level[fell], level[fell + 1], _STEEP)
    edges = np.broadcast_to(along[fell + 1], drops.shape)
    down = np.column_stack([edges.ravel(), drops.ravel()])
    return np.vstack([np.column_stack([along, level]), down])
