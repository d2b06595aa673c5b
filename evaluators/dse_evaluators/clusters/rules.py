"""Feasibility constraints on the designs of a batch, and the faults of designs violating them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask


class Rule(NamedTuple):
    """Feasibility constraint on n designs, violated where ``broken`` is true; arrays are (n,)."""

    broken: Mask
    reason: str
    """Format string with the fields ``has``, ``needs`` and ``short`` (``has - needs``)."""
    has: Floats
    needs: Floats


def find_rule_failures(rule: Rule, among: Mask) -> dict[int, Failure]:
    """Return, by design, the reason of infeasibility where a constraint is violated.

    Only designs in the mask ``among`` are checked.
    """
    rows = np.flatnonzero(rule.broken & among)
    # Both numbers in one complex number, so that one sort finds equal pairs.
    alike, place = np.unique(rule.has[rows] + 1j * rule.needs[rows], return_inverse=True)
    failures = [
        Failure(
            kind="infeasible",
            reason=rule.reason.format(has=pair.real, needs=pair.imag, short=pair.real - pair.imag),
        )
        for pair in alike.tolist()
    ]
    return dict(zip(rows.tolist(), map(failures.__getitem__, place.tolist()), strict=True))
