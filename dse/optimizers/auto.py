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

SURROGATE_S = 0.2
"""Seconds of a ``grey-box`` suggestion after 100 trials of 12 parameters and 3 objectives.

Source:
    Measured on one core of an AMD EPYC: ``python benchmarks/optimizers cost --tool auto``.
"""

LEAST_SURROGATE_S = 0.04
"""Seconds of such a suggestion at the lowest effort that has a surrogate, with ``--effort 2``."""

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
    """Return whether ``auto`` will search all designs for the exact front, without a budget."""
    if problem.measured:
        return False
    return _searchable(problem) or (problem.space.count() is not None and not cannot(problem))


def optimizer_for(
    problem: Problem,
    measurements: int | None,
    cost_s: float | None,
    *,
    thinking: float | None = None,
) -> OptimizerChoice:
    """Return the optimizer that ``auto`` picks for the problem, with the reason.

    Args:
        problem: problem to optimise.
        measurements: budget of measurements, or ``None``. A budget of few measurements favours a
            surrogate, whatever one measurement costs.
        cost_s: seconds that the first trial took; ``None`` if no trial was run.
        thinking: greatest cost of a suggestion as a share of a measurement. If it is given and the
            cost is known, it decides instead of the number and cost of measurements.
    """
    if not problem.measured:
        return _choose_for_models(problem)
    objectives = len(problem.objectives)
    if thinking is not None and cost_s is not None:
        return _choose_by_price(problem, cost_s, thinking)
    if measurements is not None and measurements > MANY:
        return _evolution(objectives, f"{measurements:,} measurements, more than {MANY:,}")
    if measurements is None and cost_s is not None and cost_s < CHEAP_S:
        why = f"the first measurement took {_time(cost_s)}, less than {_time(CHEAP_S)}"
        return _evolution(objectives, why)
    return _surrogate(problem, _reason(measurements, cost_s))


def _choose_by_price(problem: Problem, cost_s: float, thinking: float) -> OptimizerChoice:
    """Choose a surrogate if its cheapest suggestions cost at most a share of a measurement.

    Args:
        problem: problem to optimise.
        cost_s: seconds that one measurement takes.
        thinking: greatest cost of a suggestion as a share of ``cost_s``.
    """
    allowed_s = thinking * cost_s
    share = f"{100 * thinking:g} % of a measurement of {_time(cost_s)} is {_time(allowed_s)}"
    least = _time(LEAST_SURROGATE_S)
    if allowed_s >= LEAST_SURROGATE_S:
        return _surrogate(problem, f"{share}, and a surrogate's suggestion takes {least} or more")
    why = f"{share}, but a surrogate's suggestion takes {least} or more"
    return _evolution(len(problem.objectives), why)


def _surrogate(problem: Problem, why: str) -> OptimizerChoice:
    """Return the Bayesian optimizer that suits the problem.

    Args:
        problem: problem with measured metrics.
        why: why a surrogate is preferred to evolution.
    """
    learnt = sum(bool(o.expression.names & problem.measured) for o in problem.objectives)
    if problem.asked - problem.measured:
        return OptimizerChoice("grey-box", f"{why}: only what has to be measured is learnt")
    if learnt <= EXACT_OBJECTIVES:
        return OptimizerChoice("grey-box", f"{why}: each is chosen by a surrogate")
    return OptimizerChoice(
        "qlognehvi", f"{why}, and {learnt} objectives are too many for closed forms"
    )


def _reason(measurements: int | None, cost_s: float | None) -> str:
    """Return why few measurements are assumed: by the budget, or by the first one's duration.

    If a measurement is cheaper than a suggestion, the text states this, because the budget is then
    the only reason.
    """
    took = "" if cost_s is None else f"the first measurement took {_time(cost_s)}"
    if measurements is None:
        return took or "the cost of a measurement is not known"
    s = "" if measurements == 1 else "s"
    bound = f"no more than {measurements:,} measurement{s} may be made"
    if cost_s is None:
        return bound
    if cost_s >= SURROGATE_S:
        return f"{bound} ({took})"
    price = f"less than a suggestion of about {_time(SURROGATE_S)}"
    return f"{bound} ({took}, {price}; the option thinking bounds suggestions)"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s"


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
