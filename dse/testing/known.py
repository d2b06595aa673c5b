"""Benchmark problems with known fronts, and the loop that runs an optimizer on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Goal, Kind, Metric, Metrics
from dse.core.objective import Limit, Objective
from dse.core.parameter import Real
from dse.core.pareto import hypervolume
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Floats, Mask
from dse.protocols import Optimizer

Truth = Callable[[Batch], Metrics]
"""Function that returns the true metrics of a batch of designs."""

_SEEN = 2_000
"""Number of points that sample the front."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Benchmark problem with a function for the true metrics of any design, and its exact front.

    ``front`` holds losses, objective values oriented for minimization; ``reference`` is the
    reference point of hypervolumes.
    """

    problem: Problem
    truth: Truth
    front: Floats  # (n, m)
    reference: Floats  # (m,)

    def seeded(self, seed: int) -> Known:
        """Return the benchmark problem with another random seed."""
        return replace(self, problem=replace(self.problem, seed=seed))

    def finished(self, designs: Sequence[Design], first: int = 0) -> list[Trial]:
        """Return the designs as finished trials with true outcomes, numbered from ``first``."""
        if not designs:
            return []
        got = self.truth(self.problem.space.batch(designs))
        return [
            Trial(number=first + row, design=design, told=first).finished(_outcome(got, row))
            for row, design in enumerate(designs)
        ]

    def share(self, trials: Sequence[Trial]) -> float:
        """Return the hypervolume of the trials as a fraction of the exact front's."""
        kept = self.problem.feasible(trials)
        losses = self.problem.trial_losses(trials)[kept]
        return hypervolume(losses, self.reference) / hypervolume(self.front, self.reference)


def played(known: Known, optimizer: Optimizer, budget: int, *, at_once: int = 1) -> list[Trial]:
    """Run an optimizer for up to ``budget`` designs, ``at_once`` per request; return the trials."""
    trials: list[Trial] = []
    while len(trials) < budget:
        designs = optimizer.ask(min(at_once, budget - len(trials)))
        if not designs:
            break
        finished = known.finished(designs, len(trials))
        optimizer.tell(finished)
        trials += finished
    return trials


def enumerated(
    space: DesignSpace,
    kinds: Mapping[str, Kind],
    goals: Mapping[str, Goal],
    truth: Truth,
    *,
    limits: tuple[Limit, ...] = (),
) -> Known:
    """Return the problem with its exact front, found by comparing every pair of feasible designs.

    Args:
        space: a space of at most a million legal designs.
        kinds: kind of each metric, by name.
        goals: goal of each objective, by the name of its metric.
        truth: returns the true metrics of a design.
        limits: limits that feasible designs satisfy.
    """
    problem = problem_of(space, kinds, goals, truth, limits=limits)
    batch = next(iter(space.enumerate(1_000_000)))
    got = truth(batch)
    columns = {name: Column(values) for name, values in got.columns.items()}
    losses = problem.losses(columns, len(batch))
    feasible: Mask = np.asarray((problem.slacks(columns, len(batch)) >= 0).all(axis=1))
    feasible[list(got.failures)] = False
    front = np.unique(losses[feasible][~beaten(losses[feasible])], axis=0)
    worst = front.max(axis=0) if len(front) else losses.max(axis=0)
    return Known(
        problem=problem,
        truth=truth,
        front=front,
        reference=worst + 0.1 * np.maximum(np.abs(worst), 1e-12),
    )


def problem_of(
    space: DesignSpace,
    kinds: Mapping[str, Kind],
    goals: Mapping[str, Goal],
    truth: Truth,
    *,
    limits: tuple[Limit, ...] = (),
) -> Problem:
    """Return a problem whose metrics named ``modelled`` an evaluator computes with ``truth``.

    An evaluator that computes all metrics also reports infeasible designs.
    """
    modelled = {name for name, kind in kinds.items() if kind == "modelled"}
    reads = frozenset(space.by_name)

    def model(batch: Batch) -> Metrics:
        got = truth(batch)
        columns = {name: got.columns[name] for name in modelled}
        return Metrics(
            columns=columns, failures=got.failures if len(modelled) == len(kinds) else {}
        )

    return Problem(
        space=space,
        sources={
            name: Source(metric=Metric(name=name), kind=kind, reads=reads)
            for name, kind in kinds.items()
        },
        objectives=tuple(
            Objective(expression=parse(name), goal=goal) for name, goal in goals.items()
        ),
        limits=limits,
        model=model,
    )


def beaten(losses: Floats) -> Mask:
    """Return the mask of the n loss vectors, (n, m), that another one dominates, (n,).

    All pairs are compared.
    """
    no_worse = (losses[:, None, :] <= losses[None, :, :]).all(axis=2)
    better = (losses[:, None, :] < losses[None, :, :]).any(axis=2)
    return np.asarray((no_worse & better).any(axis=0))


def _outcome(got: Metrics, row: int) -> Outcome:
    failure = got.failures.get(row)
    if failure is not None:
        state = State.INFEASIBLE if failure.kind == "infeasible" else State.FAILED
        return Outcome(state=state, failure=failure)
    metrics = {name: float(values[row]) for name, values in got.columns.items()}
    spread = {name: float(values[row]) for name, values in got.spread.items()}
    return Outcome(state=State.DONE, metrics=metrics, spread=spread, measured=1)


def dtlz2(objectives: int = 6, extra: int = 4, kind: Kind = "measured") -> Known:
    """Return DTLZ2 over reals; on its front the squares of the losses sum to one.

    Args:
        objectives: number of objectives.
        extra: number of distance parameters, which are 0.5 on the front.
        kind: kind of all metrics.

    Source:
        Deb, Thiele, Laumanns, Zitzler: Scalable Test Problems for Evolutionary Multiobjective
        Optimization, 2005, eq. 9.
    """
    names = [f"x{place}" for place in range(objectives - 1 + extra)]
    losses = [f"f{place}" for place in range(objectives)]

    def truth(batch: Batch) -> Metrics:
        x = np.column_stack([batch[name] for name in names])
        angles = x[:, : objectives - 1] * np.pi / 2
        radius = 1 + ((x[:, objectives - 1 :] - 0.5) ** 2).sum(axis=1)
        columns = {}
        for place, name in enumerate(losses):
            last = objectives - 1 - place
            columns[name] = radius * np.cos(angles[:, :last]).prod(axis=1)
            if place:
                columns[name] = columns[name] * np.sin(angles[:, last])
        return Metrics(columns=columns)

    front = np.abs(np.random.default_rng(0).normal(size=(_SEEN, objectives)))
    return Known(
        problem=problem_of(
            DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in names)),
            dict.fromkeys(losses, kind),
            dict.fromkeys(losses, "minimize"),
            truth,
        ),
        truth=truth,
        front=front / np.linalg.norm(front, axis=1, keepdims=True),
        reference=np.full(objectives, 1.5),
    )
