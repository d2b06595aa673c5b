"""Program that writes to a storage; ``durability_contract`` runs and kills it.

``python -m dse.testing.storage_writer URL STUDY ROUNDS`` repeatedly adds three trials, finishes
them and records an event. When a call has returned, it prints the numbers now guaranteed on disk.
"""

from __future__ import annotations

import sys

from dse.core.design import Design
from dse.core.trial import Ask, Event, Outcome, State
from dse.errors import StudyError
from dse.protocols import Storage
from dse.registry import make

SIZE = 3
"""Trials per call: more than one, so that a partly applied call would be visible."""


def opened(url: str) -> Storage:
    """Return the storage at a URL, whose scheme selects the plug-in."""
    storage: Storage = make("storages", url.partition(":")[0].partition("+")[0], url)
    return storage


def outcome(number: int) -> Outcome:
    """Return the outcome that the test writer records for a trial."""
    return Outcome(state=State.DONE, metrics={"square": float(number * number)}, cost_s=0.1)


def write(storage: Storage, study: str, rounds: int) -> None:
    """Add and finish trials and record events; print their numbers after each call."""
    for turn in range(rounds):
        designs = [Design({"turn": turn, "place": place}) for place in range(SIZE)]
        numbers = [trial.number for trial in storage.add(study, designs, Ask(told=turn))]
        _say("added", numbers)
        storage.finish(study, {number: outcome(number) for number in numbers})
        _say("finished", numbers)
        storage.record(study, [Event(kind="turn", text=str(turn))])
        _say("recorded", [turn])


def _say(what: str, numbers: list[int]) -> None:
    sys.stdout.write(f"{what} {' '.join(map(str, numbers))}\n")
    sys.stdout.flush()


def main() -> None:
    """Write to the study that the command line specifies; used as a test process."""
    url, study, rounds = sys.argv[1:]
    storage = opened(url)
    try:
        storage.create(study, {})
    except StudyError:
        _say("joined", [])
    write(storage, study, int(rounds))
    storage.close()


if __name__ == "__main__":
    main()
