"""Published test functions of BoTorch and pymoo: real and mixed, with limits and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from case import Case, done
from long_run import best_hypervolume

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice, Integer, Parameter, Real
from dse.core.pareto import hypervolume
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, Trial
from dse.core.values import Floats

GRID = 20
"""Steps of a discretised variable of the unit interval: its optimum, a half, is one of them."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of numbers: losses, (n, m), and excesses, (n, l), which must not be positive.

    ``variables`` replaces some of the real variables by discrete ones; ``scales`` is what a step
    of each variable is worth where the parameter counts steps.
    """

    values: Callable[[Floats], tuple[Floats, Floats]]
    bounds: Floats  # (2, d)
    reference: Floats  # (m,)
    best: float | None
    discrete: Sequence[Parameter] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """One for each variable: ``x0``, ``x1`` and so on."""
        named = {parameter.name: parameter for parameter in self.discrete}
        reals = [
            Real(name=f"x{k}", low=float(low), high=float(high))
            for k, (low, high) in enumerate(self.bounds.T)
        ]
        return tuple(named.get(real.name, real) for real in reals)


def case(name: str) -> Case:
    """The function of that name as a problem whose metrics are all measured."""
    function = FUNCTIONS[name]()
    problem = _problem(function)
    return Case(
        name=name,
        problem=problem,
        evaluate=partial(_outcome, function),
        judge=partial(_share, function, problem, _best(name)),
    )


@cache
def _best(name: str) -> float:
    function = FUNCTIONS[name]()
    if function.best is not None:
        return function.best
    return best_hypervolume(
        name, partial(_at, function), function.bounds.shape[1], function.reference
    )


def _at(function: Function, shares: Floats) -> tuple[Floats, Floats]:
    """The function at points of the unit cube."""
    columns = []
    for parameter, column in zip(function.parameters, shares.T, strict=True):
        if isinstance(parameter, Real):
            columns.append(parameter.at(column))
        else:
            places = np.minimum(
                (column * len(parameter.values)).astype(int), len(parameter.values) - 1
            )
            columns.append(np.array(parameter.values, dtype=float)[places])
    return function.values(np.column_stack(columns))


def _problem(function: Function) -> Problem:
    space = DesignSpace(parameters=function.parameters)
    losses, excesses = _at(function, np.full((1, len(space.parameters)), 0.5))
    goals = [f"f{k}" for k in range(losses.shape[1])]
    bounds = [f"g{k}" for k in range(excesses.shape[1])]
    reads = frozenset(space.by_name)
    return Problem(
        space=space,
        sources={
            name: Source(metric=Metric(name=name), kind="measured", reads=reads)
            for name in (*goals, *bounds)
        },
        objectives=tuple(Objective(expression=parse(name), goal="minimize") for name in goals),
        limits=tuple(Limit(text=f"{name} <= 0", slack=parse(f"-{name}")) for name in bounds),
    )


def _outcome(function: Function, design: Design) -> Outcome:
    point = np.array([[float(design[p.name]) for p in function.parameters]])
    losses, excesses = function.values(point)
    found = {f"f{k}": float(value) for k, value in enumerate(losses[0])}
    return done(found | {f"g{k}": float(value) for k, value in enumerate(excesses[0])})


def _share(function: Function, problem: Problem, best: float, trials: Sequence[Trial]) -> float:
    kept = problem.feasible(trials)
    losses = problem.trial_losses(trials)[kept]
    return hypervolume(losses, function.reference) / best if len(losses) else 0.0


def _botorch(
    name: str, discrete: Sequence[Parameter] = (), scale: Sequence[float] = (), **options: Any
) -> Function:
    """A problem of BoTorch with the reference point that it publishes."""
    import torch
    from botorch.test_functions import multi_objective

    made = getattr(multi_objective, name)(**options)
    factors = np.array(scale or [1.0] * made.dim)

    def values(points: Floats) -> tuple[Floats, Floats]:
        x = torch.as_tensor(points * factors, dtype=torch.double)
        losses = made.evaluate_true(x).numpy()
        if not hasattr(made, "evaluate_slack_true"):
            return losses, np.zeros((len(points), 0))
        return losses, -made.evaluate_slack_true(x).numpy()

    return Function(
        values=values,
        bounds=made.bounds.numpy(),
        reference=made.ref_point.numpy().astype(float),
        best=getattr(made, "_max_hv", None) or _analytic(made),
        discrete=discrete,
    )


def _analytic(made: Any) -> float | None:
    try:
        return float(made.max_hv)
    except NotImplementedError:
        return None


def _pymoo(name: str, **options: Any) -> Function:
    """A problem of pymoo; the reference point is a tenth of the front's range beyond its worst."""
    from pymoo.problems import get_problem

    made = get_problem(name, **options)
    front = np.asarray(made.pareto_front(), dtype=float)
    reference = front.max(axis=0) + 0.1 * np.ptp(front, axis=0)

    def values(points: Floats) -> tuple[Floats, Floats]:
        found = made.evaluate(points, return_as_dictionary=True)
        return found["F"], found.get("G", np.zeros((len(points), 0)))

    return Function(
        values=values,
        bounds=np.array([made.xl, made.xu], dtype=float),
        reference=reference,
        best=hypervolume(front, reference),
    )


_MIXED = (
    Integer(name="x2", low=0, high=GRID),
    Integer(name="x3", low=0, high=GRID),
    Integer(name="x4", low=0, high=GRID),
    Choice(name="x5", values=(0.0, 0.25, 0.5, 0.75, 1.0)),
)
"""Variables of DTLZ2 that only hold its front at a half; discretised, the front is the same."""

FUNCTIONS: dict[str, Callable[[], Function]] = {
    "dtlz2": partial(_botorch, "DTLZ2", dim=6, num_objectives=2),
    "dtlz2-mixed": partial(
        _botorch, "DTLZ2", _MIXED, (1, 1, 1 / GRID, 1 / GRID, 1 / GRID, 1), dim=6, num_objectives=2
    ),
    "c2dtlz2": partial(_botorch, "C2DTLZ2", dim=6, num_objectives=2),
    "branin-currin": partial(_botorch, "ConstrainedBraninCurrin"),
    "penicillin": partial(_botorch, "Penicillin"),
    "car-side-impact": partial(_botorch, "CarSideImpact"),
    "osy": partial(_botorch, "OSY"),
    "welded-beam": partial(_botorch, "WeldedBeam"),
    "disc-brake": partial(_botorch, "DiscBrake", (Integer(name="x3", low=11, high=20),)),
    "bnh": partial(_pymoo, "bnh"),
    "truss2d": partial(_pymoo, "truss2d"),
    "mw2": partial(_pymoo, "mw2", n_var=6),
}

NAMES = tuple(FUNCTIONS)
