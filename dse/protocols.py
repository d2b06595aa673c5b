"""The four doors through which plug-ins enter, with the laws that each must keep.

A law has a contract test of the same wording in :mod:`dse.testing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.metric import Kind, Metric, Metrics
from dse.core.trial import (
    Ask,
    Asked,
    Attempt,
    Damage,
    Driver,
    Event,
    History,
    News,
    Outcome,
    Report,
    State,
    Summary,
    Take,
    Trial,
)
from dse.core.trials import Trials

EVERYTHING = "*"
"""In an evaluator's ``reads``: every parameter of the space."""

COHERENT = "coherent"
"""In an evaluator's ``units``: the reading in coherent SI, whatever its own unit."""


class Evaluator(Protocol):
    """Source of the costs and metrics of designs; created with its own keyword options.

    It may have a method ``check_values``, which is told the values that each reading can take (of
    a long range its ends, of a real's one between as well, of a metric nothing) before a study is
    run, and raises SpecError where it could not be run on one of them. One with an attribute
    ``missing`` that is not empty cannot be run here, and says why: its studies can be read. One
    with an attribute ``reads_by_metric`` says of each metric what that one reads; a reading that
    has no value in a row is absent there, and it says itself which metrics have none in turn.
    One that measures may ask :func:`dse.evaluation.checkpoints.current_trial`,
    ``dse.current_trial()`` to users, for which trial and attempt it runs, and for a folder in which
    it finds again what it left there when it was killed; who does not ask notices nothing.

    A modelled one with a true attribute ``pure`` may be called by commands that only look, such as
    ``dse check`` and ``dse report``, on a study of unknown origin. Without it only what runs a
    study calls it. One with an attribute ``starts`` lists in words the programs and functions that
    the study has it call: ``dse check`` and ``dse studies import`` print them.

    Laws:
        - It gives the same row whatever the batch around it.
        - It provides every metric that it declares, in the declared unit, for every row without
          a fault; one that has no value in a row is NaN there, and ``Metrics.undefined`` says why.
        - It reads nothing but what it declares.
        - A row's fault is told in ``Metrics.faults``; an exception is the fault of every row.
        - One that is ``pure`` starts no program, runs no code that its options name, and opens no
          connection.
        - It survives pickling, and is cheap to make: heavy libraries are imported by ``evaluate``.
    """

    reads: frozenset[str]
    """Parameters, and metrics of earlier evaluators, that it cannot do without."""
    optional: frozenset[str]
    """What it also reads where the space has it, and else has an own value for."""
    units: Mapping[str, str]
    """The unit in which it wants a reading; a name that is missing is taken as it comes."""
    provides: Mapping[str, Metric]
    kind: Kind
    version: str
    """Changes whenever the numbers change: part of a study's identity."""

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n designs: columns in, columns out."""
        ...


class Optimizer(Protocol):
    """Proposes designs; made with ``(problem, **options)``.

    It may have an attribute ``batch``: how many designs it likes to be asked for at once when
    they cost nothing; without it, one. One with a true attribute ``learns_outside`` is also told
    trials whose designs the space no longer has (``State.OUTSIDE``). One with an attribute
    ``expected_gain``, ``None`` in the class, sets it with each ``ask``: the share of the present
    hypervolume that its suggestion is expected to add, ``None`` while it cannot tell. A study may
    stop by it. One with an attribute ``on_progress`` is given a function there, which it tells
    how many designs of how many a long step has looked at.

    Laws:
        - It draws only from ``problem.rng(told)``.
        - What it asks is legal and new: neither told nor pending. A run ends where it is not.
        - Told the same in the same order, it asks the same, however the telling was cut.
        - It asks at most ``count`` designs; none means that nothing is left.
    """

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        """Up to ``count`` designs; ``pending`` were asked before and are not finished."""
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Learn from finished trials, each given once, in the order in which they finished."""
        ...

    def events(self) -> list[Event]:
        """Return events since the last call that a user should know.

        These are choices, fallbacks and proofs.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A trial to be evaluated, with the metrics that need not be measured again.

    ``only`` holds the labels of the evaluators that are to run; ``None``: all. ``attempt`` counts
    how often the trial was given up before. ``folder`` is where its evaluation may keep what it
    has, over all attempts; empty where nothing is measured. ``again``: an outcome that was kept
    there has been collected, and is not wanted a second time.
    """

    number: int
    design: Design
    given: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    only: frozenset[str] | None = None
    attempt: int = 0
    folder: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Resources that a task needs of its machine; 0 leaves one unspecified.

    ``gpu`` may be a share of one. ``custom`` are things that a cluster's nodes say they have, such
    as a board that is plugged in.
    """

    cpu: float = 0.0
    gpu: float = 0.0
    memory_bytes: int = 0
    custom: Mapping[str, float] = field(default_factory=dict)

    def joined(self, other: Needs) -> Needs:
        """Return the needs of one task that does both in sequence: the larger of each."""
        return Needs(
            cpu=max(self.cpu, other.cpu),
            gpu=max(self.gpu, other.gpu),
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            custom={
                name: max(self.custom.get(name, 0.0), other.custom.get(name, 0.0))
                for name in sorted({*self.custom, *other.custom})
            },
        )


class Executor(Protocol):
    """Runs tasks; made with ``(work, **options)``, where ``work`` turns tasks into outcomes.

    Work may have an attribute ``needs``: what a task of it needs of its machine. Work with an
    attribute ``on_wait`` is given a function there, which it tells ``waits`` before it waits
    for its turn on the machine and ``goes on`` after: no task is given up because others ran. An
    executor may have a method ``events``: what happened since the last call that a user should
    know, such as a node that was lost. One with an attribute ``on_begin`` is given a function
    there, which it calls in ``collect`` with a trial's number and the wall clock at which a worker
    began it; without it, what is submitted is taken as begun.

    Laws:
        - Every task that was submitted is collected exactly once.
        - A task whose worker crashes or hangs is collected as failed, with the reason.
        - ``work`` is called where the executor says; it survives pickling.
        - After ``close`` no worker is left.
    """

    capacity: int
    """How many tasks it takes at once."""
    barrier: bool
    """True: all that was submitted comes back together."""

    def submit(self, task: Task) -> None:
        """Take a task."""
        ...

    def collect(self, timeout_s: float | None = None) -> dict[int, Outcome]:
        """Outcomes by trial number: at least one, or none after ``timeout_s``."""
        ...

    def close(self) -> None:
        """End all workers, at once."""
        ...


Work = Callable[[Sequence[Task]], list[Outcome]]


PLAIN = Ask()
"""How designs are added of which nothing is told."""

NEW = History()
"""What a study remembers that begins now."""


class Storage(Protocol):
    """Remembers studies; made with ``(url)``. Every method is one step, done or not begun.

    A trial is *held* by a driver that runs it. There is no clock: a driver's ``beat`` rises while
    it lives, and who watches decides from when on it takes one for lost.

    Laws:
        - What a method did is on disk when it returns; what it did not finish left no trace.
        - Numbers run from 0 without a gap, whoever adds.
        - A finished trial never changes: the first outcome is taken, a later one passed over.
        - ``trials`` gives them by number, as they were written; ``finished_order`` as they ended.
        - A trial that is held by a driver that is neither lost nor gone is nobody else's to claim.
        - Where a call may succeed later it raises StorageUnavailableError, whether or not it took
          effect; where only somebody's help would heal it, StorageRefusedError. Drivers call again.
    """

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        """Begin a study, with a history where it comes from elsewhere.

        Unfinished trials of the history are pending and free. Raises StudyError where there is a
        study of that name.
        """
        ...

    def spec(self, study: str) -> dict[str, Any] | None:
        """Return what the study was created with; ``None`` where there is no such study."""
        ...

    def studies(self) -> list[str]:
        """The names of all studies, in the order of their creation."""
        ...

    def delete(self, study: str) -> None:
        """Forget a study and all its trials. Raises StudyError where there is none."""
        ...

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        """Number the designs and keep them as pending trials, with the ask and its events.

        With ``ask.worker`` they are running, and held by that driver.

        Raises:
            Overtaken: the study has another number of trials than ``ask.after``.
        """
        ...

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        """Put unfinished trials in another unfinished state."""
        ...

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        """Claim unfinished trials that are free, or held by a ``lost`` driver or one that left.

        They are running and held by the driver ``worker`` from now on; the others are not given.
        """
        ...

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        """Keep when evaluations of those still unfinished were begun, by number.

        The times are wall clock, in seconds since 1970 (UTC). They are forgotten with
        :meth:`retry` and :meth:`leave`. Raises StudyError where a number is unknown.
        """
        ...

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        """Keep the outcomes of those still unfinished, in this order; their numbers are given.

        Whoever holds them: the first outcome counts. Raises StudyError where a number is unknown.
        """
        ...

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        """Make those still unfinished pending and free again; their numbers are given.

        Each counts one more attempt, and its fault and cost are kept in :meth:`attempts`.
        """
        ...

    def attempts(self, study: str) -> list[Attempt]:
        """All attempts that were given up, oldest first."""
        ...

    def trials(self, study: str) -> Trials:
        """All trials by number, each with its place among the finished ones."""
        ...

    def finished_order(self, study: str) -> list[int]:
        """The numbers of the finished trials in the order in which they were finished."""
        ...

    def since(self, study: str, finished: int, trials: int) -> News:
        """Return what was added after so many finished trials and so many trials."""
        ...

    def asks(self, study: str) -> list[Asked]:
        """One for each call of :meth:`add`, oldest first."""
        ...

    def record(self, study: str, events: Sequence[Event]) -> None:
        """Keep events, after all earlier ones."""
        ...

    def events(self, study: str) -> list[Event]:
        """All events, oldest first."""
        ...

    def report(self, study: str, reports: Sequence[Report]) -> None:
        """Keep the evaluators' reports on running trials, after all earlier ones.

        A report of an attempt that was given up is passed over: another one is on its way.
        """
        ...

    def reports(self, study: str, since: int = 0) -> list[Report]:
        """All reports in the order of their arrival, but for so many first ones."""
        ...

    def enter(self, study: str, driver: Driver) -> int:
        """Number a driver and keep it, ignoring ``driver.id``."""
        ...

    def beat(self, study: str, driver: int) -> None:
        """Record that the driver is alive; raise StudyError if its number is unknown."""
        ...

    def leave(self, study: str, driver: int) -> None:
        """Record that the driver has left: its unfinished trials become pending and free."""
        ...

    def drivers(self, study: str) -> list[Driver]:
        """All that ever entered, by number."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


