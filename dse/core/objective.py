"""Objectives to optimize and limits to keep, over metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Binary, Expression
from dse.core.expressions.operators import agree
from dse.core.metric import Goal
from dse.core.values import Floats

_LEAST = 1e-12
"""How far outside a strict limit its bound itself is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Expression over metrics to be minimized or maximized, reported in ``unit``.

    ``scale`` is how many coherent SI units one ``unit`` is: the expression reads metrics in SI and
    its value divided by ``scale`` is in ``unit``. With a ``label`` it is shown by that. ``written``
    is the unit in which the user writes it, where that is another one.
    """

    expression: Expression
    goal: Goal
    unit: str = ""
    scale: float = 1.0
    label: str = ""
    written: str = ""

    @property
    def text(self) -> str:
        """Expression as the user wrote it, which distinguishes the objective from others."""
        return self.expression.text

    @property
    def name(self) -> str:
        """Name for display: the label, or the expression."""
        return self.label or self.text

    def values(self, columns: Mapping[str, Column], size: int) -> Floats:
        """The objective in ``unit``, (n,); NaN where a metric is absent."""
        return _numbers(self.expression, columns, size) / self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A rule over metrics that a good design keeps: ``slack`` is at least zero where it does.

    The slack is in units of ``scale`` (the bound's own size where it has one), so that slacks of
    different limits can be compared and added.
    """

    text: str
    slack: Expression
    scale: float = 1.0
    strict: bool = False

    def slacks(self, columns: Mapping[str, Column], size: int) -> Floats:
        """Return each row's margin to the limit, (n,); negative outside, NaN where unknown.

        Sides that agree to twelve digits are equal, as they are to the rules of a space.
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
    """Return ``left - right``, (n,); zero where the two agree to twelve digits."""
    with np.errstate(all="ignore"):
        return np.where(agree(left, right), 0.0, left - right)


def _numbers(expression: Expression, columns: Mapping[str, Column], size: int) -> Floats:
    result = expression.values(columns, size)
    values = result.values.astype(np.float64)
    return values if result.absent is None else np.where(result.absent, np.nan, values)
