"""Interface of optimizers, which propose designs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dse.core.design import Design
from dse.core.trial import Event, Trial


class Optimizer(Protocol):
    """Proposer of designs; constructed with ``(problem, **options)``.

    Optional attributes:
    ``batch``: the preferred number of designs per ``ask`` when evaluations cost nothing; default 1.
    ``learns_outside``: if true, it also receives finished trials whose designs the space no longer
    contains (``State.OUTSIDE``). ``expected_gain``: set by each ``ask`` to the share of the current
    hypervolume that the suggestion is expected to add, ``None`` while unknown (``None`` in the
    class); a study may stop by it. ``on_progress``: a function that the study assigns, and that the
    optimizer calls during a long step with the number of designs processed and their total.

    Laws:
        - It draws only from ``problem.rng(told)``.
        - Each design it returns is legal and new: neither finished nor pending. Otherwise the run
          ends.
        - The same finished trials in the same order give the same designs, however the trials were
          split over calls.
        - It returns at most ``count`` designs; an empty list means that no design is left.
    """

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        """Return up to ``count`` designs to evaluate next.

        Args:
            count: the maximum number of designs.
            pending: designs that were returned before and are not finished.
        """
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from finished trials; each is passed once, in the order in which they finished."""
        ...

    def events(self) -> list[Event]:
        """Return the events since the last call that matter to a user.

        Events are choices, fallbacks and proofs.
        """
        ...
