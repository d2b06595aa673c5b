"""Memory capacity constraints, and the first constraint that each design violates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats
from dse_evaluators.clusters.rules import Rule, find_rule_failures


def room(name: str, used: Floats, there: Floats) -> Rule:
    """Return the constraint that the bytes of n designs fit into memories of given sizes.

    ``used`` and ``there`` are in bytes, (n,). The message of a violation rounds sizes to 0.1 GB.
    """
    return Rule(
        used > there,
        f"needs {{has:.4g}} GB of {name}, has {{needs:.4g}} GB: {{short:.3g}} GB short",
        np.round(used / 1e9, 1),
        np.round(there / 1e9, 1),
    )


def first_broken(rules: Iterable[Rule], count: int) -> dict[int, Failure]:
    """Return, by design, the first violated constraint as the reason of infeasibility."""
    failures: dict[int, Failure] = {}
    fine = np.ones(count, dtype=bool)
    for rule in rules:
        failures.update(find_rule_failures(rule, fine))
        fine &= ~rule.broken
    return failures
