"""The front of a study is measured once on the test split of its evaluators."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dse
from dse import Metric, Study, evaluator
from dse.core.judged_trials import JUDGED, claim_event
from dse.core.trial import Driver
from dse.errors import SpecErrors, StudyError
from dse.storage.memory import MemoryStorage
from dse.study.liveness import here

CALLS: list[tuple[str, int]] = []
ACCURACY = Metric("accuracy", goal="maximize")
SIZE = Metric("size", "B", goal="minimize")
SPACE = {"bits": (1, 8)}


@evaluator(ACCURACY, test={"split": "test"}, version="1")
def network(bits: int, split: str = "search") -> dict[str, object]:
    CALLS.append((split, bits))
    lift = 0.01 if split == "search" else 0.0
    return {"accuracy": (1 - 0.5**bits + lift, 0.02)}


@evaluator(SIZE, version="1")
def chip(bits: int) -> dict[str, float]:
    CALLS.append(("chip", bits))
    return {"size": 100.0 * bits}


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def begin(storage="memory://", name="judged", **more) -> Study:
    return Study(
        name,
        SPACE,
        {"network": network, "chip": chip},
        maximize="network.accuracy",
        minimize="chip.size",
        optimizer="exhaustive",
        storage=storage,
        **more,
    )


def of_split(name: str) -> list[int]:
    return [bits for split, bits in CALLS if split == name]


def test_a_run_measures_each_design_of_the_front_once_on_the_test_split():
    study = begin()
    study.run()
    assert sorted(of_split("test")) == list(range(1, 9))
    assert len(of_split("search")) == len(of_split("chip")) == 8
    judged = study.front.judged
    accuracies = [row.values[1] for row in judged.rows]
    assert accuracies == pytest.approx([1 - 0.5 ** t.design["bits"] for t in study.front])
    assert judged.depends == (False, True)


def test_the_search_and_its_optimizer_never_see_the_results():
    study, plain = begin(), begin(judge="none")
    study.run()
    plain.run()
    told = [(t.design, t.metrics, t.told) for t in study.trials]
    assert told == [(t.design, t.metrics, t.told) for t in plain.trials]
    assert plain.front.judged is None
    assert study.record.verify().sound


def test_a_resumed_study_measures_nothing_again(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    begin(url).run()
    CALLS.clear()
    again = begin(url)
    again.run()
    assert CALLS == []
    again.judge()
    assert CALLS == []
    again.judge(again=True)
    assert sorted(of_split("test")) == list(range(1, 9))


def test_an_interrupt_keeps_what_was_measured(monkeypatch, tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    study = begin(url)

    def interrupted(bits: int, split: str = "search") -> dict[str, object]:
        if split == "test" and len(of_split("test")) == 3:
            raise KeyboardInterrupt
        CALLS.append((split, bits))
        return {"accuracy": (1 - 0.5**bits, 0.02)}

    monkeypatch.setattr(network, "function", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.run()
    assert len(begin(url).front.judged.rows) == 3
    monkeypatch.undo()
    begin(url).run()
    assert len(of_split("test")) == 8
    assert len(set(of_split("test"))) == 8


def test_designs_within_two_standard_errors_are_marked_as_alike():
    study = begin()
    study.run()
    rows = {study.trials[row.trial].design["bits"]: row for row in study.front.judged.rows}
    width = 2 * np.hypot(0.02, 0.02)
    for bits, row in rows.items():
        near = [
            other.trial
            for own, other in rows.items()
            if own != bits and abs(0.5**own - 0.5**bits) <= width
        ]
        assert sorted(row.alike) == sorted(near)
    assert rows[1].alike == ()
    assert len(rows[8].alike) == 3


def test_a_study_without_a_test_split_cannot_ask_for_it():
    with pytest.raises(SpecErrors, match="no evaluator of this study has a test split"):
        Study("bare", SPACE, [chip], storage="memory://", judge="test")
    bare = Study("bare", SPACE, [chip], storage="memory://", optimizer="exhaustive")
    bare.run()
    assert bare.front.judged is None
    with pytest.raises(StudyError, match="has a test split"):
        bare.judge()


def test_a_failed_measurement_is_shown_and_measured_again_on_request(monkeypatch):
    study = begin()
    function = network.function

    def failing(bits: int, split: str = "search") -> object:
        if split == "test" and bits == 4:
            raise ValueError("no examples")
        return function(bits, split)

    monkeypatch.setattr(network, "function", failing)
    study.run(on_error="keep")
    failures = [row.failure for row in study.front.judged.rows if row.failure]
    assert failures == ["raised: ValueError: no examples"]
    monkeypatch.undo()
    CALLS.clear()
    study.judge()
    assert of_split("test") == [4]
    assert not any(row.failure for row in study.front.judged.rows)


def test_a_limit_that_breaks_on_the_test_split_is_marked():
    study = begin(constraints="network.accuracy >= 0.505")
    study.run()
    feasible = {study.trials[r.trial].design["bits"]: r.feasible for r in study.front.judged.rows}
    assert feasible[1] is False
    assert all(feasible[bits] for bits in range(2, 9))


def test_results_on_the_test_split_are_exported_and_listed_with_the_front(tmp_path):
    study = begin()
    study.run()
    study.record.export(tmp_path / "judged.jsonl")
    url = f"sqlite:///{tmp_path}/other.db"
    dse.import_study(tmp_path / "judged.jsonl", storage=url)
    there = Study.load("judged", url)
    assert there.front.judged == study.front.judged
    row = there.record.answer["front"][0]
    assert row["test"]["stderr"] == pytest.approx([0.0, 0.02])
    assert "(test)" in there.front._repr_html_()
    page = there.report(tmp_path / "page.html").read_text()
    assert "The front on the test split" in page
    assert JUDGED not in [event["kind"] for event in there.record.status["events"]]
    assert json.dumps(there.record.answer)


def run_in(folder: str, begun: object) -> None:
    """Run the study in another process; write each measured design to a file of that process."""
    function = network.function

    def listed(bits: int, split: str = "search") -> dict[str, object]:
        if split == "test":
            with Path(f"{folder}/{os.getpid()}").open("a") as file:
                file.write(f"{bits}\n")
            time.sleep(0.02)
        return function(bits, split)

    network.function = listed
    study = begin(f"sqlite:///{folder}/dse.db")
    begun.wait()
    study.run()


def test_two_drivers_measure_no_design_twice(tmp_path):
    begin(f"sqlite:///{tmp_path}/dse.db", judge="none").run()
    fork = multiprocessing.get_context("fork")
    begun = fork.Barrier(2)
    drivers = [fork.Process(target=run_in, args=(str(tmp_path), begun)) for _ in range(2)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(60)
    assert [driver.exitcode for driver in drivers] == [0, 0]
    lists = [file.read_text().split() for file in tmp_path.glob("[0-9]*")]
    assert sorted(int(bits) for one in lists for bits in one) == list(range(1, 9))
    assert len(begin(f"sqlite:///{tmp_path}/dse.db").front.judged.rows) == 8


def test_what_a_lost_driver_claimed_is_measured_by_the_next_run(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    study = begin(url, judge="none")
    study.run()
    storage = study.engine.storage
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    lost = storage.enter("judged", Driver(host=here(), pid=dead.pid, started=""))
    storage.record("judged", [claim_event(number, lost, 8) for number in range(8)])
    begin(url).run()
    assert sorted(of_split("test")) == list(range(1, 9))


def test_what_another_living_driver_claimed_is_left_to_it(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    study = begin(url, judge="none")
    study.run()
    storage = study.engine.storage
    other = storage.enter("judged", Driver(host="elsewhere", pid=1, started=""))
    storage.record("judged", [claim_event(number, other, 8) for number in range(4)])
    begin(url).run()
    assert len(of_split("test")) == 4
    begin(url).judge()
    assert sorted(of_split("test")) == list(range(1, 9))


def test_a_merged_study_keeps_the_results_on_the_test_split():
    storage = MemoryStorage()
    study = begin(storage)
    study.run()
    copy = begin(storage, name="copy")
    copy.run()
    CALLS.clear()
    dse.merge(study, copy, name="both", storage=storage)
    merged = Study.load("both", storage)
    assert merged.front.judged.rows == study.front.judged.rows
    assert CALLS == []
