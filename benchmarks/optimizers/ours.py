"""Our optimizers by plug-in name, played one trial at a time."""

from __future__ import annotations

from collections.abc import Iterator

from case import Case
from playing import Clock, Step

from dse.optimizers.auto import optimizer_for
from dse.registry import make

MEASUREMENTS = 200
COST_S = 60.0
"""``auto`` chooses for so many measurements of a minute each."""


def chosen(case: Case) -> str:
    """What ``auto`` means for the case."""
    return optimizer_for(case.problem, MEASUREMENTS, COST_S).use


def run(case: Case, name: str, trials: int) -> Iterator[Step]:
    """The record of the optimizer on the seeded case; it ends when nothing is left to ask."""
    clock = Clock()
    with clock:
        optimizer = make("optimizers", chosen(case) if name == "auto" else name, case.problem)
    for number in range(trials):
        with clock:
            designs = optimizer.ask(1)
        if not designs:
            return
        trial = case.played(designs[0], number)
        with clock:
            optimizer.tell([trial])
        yield Step(trial, clock.spent_s)
