"""Rules that a plan must not break, and the fault of one that does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Floats, Mask


class Rule(NamedTuple):
    """Condition that must not hold; every array is (n,)."""

    broken: Mask
    reason: str
    """Filled in with the row's ``has``, ``needs`` and ``short``, their difference."""
    has: Floats
    needs: Floats


def find_rule_faults(rule: Rule, among: Mask) -> dict[int, Fault]:
    """Return faults of rows in ``among`` that break a rule; equal breaches share one fault."""
    rows = np.flatnonzero(rule.broken & among)
    # Two numbers in one, so that finding equal pairs is one sort.
    alike, place = np.unique(rule.has[rows] + 1j * rule.needs[rows], return_inverse=True)
    faults = [
        Fault(
            kind="infeasible",
            reason=rule.reason.format(has=pair.real, needs=pair.imag, short=pair.real - pair.imag),
        )
        for pair in alike.tolist()
    ]
    return dict(zip(rows.tolist(), map(faults.__getitem__, place.tolist()), strict=True))
