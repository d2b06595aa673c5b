"""Presentation of studies: tables, figures, HTML, exports.

The package itself is callable by evaluators: ``dse.report(step, {"loss": 0.3})`` is
:func:`dse.evaluation.reporting.report`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType

from dse.evaluation.reporting import report


class _Report(ModuleType):
    """Module type that makes this package callable as the function ``report``."""

    def __call__(self, step: int, metrics: Mapping[str, float]) -> None:
        report(step, metrics)


sys.modules[__name__].__class__ = _Report
