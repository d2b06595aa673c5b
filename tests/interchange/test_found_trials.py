"""Trials of elsewhere: what is taken of each, and why another one is not."""

import pytest

from dse.core.trial import State
from dse.errors import StudyError
from dse.interop.found_trials import ExternalTrial, read_table
from dse.storage.memory import MemoryStorage
from dse.study.import_trials import begun
from dse.study.study_engine import StudyEngine

TIMED = """
study: timed
space: space.yaml
evaluators:
  bench: {use: command, run: [python, bench.py], metrics: {time: ms, loss: ''}}
objectives: [{minimize: bench.time}, {maximize: bench.loss}]
constraints: [bench.time <= 2 ms]
optimizer: random
budget: {trials: 4}
"""


@pytest.fixture
def timed(measured_file):
    measured_file.write_text(TIMED)
    return measured_file


def taken(path, *found):
    return begun(path, found, source="elsewhere", storage=MemoryStorage())


def test_an_objective_that_is_one_metric_tells_that_metric_in_its_unit(timed):
    new = taken(timed, ExternalTrial(values={"a": 1, "b": 2}, objectives=(1.5, 0.25)))
    assert new.study.trials[0].metrics == {"bench.time": 1.5, "bench.loss": 0.25}
    assert len(new.study.front.trials) == 1


def test_a_metric_that_is_told_itself_comes_before_an_objective(timed):
    values = {"a": 1, "b": 2, "bench.time": 1500}
    new = taken(
        timed, ExternalTrial(values=values, units={"bench.time": "us"}, objectives=(9.0, 0.25))
    )
    assert new.study.trials[0].metrics["bench.time"] == 1.5


def test_failures_are_kept_with_their_reason(timed):
    done = ExternalTrial(values={"a": 1, "b": 1}, objectives=(1.0, 1.0))
    failed = ExternalTrial(values={"a": 2, "b": 1}, state=State.FAILED, reason="out of memory")
    impossible = ExternalTrial(values={"a": 3, "b": 1}, state=State.INFEASIBLE, reason="too hot")
    trials = taken(timed, done, failed, impossible).study.trials
    assert [trial.state for trial in trials] == [State.DONE, State.FAILED, State.INFEASIBLE]
    assert [trial.failure.reason for trial in trials[1:]] == ["out of memory", "too hot"]


def test_why_trials_are_left_out_is_counted(timed):
    good = ExternalTrial(values={"a": 1, "b": 1}, objectives=(1.0, 1.0))
    running = ExternalTrial(values={"a": 2, "b": 1}, state=State.PENDING)
    strange = ExternalTrial(values={"depth": 3}, objectives=(1.0, 1.0))
    silent = ExternalTrial(values={"a": 3, "b": 1})
    new = taken(timed, good, good, running, strange, silent)
    assert new.left_out == {
        "its design was there before": 1,
        "it is pending": 1,
        "it has none of the space's parameters": 1,
        "it lacks bench.loss, which is measured": 1,
    }


def test_a_number_may_be_a_text_or_a_float(timed):
    texts = ExternalTrial(values={"a": 2.0, "b": 1}, objectives=(1.0, 1.0))
    assert dict(taken(timed, texts).study.trials[0].design) == {"a": 2, "b": 1}


def test_a_design_that_lacks_a_parameter_is_outside(timed):
    new = taken(timed, ExternalTrial(values={"a": 1}, objectives=(1.0, 1.0)))
    assert (new.inside, new.outside) == (0, 1)
    assert new.study.front.trials == ()


def test_a_study_that_exists_is_not_begun_again(timed):
    storage = MemoryStorage()
    found = [ExternalTrial(values={"a": 1, "b": 1}, objectives=(1.0, 1.0))]
    begun(timed, found, source="elsewhere", storage=storage)
    with pytest.raises(StudyError, match="there is a study 'timed' already"):
        begun(timed, found, source="elsewhere", storage=storage)
    assert len(StudyEngine.load("timed", storage).trials) == 1


def test_nothing_to_take_begins_nothing(timed):
    storage = MemoryStorage()
    with pytest.raises(StudyError, match="no trial of elsewhere can be imported"):
        begun(timed, [], source="elsewhere", storage=storage)
    assert storage.studies() == []


def test_a_table_tells_units_numbers_truths_and_words(tmp_path):
    (tmp_path / "t.csv").write_text(
        "bits[0], clock [MHz] ,on,format,state,reason\n8,1e3,true,int4,failed,hot\n4,,FALSE,,,\n"
    )
    first, second = read_table(tmp_path / "t.csv")
    assert first.values == {
        "bits[0]": 8,
        "clock": 1000.0,
        "on": True,
        "format": "int4",
        "state": "failed",
        "reason": "hot",
    }
    assert first.units["clock"] == "MHz"
    assert (first.state, first.reason) == (State.FAILED, "hot")
    assert second.values == {"bits[0]": 4, "on": False}
    assert second.state is State.DONE
