"""Fronts of a study after given shares of its budget, to show when the front was found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.analysis.runs import Currency, FrontHistory, Run, currencies
from dse.core.values import Floats

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Shares of the total spent at which the front is evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Front of a study after a given amount of its budget was spent.

    ``spent`` is the amount, in ``currency``, and ``share`` the fraction of the total spent.
    """

    currency: Currency
    spent: float
    share: float
    losses: Floats  # (f, m), minimised, the front


def stages(run: Run) -> list[Stage]:
    """Return the distinct fronts after each of :data:`SHARES` of the study's total was spent.

    The total counts measurements, or trials if nothing was measured. A front that equals that of an
    earlier stage is listed once, at the smallest amount spent.
    """
    (currency, *_), course = currencies([run]), FrontHistory.of(run)
    budgets = np.ceil(np.array(SHARES) * run.total(currency))
    found: dict[int, Stage] = {}
    for share, spent, arrived in zip(
        SHARES, budgets.tolist(), course.arrived(currency, budgets).tolist(), strict=True
    ):
        if arrived and arrived not in found:
            found[arrived] = Stage(
                currency=currency, spent=spent, share=share, losses=course.front(arrived)
            )
    return list(found.values())
