"""Asks nothing: for what is asked before any optimizer is."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.design import Design
from dse.core.trial import Event, Trial


class NoOptimizer:
    """An optimizer that has no design to ask."""

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:  # noqa: ARG002
        return []

    def tell(self, finished: Sequence[Trial]) -> None:
        """Nothing is learnt."""

    def events(self) -> list[Event]:
        return []
