"""Choice of the optimizer and executor for ``auto``, with the reason shown to the user."""

from __future__ import annotations

from dataclasses import dataclass

from dse.core.expressions.printer import whole_text
from dse.core.problem import Problem
from dse.optimizers.exact.separable_groups import cannot

ENUMERABLE = 1_000_000_000
"""Largest number of designs of an all-modelled space that are enumerated exhaustively."""

CHEAP_S = 0.05
"""Seconds below which a measurement is cheaper than a Bayesian suggestion, so evolution wins."""

MANY = 1_000
"""Number of measurements above which a Gaussian process costs more than it saves."""

FEW_OBJECTIVES = 3
"""Above this number crowding distances hardly rank a front: AGE-MOEA-II replaces NSGA-II."""

EXACT_OBJECTIVES = 4
"""Most measured objectives for which expected hypervolume improvement has a closed form here."""


@dataclass(frozen=True, slots=True)
class OptimizerChoice:
    """Name of the optimizer or executor that ``auto`` chose, and the reason shown to the user."""

    use: str
    reason: str


def needs_cost(problem: Problem) -> bool:
    """Return whether ``auto`` must time one measurement before it can choose an optimizer."""
    return bool(problem.measured)


def whole(problem: Problem) -> bool:
    """Return whether ``auto`` will compute the exact front, so that no trial budget applies."""
    if problem.measured:
        return False
    return _searchable(problem) or (problem.space.count() is not None and not cannot(problem))


def optimizer_for(
    problem: Problem, measurements: int | None, cost_s: float | None
) -> OptimizerChoice:
    """Return the optimizer that ``auto`` picks for the problem, with the reason.

    Args:
        problem: problem to optimise.
        measurements: budget of measurements, or ``None``. A budget of few measurements favours a
            surrogate, whatever one measurement costs.
        cost_s: seconds that the first trial took; ``None`` if no trial was run.
    """
    if not problem.measured:
        return _choose_for_models(problem)
    objectives = len(problem.objectives)
    if measurements is not None and measurements > MANY:
        return _evolution(objectives, f"{measurements:,} measurements, more than {MANY:,}")
    if measurements is None and cost_s is not None and cost_s < CHEAP_S:
        why = f"the first measurement took {cost_s:.2g} s, less than {CHEAP_S:g} s"
        return _evolution(objectives, why)
    why = _reason(measurements, cost_s)
    learnt = sum(bool(o.expression.names & problem.measured) for o in problem.objectives)
    if problem.asked - problem.measured:
        return OptimizerChoice("grey-box", f"{why}: only what has to be measured is learnt")
    if learnt <= EXACT_OBJECTIVES:
        return OptimizerChoice("grey-box", f"{why}: each is chosen by a surrogate")
    return OptimizerChoice(
        "qlognehvi", f"{why}, and {learnt} objectives are too many for closed forms"
    )


def _reason(measurements: int | None, cost_s: float | None) -> str:
    """Return as text why few measurements are assumed: the budget or the first one's time."""
    took = "" if cost_s is None else f"the first measurement took {cost_s:.2g} s"
    if measurements is not None:
        s = "" if measurements == 1 else "s"
        bound = f"no more than {measurements:,} measurement{s} may be made"
        return f"{bound} ({took})" if took else bound
    return took or "the cost of a measurement is not known"


def _choose_for_models(problem: Problem) -> OptimizerChoice:
    count = problem.space.count()
    if _searchable(problem):
        return OptimizerChoice(
            "exhaustive",
            f"all metrics are modelled and the {count:,} legal designs can be enumerated: "
            "every one is looked at",
        )
    if count is not None and not cannot(problem):
        return OptimizerChoice(
            "decompose",
            f"all metrics are modelled, and the {whole_text(count)} legal designs fall into groups "
            "that can be searched separately: every design is accounted for",
        )
    use = "nsga2" if len(problem.objectives) <= FEW_OBJECTIVES else "age-moea2"
    return OptimizerChoice(use, "all metrics are modelled, but the space is too large to enumerate")


def _evolution(objectives: int, why: str) -> OptimizerChoice:
    use = "nsga2" if objectives <= FEW_OBJECTIVES else "age-moea2"
    return OptimizerChoice(use, f"{why}: evolution chooses faster than a surrogate")


def executor_for(problem: Problem) -> OptimizerChoice:
    """Return the executor for ``executor: auto``, with the reason.

    Measured evaluators could crash or hang, so they run in a process of their own.
    """
    if problem.measured:
        return OptimizerChoice("processes", "measured evaluators run in a process of their own")
    return OptimizerChoice("serial", "all metrics are modelled")


def _searchable(problem: Problem) -> bool:
    count = problem.space.count()
    return not problem.measured and count is not None and count <= ENUMERABLE
