"""What an evaluator reports is heard where its trial was begun, and may end it."""

import time

import pytest

import dse
from dse.core.design import Design
from dse.core.trial import State
from dse.errors import EvaluationError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.evaluation.reporting import Stopped, listening, report
from dse.executors.processes import Processes
from dse.executors.serial import Serial
from dse.protocols import Task
from dse.testing.training import train
from dse_evaluators.generic.command import Command
from dse_evaluators.generic.python import Python

TASK = Task(number=7, design=Design({"rate": 9.0}))


class Ear:
    """Remembers what it hears, and stops a trial at a step."""

    def __init__(self, stop=None):
        self.heard = []
        self.stop = stop

    def __call__(self, number, step, metrics):
        self.heard.append((number, step, metrics))
        return step == self.stop


def trained() -> Pipeline:
    evaluator = Python(function=train, metrics={"loss": ""}, reads=["rate"])
    return Pipeline([Bound(name="net", evaluator=evaluator, names={"rate": "rate"})])


def commanded(tmp_path, program, **options) -> Pipeline:
    import sys

    (tmp_path / "bench.py").write_text(program)
    evaluator = Command(
        run=[sys.executable, "-u", "bench.py"], metrics={"loss": ""}, cwd=str(tmp_path), **options
    )
    return Pipeline([Bound(name="net", evaluator=evaluator, names={})])


@pytest.fixture(params=["serial", "processes"])
def executor_of(request):
    made = []

    def make(work, ear):
        executor = Serial(work) if request.param == "serial" else Processes(work, workers=1)
        executor.on_report = ear
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.close()


def outcome(executor):
    executor.submit(TASK)
    return executor.collect()[TASK.number]


def test_without_a_study_a_report_is_heard_by_nobody():
    assert train(9.0) == {"loss": 1.0}


@pytest.mark.slow
def test_reports_are_heard_in_order_under_the_studys_names(executor_of):
    ear = Ear()
    ended = outcome(executor_of(trained(), ear))
    assert ear.heard == [(7, step, {"net.loss": 9.0 / step}) for step in range(1, 10)]
    assert (ended.state, ended.metrics) == (State.DONE, {"net.loss": 1.0})


@pytest.mark.slow
def test_a_trial_that_is_stopped_ends_with_what_it_reported_last(executor_of):
    ear = Ear(stop=3)
    ended = outcome(executor_of(trained(), ear))
    assert [step for _, step, _ in ear.heard] == [1, 2, 3]
    assert (ended.state, ended.metrics) == (State.STOPPED, {"net.loss": 3.0})
    assert ended.measured == 1
    assert ended.failure is None


@pytest.mark.slow
def test_a_worker_that_stopped_a_trial_takes_the_next(executor_of):
    executor = executor_of(trained(), Ear(stop=3))
    assert outcome(executor).state is State.STOPPED
    executor.on_report = Ear()
    assert outcome(executor).state is State.DONE


@pytest.mark.slow
def test_time_in_which_the_driver_is_busy_is_no_time_of_the_task():
    executor = Processes(trained(), workers=1, timeout_s=5.0)
    executor.on_report = lambda number, step, metrics: time.sleep(0.6)
    ended = outcome(executor)
    executor.close()
    assert ended.state is State.DONE


LINES = """
import json, sys
print("warming up")
for step in range(1, 10):
    print(json.dumps({"step": step, "loss": 9 / step, "phase": "train"}))
print(json.dumps({"loss": 1.0}))
"""
ENDLESS = """
import json, os, sys, time
for step in range(1, 10**6):
    print(json.dumps({"step": step, "loss": 9 / step}))
    open("steps", "w").write(str(step))
    time.sleep(0.05)
"""


def test_lines_of_a_program_are_reports(tmp_path):
    pipeline, ear = commanded(tmp_path, LINES), Ear()
    pipeline.on_report = ear
    (ended,) = pipeline([TASK])
    assert ear.heard == [(7, step, {"net.loss": 9 / step}) for step in range(1, 10)]
    assert ended.metrics == {"net.loss": 1.0}


def test_a_program_that_is_stopped_is_killed(tmp_path):
    pipeline, ear = commanded(tmp_path, ENDLESS), Ear(stop=3)
    pipeline.on_report = ear
    (ended,) = pipeline([TASK])
    assert [step for _, step, _ in ear.heard] == [1, 2, 3]
    assert (ended.state, ended.metrics) == (State.STOPPED, {"net.loss": 3.0})
    steps = (tmp_path / "steps").read_text()
    time.sleep(0.2)
    assert (tmp_path / "steps").read_text() == steps


@pytest.mark.parametrize(
    "line",
    [
        '{"step": "3", "loss": 1}',
        '{"step": true, "loss": 1}',
        '{"step": 1, "loss": NaN}',
        '{"step": 1, ',
        '["step", 1]',
        '{"steps": 1}',
        '{"epoch": 3, "loss": 1}',
    ],
)
def test_a_line_that_is_no_report_is_the_programs_own_affair(tmp_path, line):
    program = f"print('''{line}''')\nprint('{{\"loss\": 1.0}}')"
    pipeline, ear = commanded(tmp_path, program), Ear()
    pipeline.on_report = ear
    (ended,) = pipeline([TASK])
    assert ear.heard == []
    assert ended.metrics == {"net.loss": 1.0}


def test_a_number_that_is_not_finite_is_no_report():
    with listening(lambda step, metrics: False), pytest.raises(EvaluationError, match="step 3"):
        report(3, {"loss": float("nan")})


def test_a_stop_passes_through_what_catches_every_error():
    with listening(lambda step, metrics: True), pytest.raises(Stopped):
        careless()


def test_what_a_stopped_trial_said_is_no_reading():
    pipeline = trained()
    pipeline.on_report = Ear(stop=3)
    (ended,) = pipeline([TASK])
    readings = MeasurementCache(pipeline)
    from dse.core.trial import Trial

    readings.learn(Trial(number=7, design=TASK.design).finished(ended))
    assert readings.task(Trial(number=8, design=TASK.design)).given == {}


def test_a_model_knows_what_earlier_evaluators_said():
    from dse_evaluators.generic.python import Python

    area = Python(function=area_of, metrics={"area": ""}, reads=["rate"], kind="modelled")
    bound = [
        *trained().bound,
        Bound(name="chip", evaluator=area, names={"rate": "rate"}),
    ]
    pipeline, ear = Pipeline(bound), Ear(stop=1)
    pipeline.on_report = ear
    (ended,) = pipeline([TASK])
    assert ear.heard == [(7, 1, {"chip.area": 18.0, "net.loss": 9.0})]
    assert ended.metrics == {"chip.area": 18.0, "net.loss": 9.0}


def careless():
    try:
        dse.report(1, {})
    except Exception:  # noqa: BLE001 - that is the carelessness
        return


def area_of(rate):
    return {"area": 2 * rate}
