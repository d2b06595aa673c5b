"""Interface of evaluators that can measure their metrics on a test split, too."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from dse.protocols.capability import Capability
from dse.protocols.evaluator import Evaluator

RESAMPLE = "#"
"""Mark between a metric and the number of a bootstrap resample: ``accuracy#0``."""


@runtime_checkable
class HasTestSplit(Protocol, metaclass=Capability):
    """Evaluator that can measure its metrics on a test split, which the search does not use.

    A study measures the designs of its Pareto front on the test split once, after the search.

    Laws:
        - The test evaluator reads the same inputs, and provides the same metrics.
        - It measures them on examples that :meth:`Evaluator.evaluate` does not use.
        - It may report standard errors as ``spread``. It may also provide each metric on bootstrap
          resamples of the test examples, as ``accuracy#0``, ``accuracy#1`` and so on; a number
          then stands for the same resample in all designs, and differences of designs are paired.
    """

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split; ``None`` without a split."""
        ...


def find_test_evaluator(evaluator: Evaluator) -> Evaluator | None:
    """Return the evaluator of the same metrics on the test split; ``None`` without a split."""
    return evaluator.test_evaluator() if isinstance(evaluator, HasTestSplit) else None
