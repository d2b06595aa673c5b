"""Designs of a study that satisfy further limits: their front, or the best by one metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.expressions.syntax import Binary, Node, names_in
from dse.core.objective import Limit, Objective
from dse.core.pareto import ParetoSet, nondominated
from dse.core.problem import Problem
from dse.core.proof import Proof
from dse.core.trials import Trials, column_of
from dse.errors import StudyError
from dse.study.study_engine import StudyEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class BestDesigns:
    """Designs that satisfy limits added by the user: their front, or the best by one metric.

    ``found`` has the study's limits and the added ones in its problem; it is empty if no finished
    trial satisfies all of them. ``at`` are the added limits as written. ``best`` is the metric or
    formula by which the designs were selected; ``None`` for the front. ``value`` is the value of
    ``best`` for the designs of ``found``, in its unit. ``trials`` are all finished trials of the
    study, and ``proof`` is the proof of the study's front, as far as it covers the selection.
    ``uncovered`` is a note on the legal designs that were not searched for the selection; empty if
    there are none, or the front of the study is not proved either.
    """

    found: ParetoSet
    at: tuple[str, ...]
    best: Objective | None
    value: float | None
    trials: Trials
    proof: Proof
    uncovered: str = ""


def find_best_designs(
    study: StudyEngine, at: Sequence[str] = (), best: str | None = None
) -> BestDesigns:
    """Find the best designs among all finished trials under limits added by the user.

    Without ``best``, the result is the Pareto front of the feasible trials that satisfy the added
    limits. With ``best``, the result is the feasible trials with the best value of this metric or
    formula; of several trials with this value, the non-dominated ones.

    Args:
        study: the study.
        at: limits on metrics and parameters: ``chip.latency <= 20 ms``.
        best: an objective, a metric with a goal, or a formula after ``minimize:`` or ``maximize:``.

    Raises:
        SpecError: a limit or the formula is invalid, or has an unknown name.
        StudyError: no design that satisfies every limit has a value of ``best``.
    """
    problem, finished = study.problem, study.finished
    asked = study.plan.asked
    assert asked is not None
    limits = asked.limits(at, problem)
    wanted = None if best is None else asked.objective(best, problem)
    point = ParetoSet.of(problem, finished).reference_point
    narrowed = replace(problem, limits=(*problem.limits, *limits), fixed_reference=point)
    if wanted is None:
        found, value = ParetoSet.of(narrowed, finished), None
    else:
        found, value = _select_best(narrowed, finished, wanted)
    covered = _is_covered(problem, finished, limits, wanted)
    proof = study.proof
    return BestDesigns(
        found=found,
        at=tuple(at),
        best=wanted,
        value=value,
        trials=finished,
        proof=proof if covered else replace(proof, searched=False, over=None),
        uncovered="" if covered or not proof.searched else _uncovered_words(finished, proof),
    )


def _select_best(
    problem: Problem, finished: Trials, wanted: Objective
) -> tuple[ParetoSet, float | None]:
    """Return non-dominated trials among the feasible trials with the best value, and the value.

    Raises:
        StudyError: there are feasible trials, and none of them has a value.
    """
    columns = {name: column_of(finished, name) for name in sorted(wanted.expression.names)}
    values = wanted.values(columns, len(finished))
    losses, feasible = problem.judged(finished)
    nothing = ParetoSet.of(problem, ())
    if not feasible.any():
        return nothing, None
    rows = np.flatnonzero(feasible & np.isfinite(values))
    if not len(rows):
        raise StudyError(
            f"{wanted.name!r} has no value for any of the {int(feasible.sum()):,} designs that "
            "satisfy every limit",
            hint="dse trials shows what each trial has",
        )
    best = float(values[rows].min() if wanted.goal == "minimize" else values[rows].max())
    rows = rows[values[rows] == best]
    rows = rows[nondominated(losses[rows])]
    rows = rows[np.lexsort(losses[rows].T[::-1])]
    trials = tuple(finished[row] for row in rows.tolist())
    return replace(nothing, trials=trials, losses=losses[rows]), best


def _is_covered(
    problem: Problem, finished: Trials, limits: Sequence[Limit], wanted: Objective | None
) -> bool:
    """Return whether a search for the study's front also covers the selection.

    A search for the front may skip, or not record, designs that are dominated. It covers the
    selection only if all designs were recorded, or if better objectives never break one of the
    ``limits`` and ``wanted`` is an objective.
    """
    decided = all(_is_bound_on_objective(one, problem) for one in limits)
    if decided and (wanted is None or wanted in problem.objectives):
        return True
    count = problem.space.count()
    return count is not None and len({one.design for one in finished}) >= count


def _uncovered_words(finished: Trials, proof: Proof) -> str:
    legal = proof.of or proof.over
    many = f"{len(finished):,} of {legal:,} legal designs are" if legal else "not all designs are"
    return (
        f"{many} recorded, because the others cannot be on the front of the study; to search them "
        "too, run a study with the further limits under 'constraints:'"
    )


def _is_bound_on_objective(limit: Limit, problem: Problem) -> bool:
    """Return whether the limit is a constant bound that better values of an objective satisfy."""
    node = limit.slack.node
    if not (isinstance(node, Binary) and node.operator == "-"):
        return False
    high, low = node.left, node.right
    return any(
        (_is_constant(high) and low == one.expression.node)
        if one.goal == "minimize"
        else (_is_constant(low) and high == one.expression.node)
        for one in problem.objectives
    )


def _is_constant(node: Node) -> bool:
    return not names_in(node)
