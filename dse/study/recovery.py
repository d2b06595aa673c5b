"""Recovery of outcomes that earlier drivers measured and could not store."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import FailureKind
from dse.evaluation.checkpoints import again, forget_outcome
from dse.storage.retrying import ENTRY
from dse.storage.spool import Spooled, find_spools, remove_spool
from dse.study.history import TrialHistory


def store_spools(history: TrialHistory, retries: Mapping[FailureKind, int]) -> int:
    """Store outcomes that were saved in files of this machine during an outage; count them.

    An outage is a time without access to the storage. The outcomes are attributed to the process
    that measured them. A trial that has finished meanwhile is unchanged: the first outcome counts.

    Args:
        history: the study's trials, already read; its next read returns the stored outcomes.
        retries: how often a failed trial is evaluated again, by kind of failure.
    """
    drivers = history.storage.drivers(history.study)
    entries = {one.provenance[ENTRY]: one.id for one in drivers if ENTRY in one.provenance}
    return sum(_store(history, one, retries) for one in list(find_spools(entries)))


def _store(history: TrialHistory, spooled: Spooled, retries: Mapping[FailureKind, int]) -> int:
    storage, study = history.storage, history.study
    attempts = storage.attempts(study)
    kept = {number: one for number, one in spooled.outcomes.items() if number in history.open}
    repeated = {
        number: outcome
        for number, outcome in kept.items()
        if again(outcome.failure, attempts, number, retries)
        and history.open[number].worker == spooled.driver
    }
    ended = {number: outcome for number, outcome in kept.items() if number not in repeated}
    if ended:
        storage.finish(study, ended, worker=spooled.driver)
    for number in storage.retry(study, repeated) if repeated else ():
        forget_outcome(study, history.open[number])
    remove_spool(spooled.entry)
    return len(kept)
