"""Presentation of studies: tables, figures, HTML, exports.

An evaluator calls it: ``dse.report(step, {"loss": 0.3})`` is
:func:`dse.evaluation.reporting.report`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType

from dse.evaluation.reporting import report


class _Report(ModuleType):
    """This package, which can be called like the function of the same name."""

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        report(step, metrics)


sys.modules[__name__].__class__ = _Report
