"""Requests for designs: coordination of a study's drivers, and validation of suggestions.

Each driver (process) takes trials from the study's queue or fills it. At most one driver, the
asker, may ask the optimizer for designs at a time. It holds this role (for one numbered term) only
during the ask, so a driver that evaluates never blocks the others. Suggestions are validated before
they are stored, because plug-ins may be faulty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import NoReturn

from dse.core.design import Design
from dse.core.preference_answers import TOWARD, answers_at, read_steering
from dse.core.space import DesignSpace
from dse.core.trial import Event, Queue, State, Take, Trial
from dse.errors import DesignError, PluginError
from dse.protocols import Optimizer, OptimizerTraits, Queueing, SeeksFavourite, traits_of
from dse.study.claimed_trials import LOOK_S, Clock, Lease
from dse.study.history import TrialHistory
from dse.study.lookahead import Lookahead
from dse.study.thinking import ThinkingControl, effort_changes

_LOOK_PER_DRIVER_S = 0.1
"""Liveness-check interval in seconds per driver, as both the cost and number of checks grow."""

_FEW = 20
"""Number of drivers up to which they may all run their first liveness check at once."""


class AskCoordinator:
    """Access of one process to a study's trial queue, and to the exclusive right to add designs.

    A driver is a process that runs a study. A single driver adds designs without acquiring the
    right. So does every driver of a storage without a queue: such a storage rejects designs that
    were suggested without knowledge of all trials.

    Args:
        history: the driver's copy of the study's trials.
        lease: the driver's lease, which detects lost drivers by their heartbeats.
        clock: the clock for waits and intervals.
        inherit: records the failed attempts of trials taken from lost drivers; returns the trials
            to run.
        below: number of a trial; only trials with lower numbers are taken from the queue.
        lingers: whether the driver waits for other drivers, and takes trials from the queue that
            they share.
    """

    def __init__(
        self,
        history: TrialHistory,
        lease: Lease,
        *,
        clock: Clock,
        inherit: Callable[[Take], list[Trial]],
        below: int | None = None,
        lingers: bool = True,
    ) -> None:
        self.term: int | None = None
        self._history = history
        self._lease = lease
        self._clock = clock
        self._inherit = inherit
        self._below = below
        self._lingers = lingers
        self._lookahead = Lookahead()
        self._vain = 0
        self._storage = history.storage if isinstance(history.storage, Queueing) else None
        self._queue = Queue() if self._storage is None else self._refresh_queue(self._storage)
        many = self._queue.drivers > _FEW  # spread the first checks of drivers that start together
        self._look_at_s = clock.now_s() + (clock.draw_s(0.0, self._often_s) if many else 0.0)

    @property
    def queues(self) -> bool:
        """Whether the storage has a queue of trials from which processes take their work."""
        return self._storage is not None

    @property
    def shares(self) -> bool:
        """Whether other processes work on the study, or any holds the right to add designs."""
        return self._others > 0 or self._queue.asker is not None

    @property
    def knows(self) -> bool:
        """Whether the process has read all trials and outcomes counted in the last queue state."""
        known = len(self._history.finished), len(self._history.trials)
        return known >= (self._queue.finished, self._queue.trials)

    @property
    def pause_s(self) -> float:
        """Seconds to wait before the next poll of the queue, randomized by +-50 %."""
        pause_s = self._lookahead.pause_s(self._vain, self._queue.drivers)
        return self._clock.draw_s(0.5 * pause_s, 1.5 * pause_s)

    def take(self, room: int, own: Set[int]) -> list[Trial]:
        """Take up to ``room`` trials from the queue, including those that lost drivers held.

        Args:
            room: maximum number of trials.
            own: numbers of the trials that this driver (process) holds already.
        """
        storage, history = self._storage, self._history
        if storage is None or room <= 0 or (not self.shares and history.open.keys() <= own):
            return []
        if self.shares and not self._lingers:
            self._refresh_queue(storage)
            return []
        looked = self._look()
        if self._vain and not looked and not self._refresh_queue(storage).waiting:
            self._vain += 1
            return []
        taken = storage.take(
            history.study,
            self._lease.id,
            room,
            known=own,
            lost=self._lease.lost,
            below=self._below,
        )
        self._note(taken.queue)
        self._vain = 0 if taken.trials else self._vain + 1
        return self._inherit(taken) if taken.trials else []

    def count_ahead(self, own: int, *, holds: bool) -> int:
        """Return how many further designs to request, for evaluation by other drivers.

        Args:
            own: number of designs that the driver requests for its own evaluation.
            holds: whether the driver has a trial to evaluate already.
        """
        if self._storage is None or not self.shares or not self._lingers:
            return 0
        lost = len(self._lease.lost)
        return self._lookahead.count(self._queue, own=own, holds=holds, lost=lost)

    def is_free(self) -> bool:
        """Return whether no other live process holds the right to add designs to the study."""
        asker = self._queue.asker
        return asker is None or asker == self._lease.id or self._lease.has_gone(asker)

    def begin(self) -> bool:
        """Acquire the right to add designs, if needed; return false if another process has it."""
        if self._storage is None or not self.shares or self.term is not None:
            return True
        term = self._queue.term
        if not self._storage.acquire_asker(self._history.study, self._lease.id, term):
            self._refresh_queue(self._storage)
            return False
        self.term = term + 1
        return True

    def end(self) -> None:
        """Release the right to add designs without having added any, if this process holds it."""
        if self._storage is not None and self.term is not None:
            self._storage.release_asker(self._history.study, self._lease.id, self.term)
            self._step_down(self._queue)

    def note_ask(self, asked: int, ahead: int, ask_s: float) -> None:
        """Note that new designs were stored, which ended this process's right to add designs.

        Args:
            asked: number of designs stored.
            ahead: number of these designs that are left in the queue for any driver.
            ask_s: seconds that the optimizer took to suggest the designs.
        """
        queue = self._queue
        self._vain = 0
        self._step_down(
            replace(
                queue,
                waiting=queue.waiting + ahead,
                trials=queue.trials + asked,
                asked=asked,
                ask_s=ask_s,
            )
        )

    def note_overtaken(self) -> None:
        """Update the state after the storage rejected designs as outdated.

        The driver keeps the right to add designs if the storage still assigns it to this driver.
        """
        if self._storage is None:
            return
        queue = self._refresh_queue(self._storage)
        if (queue.asker, queue.term) != (self._lease.id, self.term):
            self.term = None

    def _step_down(self, queue: Queue) -> None:
        if self.term is not None:
            queue = replace(queue, asker=None, term=self.term)
        self._queue, self.term = queue, None

    @property
    def _others(self) -> int:
        return self._queue.drivers - 1 - len(self._lease.lost)

    def _look(self) -> bool:
        """Check the other drivers' leases if a check is due; return whether a check was made."""
        now_s = self._clock.now_s()
        if now_s < self._look_at_s:
            return False
        self._lease.look()
        self._look_at_s = now_s + self._often_s
        return True

    @property
    def _often_s(self) -> float:
        return max(LOOK_S, _LOOK_PER_DRIVER_S * self._queue.drivers)

    def _refresh_queue(self, storage: Queueing) -> Queue:
        found = storage.take(self._history.study, self._lease.id, 0)
        return self._note(found.queue)

    def _note(self, queue: Queue) -> Queue:
        self._queue = queue
        self._lookahead.note(self._clock.now_s(), queue)
        return queue


