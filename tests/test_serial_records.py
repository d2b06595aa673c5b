"""A driver that is alone writes the record that it wrote before there were queues."""

import json
from pathlib import Path
from typing import Any

import pytest

from dse.core.trial import Driver
from dse.storage.memory import MemoryStorage
from dse.study.liveness import here
from dse.study.study_engine import StudyEngine

RECORDS = json.loads(Path(__file__).with_name("golden").joinpath("serial_records.json").read_text())
"""Written by the program of commit 93e7602, which had one ask after the other and no queue."""

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
optimizer: OPTIMIZER
executor: {use: serial, batch: BATCH}
baselines: [{rows: 3, cols: 4}, {rows: 8, cols: 8}]
budget: {trials: 40}
seed: 5
"""


def begun(folder: Path, how: str) -> StudyEngine:
    optimizer, _, batch = how.rpartition(" by ")
    (folder / "space.yaml").write_text(SPACE)
    text = STUDY.replace("OPTIMIZER", optimizer).replace("BATCH", batch)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=MemoryStorage())


def record(study: StudyEngine) -> dict[str, Any]:
    """What the record tells, but for what took how long and who ran it."""
    storage = study.storage
    return {
        "trials": [
            [t.number, t.design["rows"], t.design["cols"], t.told, t.state.value]
            for t in storage.trials("s")
        ],
        "order": storage.finished_order("s"),
        "asks": [[a.first, a.count, a.wanted, a.told, a.by] for a in storage.asks("s")],
        "events": [[event.kind, event.text, event.told] for event in storage.events("s")],
    }


def golden(how: str) -> dict[str, Any]:
    found = RECORDS[how]
    for kind in ("trials", "asks"):
        found[kind] = [row[:5] for row in found[kind]]
    return found


@pytest.mark.parametrize("how", RECORDS)
def test_a_serial_run_writes_the_record_of_before(tmp_path, how):
    study = begun(tmp_path, how)
    study.run()
    assert record(study) == golden(how)


@pytest.mark.parametrize("how", ["random by 1", "{use: nsga2, pop_size: 8} by 8"])
def test_a_driver_after_one_that_died_as_the_asker_writes_the_record_of_before(tmp_path, how):
    study = begun(tmp_path, how)
    storage = study.storage
    dead = storage.enter("s", Driver(host=here(), pid=1 << 22, started="1"))
    storage.acquire_asker("s", dead, 0)
    study.run()
    assert record(study) == golden(how)
    assert storage.take("s", dead, 0).queue.asker is None
