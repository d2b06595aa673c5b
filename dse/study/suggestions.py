"""Suggestions of a study's optimizer: what it is given, what it proposes, and their validation.

Suggestions are validated before they are stored, because plug-ins may be faulty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from dse.core.design import Design
from dse.core.space import DesignSpace
from dse.core.trial import Event, State, Trial
from dse.errors import DesignError, PluginError
from dse.evaluation.early_stopping import convert_for_optimizer
from dse.protocols import Optimizer, traits_of
from dse.study.history import TrialHistory
from dse.study.thinking import ThinkingControl, effort_changes

_HINT = (
    "this is a fault of the optimizer, and none of these designs was stored; "
    "dse.testing.OptimizerContract tests that an optimizer asks only legal, new designs"
)


class InformedOptimizer:
    """Optimizer of a driver's loop, with the trials that it has received and its events.

    Args:
        optimizer: the optimizer.
        ledger: the driver's copy of the study's trials.
        thinking: the control of the cost of suggestions, if any.
    """

    def __init__(
        self, optimizer: Optimizer, ledger: TrialHistory, thinking: ThinkingControl | None
    ) -> None:
        self.finished = 0
        """Number of finished trials that the optimizer has received."""
        self.optimizer = optimizer
        self.ledger = ledger
        self._thinking = thinking
        self._events: list[Event] = []

    def teach(self, finished: Sequence[Trial]) -> None:
        """Pass newly finished trials to the optimizer."""
        self.optimizer.tell(teachable(self.optimizer, finished))
        self.finished += len(finished)

    def teach_news(self) -> None:
        """Pass the finished trials that the optimizer has not received yet.

        This is done as late as possible: of many drivers, most never ask their optimizer.
        """
        self.teach(self.ledger.finished[self.finished :])

    def choose_effort(self) -> list[Event]:
        """Set the optimizer's effort for the next request; return the event of a change, if any."""
        if self._thinking is None:
            return []
        ledger = self.ledger
        changes = effort_changes(ledger.storage.events(ledger.study))
        return self._thinking.choose(len(ledger.trials), ledger.finished, changes)

    def propose(self, count: int) -> list[Design]:
        """Return the designs that the optimizer suggests, and collect its events for the record."""
        designs = self.optimizer.ask(count, self.ledger.pending)
        self._events += self.optimizer.events()
        return designs

    def note(self, *events: Event) -> None:
        """Add events that are to be recorded with the optimizer's."""
        self._events += events

    def news(self) -> tuple[Event, ...]:
        """Return the events that are not in the study's record yet.

        A resumed study produces some of them again.
        """
        if not self._events:
            return ()
        ledger = self.ledger
        recorded = {(e.kind, e.text) for e in ledger.storage.events(ledger.study)}
        return tuple(one for one in self._events if (one.kind, one.text) not in recorded)

    def drop_news(self) -> None:
        """Forget the events of :meth:`news`, which are recorded now."""
        self._events.clear()

    def record(self) -> None:
        """Record the remaining events, after the optimizer has received all finished trials."""
        self.teach_news()
        self._events += self.optimizer.events()
        self.ledger.storage.record(self.ledger.study, self.news())
        self.drop_news()


def teachable(optimizer: Optimizer, finished: Sequence[Trial]) -> list[Trial]:
    """Return the finished trials that the optimizer receives.

    Trials outside the space, and trials at a low fidelity, are included only if the optimizer's
    traits state that it learns from them.
    """
    traits = traits_of(optimizer)
    learns = {
        State.OUTSIDE: traits.learns_outside,
        State.SCREENED: traits.multi_fidelity,
    }
    return [convert_for_optimizer(trial) for trial in finished if learns.get(trial.state, True)]


def check_suggestions(
    designs: Sequence[Design],
    space: DesignSpace,
    *,
    by: str,
    wanted: int,
    asked: Mapping[Design, Collection[int]],
    rungs: int = 0,
) -> None:
    """Check that suggested designs are legal, new and not too many.

    Args:
        designs: the suggested designs.
        space: the space in which they have to be legal.
        by: the optimizer's name, for the message.
        wanted: maximum number of designs.
        asked: the numbers of the trials, finished or not, of each earlier design.
        rungs: how often a design may be suggested again, at higher fidelities.

    Raises:
        PluginError: a check fails; the message names the design and the rule that it breaks.
    """
    if len(designs) > wanted:
        raise PluginError(
            f"the optimizer {by!r} suggests {len(designs)} designs where {wanted} are wanted",
            hint=_HINT,
        )
    _check_legal(designs, space, by)
    if len(set(designs)) < len(designs):
        twice = next(d for place, d in enumerate(designs) if d in designs[:place])
        _refuse(by, twice, "which is twice in one suggestion")
    for design in designs:
        trials = asked.get(design, ())
        if len(trials) > rungs:
            _refuse(by, design, f"which trial {max(trials)} is already")


def _check_legal(designs: Sequence[Design], space: DesignSpace, by: str) -> None:
    """Check the legality of all designs in one batch; if it fails, find the illegal design."""
    if all(isinstance(design, Design) for design in designs):
        try:
            batch = space.batch(designs)
            if batch.designs() == list(designs) and space.are_legal(batch).all():
                return
        except (DesignError, TypeError, ValueError):
            pass  # a value is outside its domain: the loop below names it
    for design in designs:
        if not isinstance(design, Design):
            _refuse(by, design, f"which is a {type(design).__name__}, not a Design")
        try:
            space.check(design)
            written = space.batch([design]).design(0)
        except DesignError as error:
            _refuse(by, design, f"but {error.problem}", error)
        if written != design:
            name = next(n for n in design if repr(design[n]) != repr(written[n]))
            _refuse(by, design, f"where {name} is written {written[name]!r}, not {design[name]!r}")


def _refuse(by: str, design: object, why: str, error: DesignError | None = None) -> NoReturn:
    values = dict(design) if isinstance(design, Design) else design
    place = error.where if error else ""
    mend = f"{error.hint}; {_HINT}" if error and error.hint else _HINT
    raise PluginError(f"the optimizer {by!r} suggests {values}, {why}", where=place, hint=mend)
