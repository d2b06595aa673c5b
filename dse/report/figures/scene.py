"""Data of the trade-off figures: the study's result (front or nearest misses), other trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Binary, Node, names_in
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Mask
from dse.report.answer import MOST_SHOWN, Answer, objective_values
from dse.report.axes import Axis, axis_of, focus


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Values of one objective or metric in all trials of a figure, with the axis to draw them.

    ``marks`` are the bounds of the limits on the objective or metric. If ``ends`` are given, the
    axis has these ends, and values outside of them are not visible.
    """

    axis: Axis
    goal: str
    others: Floats  # (n,)
    best: Floats  # (k,), the answer's
    baselines: Floats  # (b,)
    reference: float | None = None
    marks: tuple[tuple[str, float], ...] = ()
    ends: tuple[float, float] | None = None

    @property
    def sign(self) -> float:
        """Factor from losses to values: -1 if the quantity is maximized, else 1."""
        return -1.0 if self.goal == "maximize" else 1.0

    @property
    def seen(self) -> Mask:
        """Mask of the other trials whose values lie within the axis range, (n,).

        Other trials are those that are not in the result (front or nearest to feasible).
        """
        low, high = self.ends or (-np.inf, np.inf)
        return np.asarray((self.others >= low) & (self.others <= high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Data of a trade-off figure: the result (front or nearest to feasible) and other trials.

    ``whole`` and ``done`` are the numbers of result trials and of other trials before thinning.
    ``knee`` is an index into the result's trials.
    """

    answer: Answer
    whole: int
    others: Trials  # n: done, and not in the answer
    done: int
    feasible: Mask  # (n,)
    quantities: tuple[Quantity, ...]
    knee: int | None

    @staticmethod
    def of(
        front: ParetoSet, trials: Sequence[Trial], most: int, weighty: Sequence[str] = ()
    ) -> Scene:
        """Collect the data of a trade-off figure, with at most ``most`` other trials."""
        answer, knee = Answer.of(front, trials, weighty), _knee(front)
        shown = answer.thin(MOST_SHOWN, knee)
        done = _beside(answer, trials)
        others = done.take(slice(None, None, -(-len(done) // most) or 1))
        return Scene(
            answer=shown,
            whole=len(answer.trials),
            others=others,
            done=len(done),
            feasible=front.problem.feasible(others),
            quantities=_quantities(front, shown, others, trials),
            knee=None if knee is None else shown.trials.index(knee),
        )

    @property
    def name(self) -> str:
        """Legend label of the result: front or designs nearest to feasible."""
        return "front" if self.answer.feasible else "nearest misses"

    @property
    def words(self) -> str:
        """Caption with the numbers of result and other trials, and how many of each are drawn."""
        best = f"{self.whole:,} {'on the front' if self.answer.feasible else self.name}"
        return (
            f"{best}{_note_sample(len(self.answer.trials), self.whole)}, "
            f"{self.done:,} other trials{_note_sample(len(self.others), self.done)}."
        )


def _note_sample(some: int, every: int) -> str:
    return f" ({some:,} drawn)" if some < every else ""


def _knee(front: ParetoSet) -> Trial | None:
    """Return the front's knee; ``None`` for fewer than three designs or one objective."""
    several = len(front.trials) > 2 and len(front.problem.objectives) > 1
    return front.knee if several else None


def _beside(answer: Answer, trials: Sequence[Trial]) -> Trials:
    held = Trials.of(trials)
    shown = [trial.number for trial in answer.trials]
    return held.take(held.are(State.DONE) & ~np.isin(held.number, shown))


def _quantities(
    front: ParetoSet, answer: Answer, others: Trials, trials: Sequence[Trial]
) -> tuple[Quantity, ...]:
    problem, marked = front.problem, _baselines(front.problem, trials)
    values = [objective_values(problem, each) for each in (others, marked)]
    points = front.reference_point or (None,) * len(problem.objectives)
    found = [
        _quantity(
            problem,
            objective,
            (values[0][:, at], answer.values[:, at], values[1][:, at]),
            points[at],
        )
        for at, objective in enumerate(problem.objectives)
    ]
    if len(found) == 1:
        numbers = [t.number.astype(np.float64) for t in (others, Trials.of(answer.trials), marked)]
        axis = Axis(name="trial")
        first = Quantity(
            axis=axis, goal="", others=numbers[0], best=numbers[1], baselines=numbers[2]
        )
        found.insert(0, first)
    return tuple(found)


def _baselines(problem: Problem, trials: Sequence[Trial]) -> Trials:
    """Return the finished trials of designs that the study names as baselines."""
    held = Trials.of(trials)
    if not problem.baselines:
        return held.take(slice(0, 0))
    named = [dict(design) for design in problem.baselines]
    are_named = np.array([dict(design) in named for design in held.iter_designs()], dtype=bool)
    return held.take(are_named & held.are(State.DONE))


def _quantity(
    problem: Problem,
    objective: Objective,
    values: tuple[Floats, Floats, Floats],  # of the others (n,), the answer (k,), baselines (b,)
    point: float | None,
) -> Quantity:
    axis = axis_of(objective.name, objective.unit, np.concatenate(values[:2]))
    others, best, baselines = (each * axis.factor for each in values)
    reference = None if point is None else point * axis.factor
    marks = tuple((t, bound * axis.factor) for t, bound in _bounds(problem, objective))
    numbers = [*baselines.tolist(), *(bound for _, bound in marks), reference]
    marked = np.array([one for one in numbers if one is not None])
    return Quantity(
        axis=axis,
        goal=objective.goal,
        others=others,
        best=best,
        baselines=baselines,
        reference=reference,
        marks=marks,
        ends=focus(best, others, marked, log=axis.log),
    )


def _bounds(problem: Problem, objective: Objective) -> list[tuple[str, float]]:
    """Return the limits that compare an objective with a constant, as (text, bound).

    The bound is in the objective's unit.
    """
    found = []
    for limit in problem.limits:
        node = limit.slack.node
        sides: tuple[Node, ...] = (node.left, node.right) if isinstance(node, Binary) else ()
        constants = [side for side in sides if not names_in(side)]
        if len(constants) == 1 and objective.expression.node in sides:
            value = Expression("", constants[0]).values({}, 1).values[0]
            found.append((limit.text, float(value) / objective.scale))
    return found
