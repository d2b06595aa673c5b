"""Budget of a study, parsed from its file or from command-line options."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from dse.errors import SpecError
from dse.schema.models import BudgetSpec, Quantity
from dse.schema.space.parameters.domains import amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Stopping criteria of a study: the first that is met stops it; ``None`` disables one.

    ``cost`` is in dollars, at ``price_per_s`` for each second that an evaluator ran.
    ``min_improvement`` stops the study once the expected relative gain in hypervolume of the next
    measurement is below it. ``gap`` stops it once, with probability ``confidence``, at most the
    share ``gap`` of the hypervolume is missing.
    """

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None
    cost: float | None = None
    price_per_s: float | None = None
    min_improvement: float | None = None
    gap: float | None = None
    confidence: float | None = None


CONFIDENCE = 0.9
"""Confidence of a gap if a budget states none."""

_CONFIDENCES = (0.5, 0.99)
"""Smallest and largest confidence: a larger one would need over a hundred measurements."""


def budget_of(spec: BudgetSpec) -> Budget:
    """Return the budget of a study file, converted to seconds and dollars.

    Raises:
        SpecError: a number is not above zero or has another unit, a cost is limited without a
            price, or a confidence is stated without a gap.
    """
    if spec.cost is not None and spec.price is None:
        raise SpecError("a budget of cost needs a price", hint="{cost: 20 $, price: 4 $/h}")
    least = _above_zero("min_improvement", spec.min_improvement, "1")
    if least is not None and least >= 1:
        problem = f"an improvement of {spec.min_improvement} is never reached"
        raise SpecError(problem, hint="min_improvement: 0.1 %")
    return Budget(
        measurements=spec.measurements,
        trials=spec.trials,
        time_s=_above_zero("time", spec.time, "s"),
        cost=_above_zero("cost", spec.cost, "$"),
        price_per_s=_above_zero("price", spec.price, "$/h"),
        min_improvement=least,
        gap=_gap(spec),
        confidence=_confidence(spec),
    )


def change_budget(budget: Budget, spec: BudgetSpec) -> Budget:
    """Return a budget with the criteria in ``spec`` replaced; all others are kept.

    Raises:
        SpecError: a number is not above zero or has another unit, a cost is limited without a
            price, or a confidence is stated without a gap.
    """
    price = None if budget.price_per_s is None else f"{budget.price_per_s} $/s"
    kept: dict[str, Quantity | None] = {"price": spec.price or price}
    if spec.gap is not None or spec.confidence is not None:
        kept["gap"] = budget.gap if spec.gap is None else spec.gap
        kept["confidence"] = budget.confidence if spec.confidence is None else spec.confidence
    stated = budget_of(spec.model_copy(update=kept))
    new = {one.name: getattr(stated, one.name) for one in fields(stated)}
    return replace(budget, **{name: value for name, value in new.items() if value is not None})


_HINTS = {
    "time": "time: 20 min",
    "cost": "cost: 20 $, with a price per hour: price: 4 $/h",
    "price": "price: 4 $/h",
    "min_improvement": "min_improvement: 0.1 %",
    "gap": "gap: 1 %",
    "confidence": "confidence: 90 %",
}


def _gap(spec: BudgetSpec) -> float | None:
    """Return the gap of a budget as a share of the hypervolume, between 0 and 1."""
    gap = _above_zero("gap", spec.gap, "1")
    if gap is not None and gap >= 1:
        raise SpecError(f"a gap of {spec.gap} is reached at once", hint=_HINTS["gap"], part=["gap"])
    return gap


def _confidence(spec: BudgetSpec) -> float | None:
    """Return the confidence of a budget's gap; the default if it states a gap alone."""
    found = _above_zero("confidence", spec.confidence, "1")
    if found is None:
        return None if spec.gap is None else CONFIDENCE
    hint, part = _HINTS["confidence"], ["confidence"]
    if spec.gap is None:
        raise SpecError("a budget's confidence needs a gap", hint=f"gap: 1 %, {hint}", part=part)
    low, high = _CONFIDENCES
    if not low <= found <= high:
        text = f"a confidence of {spec.confidence} is not from {100 * low:g} % to {100 * high:g} %"
        raise SpecError(text, hint=hint, part=part)
    return found


def _above_zero(key: str, quantity: Quantity | None, unit: str) -> float | None:
    """Return a quantity above zero in its coherent unit; a bare number is in ``unit``."""
    if quantity is None:
        return None
    try:
        value = float(amount(quantity, unit).value)
    except SpecError as error:
        raise SpecError(f"{quantity!r} is no {key}", hint=_HINTS[key]) from error
    if value <= 0:
        raise SpecError(f"a budget's {key} is above zero", hint=_HINTS[key])
    return value
