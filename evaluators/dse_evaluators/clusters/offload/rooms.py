"""Data that does not fit in its memory, and the first rule that a design breaks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Floats
from dse_evaluators.clusters.rules import Rule, find_rule_faults


def room(name: str, used: Floats, there: Floats) -> Rule:
    """Return the rule that bytes used may not exceed those available, (n,) each.

    The message gives sizes to a tenth of a gigabyte.
    """
    return Rule(
        used > there,
        f"needs {{has:.4g}} GB of {name}, has {{needs:.4g}} GB: {{short:.3g}} GB short",
        np.round(used / 1e9, 1),
        np.round(there / 1e9, 1),
    )


def first_broken(rules: Iterable[Rule], count: int) -> dict[int, Fault]:
    """Of n rows the first rule that each breaks, if it breaks one."""
    faults: dict[int, Fault] = {}
    fine = np.ones(count, dtype=bool)
    for rule in rules:
        faults.update(find_rule_faults(rule, fine))
        fine &= ~rule.broken
    return faults
