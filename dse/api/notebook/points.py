"""Data of the scatter plot: the front over other trials, or one objective over the trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.trial import State
from dse.core.trials import Trials
from dse.core.values import Floats
from dse.report.axes import PlotAxis, axis_of, plot_axis
from dse.report.text.space_words import design_text, entries

MOST_LABELLED = 200
"""Maximum size of a front whose points have labels."""

_MOST_NAMES = 12
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points of the scatter plot: best and other designs, in the units of its two axes.

    ``labels`` holds a text for each best point, or is empty. ``line`` holds the corners of the step
    line through the best points.
    """

    x: PlotAxis
    y: PlotAxis
    best: Floats  # (k, 2)
    others: Floats  # (n, 2)
    outside: Floats  # (o, 2): beyond a limit
    line: Floats  # (v, 2)
    knee: int | None = None
    labels: tuple[str, ...] = ()


def points_of(front: ParetoSet, trials: Trials) -> Points | None:
    """Return the plotted points of a study's finished trials, in the order of completion.

    ``None`` if no trial has a finite value for each of the first two objectives.
    """
    problem = front.problem
    losses, answers = problem.judged(trials)
    if not losses.shape[1]:
        return None
    done = trials.are(State.DONE) & np.isfinite(losses[:, :2]).all(axis=1)
    if losses.shape[1] == 1:
        when = np.column_stack([np.arange(1, len(trials) + 1), losses[:, 0]])
        return descent(
            problem.objectives[0], steps_of(when[answers]), when[answers], when[done & ~answers]
        )
    knee = None if front.knee is None or len(front.trials) < 3 else front.trials.index(front.knee)
    return plane(
        problem.objectives,
        front.losses,
        losses[answers],
        losses[done & ~answers],
        knee=knee,
        labels=labels_of(front),
    )


def plane(
    objectives: Sequence[Objective],
    best: Floats,  # (k, m), losses of the front, m at least two
    others: Floats,  # (n, at least 2), losses of the answers
    outside: Floats,  # (o, at least 2), losses
    *,
    knee: int | None = None,
    labels: tuple[str, ...] = (),
) -> Points | None:
    """Return the trials as points over the first two objectives; ``None`` if there are none."""
    parts = [one[:, :2] * _signs(objectives[:2]) for one in (best, others, outside)]
    if not sum(map(len, parts)):
        return None
    x, y = (_extent(one, [p[:, at] for p in parts]) for at, one in enumerate(objectives[:2]))
    factors = (x.factor, y.factor)
    best, others, outside = (part * factors for part in parts)
    return Points(
        x=x,
        y=y,
        best=best,
        others=others,
        outside=outside,
        line=best if len(objectives) == 2 else best[:0],
        knee=knee,
        labels=labels,
    )


def descent(
    objective: Objective,
    steps: Floats,  # (s, 2): after how many trials the loss fell, and how low
    others: Floats,  # (n, 2): after how many trials, and the loss
    outside: Floats,  # (o, 2)
) -> Points | None:
    """Return one objective against the trial number, with the best value so far as a step line."""
    signs = np.array([1.0, *_signs([objective])])
    best, others, outside = (one * signs for one in (steps, others, outside))
    every = np.concatenate([best, others, outside])
    if not len(every):
        return None
    y = _extent(objective, [best[:, 1], others[:, 1], outside[:, 1]])
    ended = float(every[:, 0].max())
    x = PlotAxis(name="trials", low=0.0, high=ended)
    factors = (1.0, y.factor)
    best, others, outside = (one * factors for one in (best, others, outside))
    line = np.vstack([best, [(ended, low) for low in best[-1:, 1]]]) if len(best) else best
    return Points(x=x, y=y, best=best, others=others, outside=outside, line=line)


def steps_of(
    when: Floats,  # (n, 2): after how many trials, and the loss
) -> Floats:
    """Return the rows (number of trials, loss) that lower the lowest loss so far, (s, 2)."""
    if not len(when):
        return when
    lowest = np.minimum.accumulate(when[:, 1])
    return np.asarray(when[np.diff(lowest, prepend=np.inf) < 0])


def labels_of(front: ParetoSet) -> tuple[str, ...]:
    """Return the objectives and design of each trial of a front as text; none for a large front."""
    if len(front.trials) > MOST_LABELLED:
        return ()
    names = entries(front.problem.space)[:_MOST_NAMES]
    values = front.losses * _signs(front.problem.objectives)
    texts = [_format_values(*pair) for pair in zip(front.problem.objectives, values.T, strict=True)]
    return tuple(
        "\n".join([f"trial {trial.number}", *words, design_text(names, trial.design)[:_LONGEST]])
        for trial, *words in zip(front.trials, *texts, strict=True)
    )


def _format_values(
    objective: Objective,
    values: Floats,  # (k,)
) -> list[str]:
    """Format an objective's values, all in the same unit.

    The unit is chosen once, because finding the best unit takes about a millisecond.
    """
    axis = axis_of(objective.name[:_LONGEST], objective.unit, values)
    return [f"{axis.name} {value:.4g} {axis.unit}" for value in (values * axis.factor).tolist()]


def _signs(objectives: Sequence[Objective]) -> Floats:
    return np.array([1.0 if one.goal == "minimize" else -1.0 for one in objectives])


def _extent(objective: Objective, parts: Sequence[Floats]) -> PlotAxis:
    """Return an objective's plot axis, with a range that shows the best points and most others."""
    best, others, outside = parts
    shown = np.concatenate([best, others]) if len(best) + len(others) else outside
    axis = axis_of(objective.name, objective.unit, shown)
    best, every = best * axis.factor, shown * axis.factor
    return plot_axis(axis, best, every, aim=objective.goal)
