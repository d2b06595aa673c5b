"""Construction of the early stopping rule that a study file states under ``early``."""

from __future__ import annotations

from dse.core.problem import Problem
from dse.errors import SpecError, nearest
from dse.evaluation.early_stopping import Certain, Halving, Rule
from dse.schema.models import EarlySpec, Quantity
from dse.schema.space.parameters.domains import amount
from dse.units import units

_HALVING = "early_stopping: {rule: successive-halving, rungs: [1, 3, 9]}"
_CERTAIN = "early_stopping: {rule: certain, worsens: [board.time], best: {train.loss: 0}}"


def early_of(spec: EarlySpec | None, problem: Problem) -> Rule | None:
    """Build a study's early stopping rule, ``None`` if it has none.

    Raises:
        SpecError: a key belongs to the other kind of rule, the steps do not ascend, or a name is
            not a measured metric of an objective or limit.
    """
    if spec is None:
        return None
    if spec.rule == "successive-halving":
        if not spec.rungs or spec.worsens or spec.best:
            raise SpecError("successive halving takes only steps, under 'rungs'", hint=_HALVING)
        if list(spec.rungs) != sorted(set(spec.rungs)):
            raise SpecError(f"the steps {spec.rungs} do not rise", hint=_HALVING)
        return Halving(eta=spec.eta, at=tuple(spec.rungs))
    if spec.rungs or not (spec.worsens or spec.best):
        raise SpecError("'certain' takes metrics in 'worsens' or 'best', not steps", hint=_CERTAIN)
    for name in (*spec.worsens, *spec.best):
        if name not in problem.measured:
            raise SpecError(
                f"no objective or limit reads a measured metric {name!r}",
                hint=nearest(name, problem.measured),
            )
    best = {name: _bound(bound, problem.metrics[name].unit) for name, bound in spec.best.items()}
    return Certain(worsens=frozenset(spec.worsens), best=best)


def _bound(quantity: Quantity, unit: str) -> float:
    """Convert a bound to the metric's unit; a number without a unit is already in it."""
    return float(amount(quantity, unit or "1").value) / units.factor(unit)
