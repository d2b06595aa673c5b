"""Interface of storages, which keep studies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from dse.core.design import Design
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
from dse.protocols.capability import Capability

PLAIN = Ask()
"""Default origin of added designs: no optimizer, no driver."""


NEW = History()
"""Empty history of a new study."""


class StudyStorage(Protocol):
    """Interface to the studies of a storage: create, list and delete them."""

    def create(self, study: str, spec: Mapping[str, Any], history: History = NEW) -> None:
        """Create a study, with the history of an imported study if there is one.

        Unfinished trials of the history become pending; no driver (process that runs a study) holds
        them.

        Raises:
            StudyError: a study of that name exists.
        """
        ...

    def spec(self, study: str) -> dict[str, Any] | None:
        """Return the specification that the study was created with; ``None`` if it is unknown."""
        ...

    def studies(self) -> list[str]:
        """Return the names of all studies of the storage, in the order of their creation."""
        ...

    def delete(self, study: str) -> None:
        """Delete a study and all its trials.

        Raises:
            StudyError: there is no such study.
        """
        ...


class TrialStorage(Protocol):
    """Interface to the trials of a study: add, claim, finish and read them."""

    def add(self, study: str, designs: Sequence[Design], ask: Ask = PLAIN) -> list[Trial]:
        """Store the designs of an ask (optimizer request) as new trials, and the record of the ask.

        The trials are pending, or running and held by driver ``ask.worker`` if that is set.

        Raises:
            Overtaken: the number of trials in the study differs from ``ask.after``.
        """
        ...

    def move(self, study: str, numbers: Sequence[int], to: State) -> None:
        """Change the state of unfinished trials, such as from running to pending."""
        ...

    def claim(
        self, study: str, numbers: Sequence[int], worker: int, lost: Collection[int] = ()
    ) -> list[Trial]:
        """Assign unfinished trials that no live process holds to a driver.

        A driver is a process that runs a study. The trials are held by no driver, by one in
        ``lost``, or by one that has left.

        Args:
            study: the study's name.
            numbers: the trials to claim.
            worker: the driver that claims them.
            lost: drivers whose trials may be claimed.

        Returns:
            The claimed trials, now running and held by ``worker``; the others are left out.
        """
        ...

    def begin(self, study: str, begun: Mapping[int, float]) -> None:
        """Store the start times of the evaluations of trials that are still unfinished.

        :meth:`retry` and :meth:`leave` clear the start times.

        Args:
            study: the study's name.
            begun: wall-clock times by trial number, in seconds since 1970 (UTC).

        Raises:
            StudyError: a number is unknown.
        """
        ...

    def finish(
        self,
        study: str,
        outcomes: Mapping[int, Outcome],
        events: Sequence[Event] = (),
        worker: int | None = None,
    ) -> list[int]:
        """Store the outcomes of trials that are still unfinished, in the given order.

        The first outcome of a trial counts, whichever driver (process that runs the study) holds
        the trial.

        Args:
            study: the study's name.
            outcomes: by trial number.
            events: stored in the same step.
            worker: the driver that found the outcomes.

        Returns:
            The numbers of the trials that were finished by this call.

        Raises:
            StudyError: a number is unknown.
        """
        ...

    def retry(self, study: str, outcomes: Mapping[int, Outcome]) -> list[int]:
        """Requeue unfinished trials after a failed attempt: pending, without a driver.

        A driver is a process that runs the study. The number of attempts of each trial rises by
        one; :meth:`attempts` returns the failure and the cost of each abandoned attempt.

        Args:
            study: the study's name.
            outcomes: of the abandoned attempts, by trial number.

        Returns:
            The numbers of the trials that are pending again.
        """
        ...

    def attempts(self, study: str) -> list[Attempt]:
        """Return all abandoned attempts to evaluate trials, oldest first."""
        ...

    def trials(self, study: str) -> Trials:
        """Return all trials by number, each with its index in the order of completion."""
        ...

    def finished_order(self, study: str) -> list[int]:
        """Return the numbers of the finished trials, in the order of completion."""
        ...

    def since(self, study: str, finished: int, trials: int) -> News:
        """Return the trials that were added or finished since the caller last read the study.

        Args:
            study: the study's name.
            finished: the number of finished trials that the caller has.
            trials: the number of trials that the caller has.
        """
        ...

    def asks(self, study: str) -> list[Asked]:
        """Return the record of each call of the optimizer (ask), oldest first."""
        ...


class EventStorage(Protocol):
    """Interface to the events of a study and to intermediate reports of its trials."""

    def record(self, study: str, events: Sequence[Event]) -> None:
        """Append events to the study's record."""
        ...

    def events(self, study: str) -> list[Event]:
        """Return all recorded events of the study, oldest first."""
        ...

    def report(self, study: str, reports: Sequence[Report]) -> None:
        """Store intermediate metrics that evaluators reported for running trials.

        A report of an abandoned attempt is ignored, because the trial is evaluated again.
        """
        ...

    def reports(self, study: str, since: int = 0) -> list[Report]:
        """Return intermediate reports in the order of arrival, skipping the first ``since``."""
        ...


