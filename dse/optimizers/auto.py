"""Choice of optimizer and executor for ``auto``, with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from dse.core.expressions.printer import whole_text
from dse.core.problem import Problem
from dse.optimizers.exact.separable_groups import cannot

ENUMERABLE = 1_000_000_000
"""Up to so many designs an all-modelled space is searched whole."""

CHEAP_S = 0.05
"""A measurement below this costs less than a Bayesian suggestion, so evolution wins on time."""

MANY = 1_000
"""From so many measurements on, a Gaussian process costs more than it brings."""

FEW_OBJECTIVES = 3
"""Above, crowding says little about a front, and AGE-MOEA-II takes the place of NSGA-II."""

EXACT_OBJECTIVES = 4
"""Up to so many measured objectives the expected hypervolume is computed in closed form."""


@dataclass(frozen=True, slots=True)
class OptimizerChoice:
    """A plug-in's name, and the reason to give to the user."""

    use: str
    reason: str


def needs_cost(problem: Problem) -> bool:
    """True if ``auto`` must see what one measurement costs before it can choose."""
    return bool(problem.measured)


def whole(problem: Problem) -> bool:
    """True if ``auto`` finds the exact front: no budget of trials can end it early."""
    if problem.measured:
        return False
    return _searchable(problem) or (problem.space.count() is not None and not cannot(problem))


def optimizer_for(
    problem: Problem, measurements: int | None, cost_s: float | None
) -> OptimizerChoice:
    """Return the optimizer that ``auto`` picks, with the reason.

    Args:
        problem: the question.
        measurements: the budget, if there is one. Who bounds measurements wants much from each,
            whatever one costs.
        cost_s: seconds that the first trial took; ``None`` where there was none.
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
    """Return the reason why measurements are scarce: the declared budget or the measured cost."""
    took = "" if cost_s is None else f"the first measurement took {cost_s:.2g} s"
    if measurements is not None:
        s = "" if measurements == 1 else "s"
        bound = f"no more than {measurements:,} measurement{s} may be made"
        return f"{bound} ({took})" if took else bound
    return took or "what a measurement takes is not known"


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
            "that can be searched one by one: every one is accounted for",
        )
    use = "nsga2" if len(problem.objectives) <= FEW_OBJECTIVES else "age-moea2"
    return OptimizerChoice(use, "all metrics are modelled, but the space is too large to enumerate")


def _evolution(objectives: int, why: str) -> OptimizerChoice:
    use = "nsga2" if objectives <= FEW_OBJECTIVES else "age-moea2"
    return OptimizerChoice(use, f"{why}: evolution chooses faster than a surrogate")


def executor_for(problem: Problem) -> OptimizerChoice:
    """Return the executor for ``executor: auto``; measured evaluators get their own process.

    Code that could crash or hang runs in a separate process.
    """
    if problem.measured:
        return OptimizerChoice("processes", "measured evaluators run in a process of their own")
    return OptimizerChoice("serial", "all metrics are modelled")


def _searchable(problem: Problem) -> bool:
    count = problem.space.count()
    return not problem.measured and count is not None and count <= ENUMERABLE
