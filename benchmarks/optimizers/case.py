"""A problem to be played: what is asked, what any design yields, and how good a record is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dse.core.design import Design
from dse.core.problem import Problem
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Value
from dse.optimizers.support.even_sequence import EvenSequence

FIRST = 8
"""So many first designs are the same for every optimizer that can be handed some."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One problem of the comparison.

    ``judge`` gives the hypervolume of the trials as a share of that of the true front, or of the
    best one known; one minus it is the regret.
    """

    name: str
    problem: Problem
    evaluate: Callable[[Design], Outcome]
    judge: Callable[[Sequence[Trial]], float]

    def seeded(self, seed: int) -> Case:
        """The same case with other chances."""
        return replace(self, problem=replace(self.problem, seed=seed))

    def played(self, design: Design, number: int) -> Trial:
        """The design as a finished trial."""
        trial = Trial(number=number, design=design, told=number)
        return trial.finished(self.evaluate(design))

    def first(self) -> list[Design]:
        """The designs that every optimizer starts from: a scrambled Sobol sequence's first."""
        return EvenSequence(self.problem).first(FIRST, ())

    def active(self, values: Mapping[str, Value]) -> Design:
        """The design without those values whose parameters do not exist beside the others."""
        kept: dict[str, Value] = {}
        space = self.problem.space
        for parameter in space.parameters:  # parents come before their children
            rule = space.conditions.get(parameter.name)
            if parameter.name in values and (
                rule is None or rule.holds(space.batch([kept]).columns, 1, unknown=False)[0]
            ):
                kept[parameter.name] = values[parameter.name]
        return Design(kept)


def done(metrics: Mapping[str, float]) -> Outcome:
    """The outcome of a measurement that went well."""
    return Outcome(state=State.DONE, metrics=metrics, measured=1)