class DriverStorage(Protocol):
    """Interface to the drivers (processes that run a study), with their heartbeats."""

    def enter(self, study: str, driver: Driver) -> int:
        """Register a driver (process that runs the study); return the id assigned to it.

        ``driver.id`` is ignored.
        """
        ...

    def beat(self, study: str, driver: int) -> None:
        """Record a heartbeat of a driver (process that runs the study)."""
        ...

    def leave(self, study: str, driver: int) -> None:
        """Record that a driver (process that runs the study) has left, and free its trials."""
        ...

    def drivers(self, study: str) -> list[Driver]:
        """Return all drivers (processes that run the study) ever registered, by number."""
        ...


class Storage(StudyStorage, TrialStorage, EventStorage, DriverStorage, Protocol):
    """Persistent store of studies; constructed with ``(url)``. Every method is atomic.

    A driver is a process that runs a study; a trial is *held* by the driver that runs it. The
    storage compares no clocks: a driver's ``beat`` counter rises while it lives, and each observer
    decides when a driver counts as lost.

    Laws:
        - The effect of a method is durable when it returns; an interrupted call leaves no trace.
        - Trial numbers run from 0 without gaps, whichever driver adds trials.
        - A finished trial never changes: the first outcome is stored, a later one is ignored.
        - ``trials`` returns trials by number, as written; ``finished_order`` lists them in order
          of completion.
        - Only the holder may claim a held trial, unless that driver is lost or has left.
        - A call that may succeed later raises StorageUnavailableError, whether or not it took
          effect; a call that cannot succeed without intervention raises StorageRefusedError.
          Drivers repeat the call.
    """

    def close(self) -> None:
        """Close the connection to the storage."""
        ...


@runtime_checkable
class Queueing(Storage, Protocol, metaclass=Capability):
    """Storage in which one driver per study calls the optimizer on behalf of all drivers.

    That driver, the *asker*, requests designs ahead, and the others take them. The role is passed
    on by numbered terms, as in leader election: each new asker has a term one higher than the last,
    and only the requests (asks) of the current term are stored. No synchronized clocks are needed.

    Laws:
        - If several drivers acquire the same term, exactly one gets it.
        - While a study has an asker, no ask of another driver or of a past term is stored.
        - No trial is returned by two takes, whichever drivers call.
        - A driver that leaves is no longer the asker.
    """

    def acquire_asker(self, study: str, driver: int, term: int) -> bool:
        """Make the driver the asker of the term after ``term``; return whether this succeeded.

        The asker is the one driver that calls the optimizer. The call fails if another term has
        begun. The caller must make sure that the asker of ``term`` is lost. The call is idempotent.
        """
        ...

    def release_asker(self, study: str, driver: int, term: int) -> None:
        """End the driver's role as asker, if it has the role in this term.

        The asker is the one driver that calls the optimizer.
        """
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
        """Assign up to ``count`` unfinished trials to a driver, lowest numbers first.

        Args:
            study: the study's name.
            driver: the driver (process that runs the study) that takes the trials.
            count: the maximum number; 0 only reads the state of the study.
            known: trials that the driver already has. Other trials that it holds were taken by a
                call whose response was lost; they are returned again.
            lost: drivers whose trials count as held by no driver.
            below: take only trials with lower numbers than this.
        """
        ...


@runtime_checkable
class SupportsSummaries(Protocol, metaclass=Capability):
    """Storage that counts the trials of a study without reading them.

    Laws:
        - A damaged study has a summary that states its problem, and does not affect the summaries
          of other studies.
    """

    def summaries(self) -> list[Summary]:
        """Return a summary of each study, in the order of :meth:`Storage.studies`."""
        ...


class StudyReader(Protocol):
    """Reader of a consistent snapshot of a stored study, in chunks of a few thousand rows."""

    spec: Mapping[str, Any]
    """Spec that the study was created with; empty if it is damaged."""
    counts: Mapping[str, int]
    """Number of rows of each kind of record: ``trials``, ``finished``, ``events`` and so on."""

    def trials(self) -> Iterator[Trials]:
        """Iterate over all trials by number, each with its index in the order of completion."""
        ...

    def spread_names(self) -> frozenset[str]:
        """Return the names of metrics that have a standard error in any trial."""
        ...

    def others(self, part: str) -> Iterator[Any]:
        """Yield all records of one kind, oldest first: ``events``, ``asks``, ``attempts``, ...

        Further kinds are ``reports`` and ``drivers``.
        """
        ...

    def check(self) -> Iterator[int]:
        """Read all rows of the study, to find damage; yield the number of rows read."""
        ...


@runtime_checkable
class SupportsReading(SupportsSummaries, Protocol, metaclass=Capability):
    """Storage that can read a study in chunks and skip damaged rows.

    Laws:
        - All pieces belong to one snapshot of the study.
        - Without ``on_damage``, a row that differs from the written one raises StorageError.
        - With ``on_damage``, the row is left out and reported, and every other row is returned.
    """

    def reader(
        self, study: str, on_damage: Callable[[Damage], None] | None = None
    ) -> AbstractContextManager[StudyReader]:
        """Open a stored study for reading in chunks.

        Raises:
            StudyError: there is no such study.
        """
        ...

    def check_database(self) -> Iterator[str]:
        """Check the tables that belong to no study; yield a description of each damage."""
        ...
