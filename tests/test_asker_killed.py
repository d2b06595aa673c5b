"""A driver is killed in the middle of an ask; another one of the study takes over and ends it."""

import multiprocessing
import os
import signal
from pathlib import Path

from dse.core.trial import Driver, State
from dse.optimizers.random_search import RandomSearch
from dse.storage.sql.database_storage import SqlStorage
from dse.study.liveness import here
from dse.study.replay import Replay
from dse.study.study_engine import StudyEngine
from dse.system.process_tree import read_start_time

SPACE = """
space: s
parameters:
  rows: {ordinal: 'range(1 .. 40)'}
  cols: {ordinal: 'range(1 .. 40)'}
"""
STUDY = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (rows * cols)}, area: {formula: rows * cols + rows}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
reference: {chip.time: 2000, chip.area: 5000}
optimizer: random
executor: {use: serial, batch: 1}
budget: {trials: 12}
"""


class DeadlySearch(RandomSearch):
    """Kills its process in the ask after five trials."""

    def ask(self, count, pending=()):
        if self._finished_count >= 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().ask(count, pending)


def drive_to_death(url: str) -> None:
    import dse.study.run_phases

    dse.study.run_phases.suggesting = lambda plan, _: DeadlySearch(plan.problem)
    StudyEngine.load("s", SqlStorage(url)).run()


def test_a_killed_asker_is_succeeded_and_the_record_is_proved(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    url = f"sqlite:///{tmp_path}/s.db"
    storage = SqlStorage(url)
    study = StudyEngine.open(tmp_path / "study.yaml", storage=storage)
    # Another driver, alive and without a trial: by it, those that run share the study.
    pid = os.getpid()
    storage.enter("s", Driver(host=here(), pid=pid, started=read_start_time(pid)))
    process = multiprocessing.get_context("fork").Process(target=drive_to_death, args=(url,))
    process.start()
    process.join(300)
    queue = storage.take("s", 0, 0).queue
    assert (process.exitcode, queue.asker) == (-signal.SIGKILL, 1)
    assert 5 <= queue.finished < 12
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 12
    queue = storage.take("s", 0, 0).queue
    assert queue.asker is None
    assert Replay(study).proof().trials == 12
    storage.close()
