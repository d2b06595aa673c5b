"""Objectives and limits (outcome constraints) as expressions over metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.expressions.operators import agree
from dse.core.expressions.syntax import Binary
from dse.core.metric import Goal
from dse.core.values import Floats

_LEAST = 1e-12
"""Amount by which a value equal to the bound violates a strict limit, in scaled slack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Expression over metrics to be minimized or maximized, reported in ``unit``.

    ``scale`` is the number of coherent SI units in one ``unit``: the expression reads metrics in SI
    units, and its value divided by ``scale`` is in ``unit``. ``label`` is the name for display.
    ``written`` is the unit in which the user writes the objective, if it differs from ``unit``.
    With ``log``, surrogates and hypervolumes use the objective's logarithm, and values that are not
    positive are undefined.
    """

    expression: Expression
    goal: Goal
    unit: str = ""
    scale: float = 1.0
    label: str = ""
    written: str = ""
    log: bool = False

    @property
    def text(self) -> str:
        """Expression as the user wrote it, which identifies the objective."""
        return self.expression.text

    @property
    def name(self) -> str:
        """Name for display: the label, or the expression."""
        return self.label or self.text

    @property
    def sign(self) -> float:
        """Factor between values and losses: 1 if the objective is minimized, -1 if maximized."""
        return 1.0 if self.goal == "minimize" else -1.0

    def values(self, columns: Mapping[str, Column], size: int) -> Floats:
        """Return the objective in ``unit``, (n,); NaN where it has no value.

        An objective has no value where a metric is absent or, on a log scale, where it is not
        positive.

        Args:
            columns: the metrics and parameters that the expression reads, over n designs.
            size: the number of designs n.
        """
        values = _numbers(self.expression, columns, size) / self.scale
        return np.where(values > 0, values, np.nan) if self.log else values

    def on_scale(self, losses: Floats) -> Floats:
        """Return losses, (n,), on the objective's scale: with ``log``, losses of its logarithm."""
        return self.sign * np.log(self.sign * losses) if self.log else losses

    def off_scale(self, scaled: Floats) -> Floats:
        """Return losses in the objective's ``unit`` from losses on its log or linear scale."""
        return self.sign * np.exp(self.sign * scaled) if self.log else scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Constraint on metrics: a design is feasible if ``slack``, its margin to the bound, is >= 0.

    The slack is divided by ``scale`` (the absolute value of the bound, if there is one), so that
    slacks of different limits can be compared and added.
    """

    text: str
    slack: Expression
    scale: float = 1.0
    strict: bool = False

    def slacks(self, columns: Mapping[str, Column], size: int) -> Floats:
        """Return each design's scaled margin to the limit, (n,), which is negative if violated.

        It is NaN if the limit's value is unknown. Sides that agree to twelve digits are equal, as
        in the rules of a space.
        """
        node = self.slack.node
        if isinstance(node, Binary) and node.operator == "-":
            left, right = (Expression("", side) for side in (node.left, node.right))
            slack = _difference(_numbers(left, columns, size), _numbers(right, columns, size))
        else:
            slack = _numbers(self.slack, columns, size)
        slack = slack / self.scale
        return np.where(slack == 0, -_LEAST, slack) if self.strict else slack


def _difference(left: Floats, right: Floats) -> Floats:
    """Return ``left - right`` per design, (n,); zero where the two agree to twelve digits."""
    with np.errstate(all="ignore"):
        return np.where(agree(left, right), 0.0, left - right)


def _numbers(expression: Expression, columns: Mapping[str, Column], size: int) -> Floats:
    result = expression.values(columns, size)
    values = result.values.astype(np.float64)
    return values if result.absent is None else np.where(result.absent, np.nan, values)