@runtime_checkable
class Queueing(Storage, Protocol):
    """A storage that also has one asker per study, who asks designs ahead for all drivers.

    Asking is handed on by terms: whoever becomes the asker has a term one higher than the last
    one, and only an ask of the present term is kept. So nobody's clock has to be right.

    Laws:
        - Of all who acquire a term, one gets it.
        - While a study has an asker, no other driver's ask is kept; one of a past term never is.
        - Each take gives other trials, whoever takes.
        - A driver that leaves is the asker no more.
    """

    def acquire_asker(self, study: str, driver: int, term: int) -> bool:
        """Make the driver the asker of the term after ``term``; true if it is.

        It is not where another term has begun. Whether the asker of ``term`` is lost is for the
        caller to know. To ask twice for one term is as good as once.
        """
        ...

    def release_asker(self, study: str, driver: int, term: int) -> None:
        """Leave the study without an asker, if it is this driver in this term."""
        ...

    def take(
        self,
        study: str,
        driver: int,
        count: int,
        *,
        known: Collection[int] = (),
        lost: Collection[int] = (),
        below: int | None = None,
    ) -> Take:
        """Let the driver hold up to ``count`` unfinished trials, the lowest numbers first.

        Args:
            study: its name.
            driver: who takes.
            count: how many; with 0 the driver only learns how the study stands.
            known: trials that the driver knows to hold. What it holds beside them was taken by a
                call whose answer did not arrive, and is given again.
            lost: drivers whose trials are free as if nobody held them.
            below: only trials of lower numbers.
        """
        ...


