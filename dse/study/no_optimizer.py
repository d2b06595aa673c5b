"""Null optimizer, for phases in which only given designs such as baselines are evaluated."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.trial import Event, Trial


class NoOptimizer:
    """Optimizer that never suggests a design."""

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:  # noqa: ARG002
        return []

    def tell(self, finished: Sequence[Trial]) -> None:
        """Ignore the finished trials."""

    def events(self) -> list[Event]:
        return []
