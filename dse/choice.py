"""Which optimizer and which executor ``auto`` means, and why."""

from __future__ import annotations

from dataclasses import dataclass

from dse.core.problem import Problem

ENUMERABLE = 100_000_000
"""Up to so many designs an all-modelled space is searched whole."""

CHEAP_S = 0.05
"""A measurement below this costs less than a Bayesian suggestion, so evolution wins on time."""

MANY = 1_000
"""From so many measurements on, a Gaussian process costs more than it brings."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A plug-in's name, and the reason to give to the user."""

    use: str
    reason: str


def needs_cost(problem: Problem) -> bool:
    """True if ``auto`` must see what one measurement costs before it can choose."""
    return not _searchable(problem)


def optimizer_for(problem: Problem, measurements: int | None, cost_s: float | None) -> Choice:
    """What ``auto`` picks.

    Args:
        problem: the question.
        measurements: the budget, if there is one.
        cost_s: seconds that the first trial took; ``None`` where there was none.
    """
    count = problem.space.count()
    if _searchable(problem):
        return Choice(
            "exhaustive",
            f"all metrics are modelled and the {count:,} legal designs can be enumerated: "
            "the front will be exact",
        )
    if not problem.measured:
        return Choice("nsga2", "all metrics are modelled, but the space is too large to enumerate")
    many = measurements is not None and measurements > MANY
    if many or (cost_s is not None and cost_s < CHEAP_S):
        why = f"{measurements:,} measurements" if many else f"a measurement takes {cost_s:.2g} s"
        return Choice("nsga2", f"{why}: evolution is faster than a surrogate here")
    told = "" if cost_s is None else f" (the first took {cost_s:.2g} s)"
    return Choice("qlognehvi", f"measurements are dear{told}: each is chosen by a surrogate")


def executor_for(problem: Problem) -> Choice:
    """What ``executor: auto`` picks: a process of its own for what could crash or hang."""
    if problem.measured:
        return Choice("processes", "measured evaluators run in a process of their own")
    return Choice("serial", "all metrics are modelled")


def _searchable(problem: Problem) -> bool:
    count = problem.space.count()
    return not problem.measured and count is not None and count <= ENUMERABLE
