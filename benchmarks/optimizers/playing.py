"""The loop that plays one peer: known illegal designs cost no trial, duplicates do."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from case import Case

from dse.core.design import Design
from dse.core.trial import Trial
from dse.core.values import Value
from dse.optimizers.adapters.encoded_points import encode_design, nearest_unseen_design


class Step(NamedTuple):
    """One finished trial and what the optimizer has cost so far.

    ``optimizer_s`` is processor time; ``refused`` counts the illegal designs that it asked for,
    ``given_up`` the trials for which a legal one near by stood in.
    """

    trial: Trial
    optimizer_s: float
    refused: int = 0
    given_up: int = 0


class Player(Protocol):
    """A peer that is asked for one candidate at a time; it starts with ``case.first()``."""

    def ask(self) -> Mapping[str, Value] | None:
        """Values for the active parameters, or for all; nothing if no candidate was found."""
        ...

    def refuse(self) -> None:
        """The last candidate was illegal."""
        ...

    def tell(self, trial: Trial) -> None:
        """What became of the last candidate, or of a design that stands for a refused one."""
        ...


def played(case: Case, player: Player, *, seed: int, trials: int, tries: int) -> Iterator[Step]:
    """The record of the peer, trial by trial.

    Args:
        case: the problem, seeded.
        player: the peer, made for it.
        seed: of what is drawn in the peer's stead.
        trials: how many are finished.
        tries: after so many illegal candidates for one trial, the unseen legal design that is
            nearest to the last one stands in for it.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    clock, refused, given_up = Clock(), 0, 0
    seen: set[Design] = set()
    for number in range(trials):
        design: Design | None = None
        for _ in range(tries):
            with clock:
                values = player.ask()
            design = None if values is None else case.active(values)
            if design is not None and design in case.problem.space:
                break
            with clock:
                player.refuse()
            refused += 1
        else:
            design = _stand_in(case, design, seen, rng)
            given_up += 1
        assert design is not None
        seen.add(design)
        trial = case.played(design, number)
        with clock:
            player.tell(trial)
        yield Step(trial, clock.spent_s, refused, given_up)


class Clock:
    """Processor time spent inside ``with`` blocks."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.spent_s += time.process_time() - self._begun


def _stand_in(
    case: Case, wanted: Design | None, seen: Collection[Design], rng: np.random.Generator
) -> Design:
    """The unseen legal design nearest to the one that was wanted, or one at random."""
    problem = case.problem
    if wanted is not None and (
        found := nearest_unseen_design(problem, encode_design(problem.space, wanted), seen, rng)
    ):
        return found[0]
    return problem.space.sample(1, rng).design(0)