_HINT = (
    "this is a fault of the optimizer, and none of these designs was stored; "
    "dse.testing.OptimizerContract tests that an optimizer suggests only legal, new designs"
)


class InformedOptimizer:
    """Optimizer of a process's loop, with the trials that it has received and its events.

    Args:
        optimizer: the optimizer.
        history: the process's copy of the study's trials.
        thinking: the control of the cost of suggestions, if any.
    """

    def __init__(
        self, optimizer: Optimizer, history: TrialHistory, thinking: ThinkingControl | None
    ) -> None:
        self.finished = 0
        """Number of finished trials that the optimizer has received."""
        self.optimizer = optimizer
        self.history = history
        self._thinking = thinking
        self._traits = traits_of(optimizer)
        self._seeker = optimizer if isinstance(optimizer, SeeksFavourite) else None
        self._events: list[Event] = []

    def teach(self, finished: Sequence[Trial]) -> None:
        """Pass the trials that have finished since the last call to the optimizer."""
        self.optimizer.tell(teachable(self._traits, finished))
        self.finished += len(finished)

    def teach_news(self) -> None:
        """Pass the finished trials that the optimizer has not received yet.

        The loop calls this as late as possible, because of many processes that share a study most
        never ask their optimizer.
        """
        self.teach(self.history.finished[self.finished :])

    def choose_effort(self) -> list[Event]:
        """Set the optimizer's effort for the next request; return the event of a change, if any."""
        if self._thinking is None:
            return []
        history = self.history
        changes = effort_changes(history.storage.events(history.study))
        return self._thinking.choose(len(history.trials), history.finished, changes)

    def propose(self, count: int) -> list[Design]:
        """Return the designs that the optimizer suggests, and collect its events for the record."""
        history = self.history
        if self._seeker is not None:
            events = history.storage.events(history.study)
            toward = [event for event in events if event.kind == TOWARD]
            answers = answers_at(read_steering(toward), len(history.trials)) if toward else ()
            self._seeker.preferences = answers
        designs = self.optimizer.ask(count, history.pending)
        self._events += self.optimizer.events()
        return designs

    def note(self, *events: Event) -> None:
        """Add events that are to be recorded together with the optimizer's events."""
        self._events += events

    def news(self) -> tuple[Event, ...]:
        """Return the events that are not in the study's record yet.

        The optimizer of a resumed study produces some recorded events again; they are left out.
        """
        if not self._events:
            return ()
        history = self.history
        recorded = {(e.kind, e.text) for e in history.storage.events(history.study)}
        return tuple(one for one in self._events if (one.kind, one.text) not in recorded)

    def drop_news(self) -> None:
        """Forget the events of :meth:`news`, which are recorded now."""
        self._events.clear()

    def record(self) -> None:
        """Record the remaining events, after the optimizer has received all finished trials."""
        self.teach_news()
        self._events += self.optimizer.events()
        self.history.storage.record(self.history.study, self.news())
        self.drop_news()


def teachable(traits: OptimizerTraits, finished: Sequence[Trial]) -> list[Trial]:
    """Return the finished trials as they are passed to an optimizer with these traits.

    Trials outside the space, and trials at a low fidelity, are included only if it learns from
    them. A trial that was stopped early counts as failed, without metrics: its last report is not a
    final measurement, and its design is not suggested again.
    """
    learns = {State.OUTSIDE: traits.learns_outside, State.SCREENED: traits.multi_fidelity}
    return [
        replace(one, state=State.FAILED, metrics={}, spread={})
        if one.state is State.STOPPED
        else one
        for one in finished
        if learns.get(one.state, True)
    ]


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
        rungs: how many times a design may be suggested anew, at higher fidelities.

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
