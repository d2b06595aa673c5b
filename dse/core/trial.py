"""A design on its way from proposal to outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dse.core.design import Design
from dse.core.metric import Fault


class State(StrEnum):
    """PENDING > RUNNING > DONE | INFEASIBLE | FAILED; a lost run goes back to PENDING.

    OUTSIDE is a finished trial of an older space whose design the present space does not have: it
    is learnt from, and never part of an answer. SCREENED is a finished trial for which only lower
    rungs of a ladder were bought: a later trial of the same design may buy the next.
    """

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    OUTSIDE = "outside"
    SCREENED = "screened"

    @property
    def finished(self) -> bool:
        """True when nothing more will be learnt from the trial."""
        return self not in (State.PENDING, State.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one design.

    ``measured`` counts the measured evaluators that ran for it; a reading that was known
    already costs none.
    """

    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    fault: Fault | None = None
    cost_s: float = 0.0
    measured: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One design of a study; ``told`` counts the finished trials known when it was asked."""

    number: int
    design: Design
    told: int = 0
    state: State = State.PENDING
    metrics: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    fault: Fault | None = None
    cost_s: float = 0.0
    measured: int = 0

    def moved(self, state: State) -> Trial:
        """The trial in another state."""
        return Trial(
            number=self.number,
            design=self.design,
            told=self.told,
            state=state,
            metrics=self.metrics,
            spread=self.spread,
            fault=self.fault,
            cost_s=self.cost_s,
            measured=self.measured,
        )

    def finished(self, outcome: Outcome) -> Trial:
        """The trial with its outcome."""
        return Trial(
            number=self.number,
            design=self.design,
            told=self.told,
            state=outcome.state,
            metrics=outcome.metrics,
            spread=outcome.spread,
            fault=outcome.fault,
            cost_s=outcome.cost_s,
            measured=outcome.measured,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that a study remembers beside its trials: a choice, a fallback, a proof."""

    kind: str
    text: str
    told: int = 0
