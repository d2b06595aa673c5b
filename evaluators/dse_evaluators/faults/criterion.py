"""What counts as a silent data corruption of a model."""

from __future__ import annotations

from dataclasses import dataclass

PREDICTION = "prediction"
"""Criterion of a corruption: the class with the largest output changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """Criterion by which a run counts as a silent data corruption.

    Attributes:
        name: ``prediction``, or the name of a quality metric of the model.
        tolerance: share of the examples whose prediction may change, or loss of the metric.
        sign: -1 for a quality metric that is to be maximized, else 1.
    """

    name: str
    tolerance: float
    sign: int = 1