@runtime_checkable
class SupportsSummaries(Protocol):
    """A storage that knows how many trials a study has without reading them.

    Laws:
        - A damaged study has a summary with its problem, and takes none of the others with it.
    """

    def summaries(self) -> list[Summary]:
        """Return a summary of each study, in the order of :meth:`Storage.studies`."""
        ...


class StudyReader(Protocol):
    """One state of a study, read in pieces: however large it is, a few thousand rows at a time."""

    spec: Mapping[str, Any]
    """What the study was created with; empty where that is damaged."""
    counts: Mapping[str, int]
    """How many rows were written of each part: ``trials``, ``finished``, ``events`` ..."""

    def trials(self) -> Iterator[Trials]:
        """Iterate over all trials by number, each with its place among the finished ones."""
        ...

    def spread_names(self) -> frozenset[str]:
        """Return the metrics of which any trial has a standard error."""
        ...

    def others(self, part: str) -> Iterator[Any]:
        """Iterate over ``events``, ``asks``, ``attempts``, ``reports`` or ``drivers`` in order."""
        ...

    def check(self) -> Iterator[int]:
        """Read every row, copies of trials too; after each piece, how many rows it had."""
        ...


@runtime_checkable
class SupportsReading(SupportsSummaries, Protocol):
    """A storage from which a study can be read in pieces, and whose damage can be passed over.

    Laws:
        - All pieces are of one state of the study.
        - Without ``on_damage`` a row that is not as it was written raises StorageError.
        - With it the row is left out and told, and every other row is given.
    """

    def reader(
        self, study: str, on_damage: Callable[[Damage], None] | None = None
    ) -> AbstractContextManager[StudyReader]:
        """Open the study for reading. Raises StudyError where there is none."""
        ...

    def check_database(self) -> Iterator[str]:
        """Check what is of no single study; each sentence is a damage."""
        ...
