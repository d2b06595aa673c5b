"""An interrupt that something swallows on its way: the run ends all the same, with its trials given back."""

import os
import signal
from contextlib import closing, suppress

import pytest

from dse.cli.interrupts import stoppable
from dse.core.trial import State
from dse.errors import StorageUnavailableError
from dse.storage.patience import Retrier
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine
from dse.system.swallowed_interrupts import raise_lost_interrupt

SPACE = "space: small\nparameters:\n  rows: {integer: [1, 1000]}\n"
STUDY = """\
study: small
space: space.yaml
evaluators: {m: {use: expression, metrics: {time: {formula: 1 s / rows, unit: s}}}}
objectives: [{minimize: m.time}]
optimizer: random
executor: {use: serial, batch: 1}
budget: {trials: 200}
"""


class Swallower:
    """Interrupts the process while a trial is stored, and loses the interrupt like a C library."""

    def __init__(self) -> None:
        self.finished = 0

    def __call__(self, _: object) -> None:
        self.finished += 1
        if self.finished == 5:
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)


def test_a_run_ends_although_its_interrupt_was_swallowed(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    url, swallower = f"sqlite:///{tmp_path}/run.db", Swallower()
    study = StudyEngine.open(tmp_path / "study.yaml", storage=url)
    with pytest.raises(KeyboardInterrupt), stoppable():
        study.run(on_finished=swallower)
    with closing(opened_storage(url)) as storage:
        assert all(driver.left for driver in storage.drivers("small"))
        trials = storage.trials("small")
        assert State.RUNNING not in {trial.state for trial in trials}
    assert 5 <= swallower.finished < 200


def test_an_interrupt_that_a_database_reports_as_its_own_error_is_not_retried():
    calls = []

    def call() -> None:
        calls.append(1)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise StorageUnavailableError("user-defined function raised exception") from None

    with pytest.raises(KeyboardInterrupt), stoppable():
        Retrier(60.0, lambda _: None).read(call)
    assert len(calls) == 1


def test_a_mark_ends_with_its_block():
    with stoppable(), suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    raise_lost_interrupt()  # nothing is left to raise
