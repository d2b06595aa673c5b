"""Ask and tell: the caller's own loop is a driver as any other, and its record is proved."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from dse import InfeasibleError, Metric, Study, evaluator
from dse.core.trial import State
from dse.errors import SpecError, StudyError
from dse.study.replay import Replay
from tests.api.asked_study import GOALS, SPACE, asked, cost, drive


@pytest.mark.parametrize("optimizer", ["sobol", "nsga2", "auto"])
def test_one_at_a_time_it_is_the_study_that_runs_by_itself(optimizer):
    own = asked(optimizer=optimizer, budget={"measurements": 12}, seed=3)
    drive(own)
    name = {"told": evaluator(*GOALS)(cost)}
    runs = Study(
        "runs", SPACE, name, storage="memory://", optimizer=optimizer, seed=3, executor="serial"
    )
    runs.run(measurements=12)
    measured = [trial for trial in own.trials if trial.measured]
    assert len(measured) == 12
    assert [t.design for t in measured] == [t.design for t in runs.trials if t.measured]
    assert own.front.found.losses.tolist() == runs.front.found.losses.tolist()


def test_four_at_once_are_four_different_designs_and_the_record_is_proved():
    study = asked(optimizer="nsga2", budget={"measurements": 20})
    first = study.ask(4)
    assert len({trial.design for trial in first}) == 4
    for trial in reversed(first):
        study.tell(trial, cost(**trial.design))
    drive(study, at_once=3)
    assert sum(trial.measured for trial in study.trials) == 20
    proof = Replay(study.engine).proof()
    assert proof.mismatch is None
    assert proof.trials == len(study.trials)


def test_nothing_is_asked_ahead_of_time():
    study = asked(optimizer="sobol")
    for _ in range(3):
        (trial,) = study.ask()
        study.tell(trial, cost(**trial.design))
        assert len(study.trials) == trial.number + 1
    study.close()
    assert [trial.state.value for trial in study.trials] == ["done"] * 3


def test_what_is_told_is_stored_when_tell_returns(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    study = asked(url, optimizer="sobol")
    (trial,) = study.ask()
    told = study.tell(trial, {"time": (3.0, 0.5), "reported.memory": 2.0})
    assert told.metrics == {"reported.time": 3.0, "reported.memory": 2.0}
    (stored,) = Study.load("own", url).trials
    assert stored.metrics == told.metrics
    assert stored.spread == {"reported.time": 0.5}
    assert stored.measured == 1
    study.close()


def test_failures_are_told_with_their_reason():
    study = asked(optimizer="sobol", budget={"measurements": 4})
    a, b, c = study.ask(3)
    study.tell(a, failed="the board caught fire")
    study.tell(b.number, infeasible="no such board")
    study.tell(c, cost(**c.design))
    failures = [t.failure and (t.failure.kind, t.failure.reason) for t in study.trials]
    assert failures == [("raised", "the board caught fire"), ("infeasible", "no such board"), None]
    assert [t.state.value for t in study.trials] == ["failed", "infeasible", "done"]
    study.close()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"time": 1.0}, "'reported.memory' is not reported"),
        ({}, "is not reported"),
        ({"time": 1.0, "memory": float("nan")}, "memory is nan"),
        ({"time": "fast", "memory": 1.0}, "time is 'fast'"),
        ({"time": 1.0, "memory": 1.0, "power": 3.0}, "there is no metric 'power'"),
        ({"time": "3.0", "memory": 1.0}, "time is '3.0'"),
        ({"time": True, "memory": 1.0}, "time is True"),
        ({"time": 1.0, "memory": 10**400}, "memory is 1000"),
        ({"time": (1.0, -0.2), "memory": 1.0}, r"time is \(1.0, -0.2\)"),
        ({"time": (1.0, float("nan")), "memory": 1.0}, r"time is \(1.0, nan\)"),
        (3.0, "3.0 is no mapping from metrics to numbers"),
        ([1.0, 2.0], "is no mapping"),
        (None, "nothing is reported for the design"),
    ],
)
def test_what_is_told_badly_can_be_told_again(told, words):
    study = asked(optimizer="sobol")
    (trial,) = study.ask()
    with pytest.raises(SpecError, match=words):
        study.tell(trial, told)
    assert study.tell(trial, cost(**trial.design)).state.value == "done"
    study.close()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"failed": MemoryError("of 3 GiB")}, "MemoryError: of 3 GiB"),
        ({"infeasible": InfeasibleError("no such board")}, "no such board"),
        ({"failed": ""}, "no reason given"),
    ],
)
def test_what_was_caught_is_a_reason_and_none_is_one_too(words, reason):
    study = asked(optimizer="sobol")
    told = study.tell(study.ask()[0], **words)
    study.close()
    assert told.failure.reason == reason
    assert told.failure.kind == ("infeasible" if "infeasible" in words else "raised")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"metrics": {"time": 1.0, "memory": 1.0}, "failed": "why"}, "more than one thing"),
        ({"failed": "why", "infeasible": "no"}, "more than one thing"),
        ({"failed": True}, "True is no reason"),
    ],
)
def test_one_thing_is_told_of_a_design(words, problem):
    study = asked(optimizer="sobol")
    (trial,) = study.ask()
    with pytest.raises(SpecError, match=problem):
        study.tell(trial, **words)
    assert study.tell(trial, cost(**trial.design)).state.value == "done"
    study.close()


@pytest.mark.parametrize("count", [0, -1, 2.0, "2", None])
def test_a_count_that_is_none_leaves_the_study_as_it_was(count):
    study = asked(optimizer="sobol")
    with pytest.raises(SpecError, match="designs cannot be asked"):
        study.ask(count)
    assert len(study.ask(np.int64(2))) == 2
    study.close()


def test_a_trial_is_told_by_itself_or_by_its_number():
    study = asked(optimizer="sobol")
    (trial,) = study.ask()
    with pytest.raises(SpecError, match="is no trial"):
        study.tell(trial.design, cost(**trial.design))
    assert study.tell(np.int64(trial.number), cost(**trial.design)).number == trial.number
    study.close()


def test_a_study_that_is_to_go_to_another_process_says_how():
    with pytest.raises(TypeError, match=r"Study.load\(name"):
        pickle.dumps(asked())


def test_only_what_was_asked_can_be_told_and_once():
    study = asked(optimizer="sobol")
    with pytest.raises(StudyError, match="nothing was asked"):
        study.tell(0, cost(16, 1))
    (trial,) = study.ask()
    with pytest.raises(StudyError, match="trial 7 waits for no result") as caught:
        study.tell(7, cost(16, 1))
    assert caught.value.hint == "trials that wait for a result: 0"
    study.tell(trial, cost(**trial.design))
    with pytest.raises(StudyError, match="trial 0 waits for no result"):
        study.tell(trial, cost(**trial.design))
    with pytest.raises(SpecError, match="0 designs cannot be asked"):
        study.ask(0)
    study.close()


def test_who_leaves_gives_back_what_was_not_told():
    study = asked(optimizer="sobol")
    trials = study.ask(3)
    study.tell(trials[1], cost(**trials[1].design))
    study.close()
    assert [t.state.value for t in study.trials] == ["pending", "done", "pending"]
    again = study.ask(2)
    assert [t.number for t in again] == [0, 2]
    assert [t.design for t in again] == [trials[0].design, trials[2].design]
    study.close()


def test_a_cell_that_is_run_again_takes_up_what_it_had_asked(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    study = asked(url, optimizer="sobol")
    first = study.ask(2)
    loop = study._asking._thread
    del study
    loop.join(300)
    study = asked(url, optimizer="sobol")
    assert [t.design for t in study.ask(2)] == [t.design for t in first]
    study.close()


def test_who_must_report_first_is_told_which_trials_and_the_study_goes_on():
    study = asked(optimizer="auto")
    (first,) = study.ask(4)
    with pytest.raises(StudyError, match=r"before earlier ones are reported: trial 0\b") as caught:
        study.ask(4)
    assert "study.tell(0, ...)" in caught.value.hint
    study.tell(first, cost(**first.design))
    assert len(study.ask(4)) == 4
    study.close()


def test_a_program_that_just_ends_leaves_its_trials_to_the_next(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    program = (
        "from dse import Metric, Study\n"
        f"study = Study('own', {SPACE!r}, metrics=[Metric('time', 'us', goal='minimize'),"
        f" Metric('memory', 'KiB', goal='minimize')], storage={url!r}, optimizer='sobol')\n"
        "study.ask(2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    study = asked(url, optimizer="sobol")
    assert [t.number for t in study.ask(3)] == [0, 1, 2]
    study.close()


def test_what_models_say_need_not_be_told():
    power = evaluator(Metric("power", "W", goal="minimize"), kind="modelled")(
        lambda stages: {"power": 2.0 * stages}
    )
    study = Study(
        "own",
        SPACE,
        {"chip": power},
        metrics=GOALS[:1],
        storage="memory://",
        budget={"measurements": 6},
    )
    while trials := study.ask(2):
        for trial in trials:
            stored = study.tell(trial, {"time": 1000 / trial.design["tile"]})
            assert stored.metrics["chip.power"] == 2.0 * trial.design["stages"]
    assert sum(t.measured for t in study.trials) == 6


def test_an_error_of_the_loop_is_raised_where_one_asks():
    study = asked(optimizer="sobol")
    (trial,) = study.ask()
    study.engine.storage.delete("own")
    with pytest.raises(StudyError):
        study.tell(trial, cost(**trial.design))


@pytest.mark.parametrize("told", [np.True_, b"3.1", True, "3.1"])
def test_truths_and_texts_are_no_numbers(told):
    study = asked()
    (trial,) = study.ask()
    with pytest.raises(SpecError, match="time is"):
        study.tell(trial, {"time": told, "memory": 1.0})


def test_an_empty_reason_beside_numbers_is_none():
    study = asked()
    (trial,) = study.ask()
    assert study.tell(trial, cost(**trial.design), failed="").state is State.DONE


def test_the_older_argument_continues_a_study_with_its_older_names(tmp_path):
    storage = f"sqlite:///{tmp_path / 'dse.db'}"
    for _ in range(2):
        with pytest.warns(FutureWarning, match="'told' is called 'metrics' now"):
            study = Study("own", SPACE, told=GOALS, storage=storage)
    assert sorted(study.problem.metrics) == ["told.memory", "told.time"]
