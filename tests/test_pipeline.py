"""Evaluators in a row: each shown what it reads, each answer checked, nothing measured twice."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.metric import Failure, Metric, Metrics
from dse.core.trial import Outcome, State, Trial
from dse.errors import InfeasibleError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.protocols import Task


class Evaluate:
    """An evaluator from a function of a batch."""

    optional = frozenset()
    version = "1"

    def __init__(self, function, *provides, kind="modelled", units=None, pure=True):
        self.evaluate = function
        self.pure = pure
        self.provides = {name: Metric(name=name) for name in provides}
        self.kind = kind
        self.reads = frozenset()
        self.units = units or {}


def bound(name, function, *provides, reads=(), kind="modelled", pure=True, **more):
    evaluator = Evaluate(function, *provides, kind=kind, pure=pure)
    return Bound(name=name, evaluator=evaluator, names={r: r for r in reads}, **more)


def outcome(*evaluators, design=None, given=None):
    task = Task(number=0, design=Design(design or {"x": 2}), given=given or {})
    return Pipeline(evaluators)([task])[0]


def columns(**values):
    return lambda batch: Metrics(columns={k: np.full(len(batch), v) for k, v in values.items()})


def raising(error):
    def evaluate(batch):
        raise error

    return evaluate


def test_a_later_evaluator_reads_the_metrics_of_an_earlier_one():
    double = bound("b", lambda b: Metrics(columns={"y": b["a.x2"] + 1}), "y", reads=["a.x2"])
    square = bound("a", lambda b: Metrics(columns={"x2": b["x"] ** 2.0}), "x2", reads=["x"])
    assert outcome(double, square).metrics == {"a.x2": 4.0, "b.y": 5.0}


def test_an_evaluator_sees_only_what_it_reads_and_in_its_unit():
    seen = []

    def look(batch):
        seen.append((batch.names, batch["clock"].tolist()))
        return Metrics(columns={"y": np.zeros(len(batch))})

    one = Bound(
        name="a",
        evaluator=Evaluate(look, "y"),
        names={"clock": "chip.clock"},
        factors={"clock": 1e-6},
    )
    outcome(one, design={"chip.clock": 2_000_000, "x": 1})
    assert seen == [(frozenset({"clock"}), [2.0])]


@pytest.mark.parametrize(
    ("function", "failure"),
    [
        (raising(ValueError("no")), Failure(kind="raised", reason="ValueError: no")),
        (raising(InfeasibleError("too big")), Failure(kind="infeasible", reason="too big")),
        (raising(TimeoutError("after 3 s")), Failure(kind="timeout", reason="after 3 s")),
        (columns(), Failure(kind="invalid", reason="the metric 'y' is missing")),
        (columns(y=math.nan), Failure(kind="invalid", reason="y is nan")),
        (columns(y=math.inf), Failure(kind="invalid", reason="y is inf")),
        (raising(KeyboardInterrupt()), None),
    ],
)
def test_whatever_an_evaluator_does_wrong_costs_one_trial_and_keeps_its_reason(function, failure):
    if failure is None:
        with pytest.raises(KeyboardInterrupt):
            outcome(bound("a", function, "y"))
        return
    got = outcome(bound("a", function, "y"))
    assert got.failure == failure
    assert got.state is (State.INFEASIBLE if failure.kind == "infeasible" else State.FAILED)


def test_one_bad_row_does_not_cost_the_others():
    def picky(batch):
        if (batch["x"] == 2).any():
            raise ValueError("two")
        return Metrics(columns={"y": batch["x"] * 1.0})

    pipeline = Pipeline([bound("a", picky, "y", reads=["x"])])
    outcomes = pipeline([Task(number=n, design=Design({"x": n})) for n in (1, 2, 3)])
    assert [o.state for o in outcomes] == [State.DONE, State.FAILED, State.DONE]
    assert [o.metrics for o in outcomes] == [{"a.y": 1.0}, {}, {"a.y": 3.0}]


def test_what_a_model_finds_infeasible_is_not_measured():
    calls = []

    def measure(batch):
        calls.append(len(batch))
        return Metrics(columns={"y": np.zeros(len(batch))})

    no_room = Metrics(columns={}, failures={0: Failure(kind="infeasible", reason="no room")})
    got = outcome(
        bound("a-measured", measure, "y", kind="measured"),
        bound("model", lambda _: no_room, "area"),
    )
    assert got.failure == Failure(kind="infeasible", reason="no room")
    assert calls == []
    assert got.measured == 0


def test_a_reading_is_measured_once():
    calls = []

    def measure(batch):
        calls.append(batch["x"].tolist())
        return Metrics(columns={"y": batch["x"] * 1.0}, spread={"y": np.full(len(batch), 0.1)})

    pipeline = Pipeline([bound("a", measure, "y", reads=["x"], kind="measured")])
    readings = MeasurementCache(pipeline)
    first = Trial(number=0, design=Design({"x": 1, "h": 1}))
    done = first.finished(pipeline([readings.task(first)])[0])
    readings.learn(done)
    second = Trial(number=1, design=Design({"x": 1, "h": 2}))
    again = pipeline([readings.task(second)])[0]
    assert calls == [[1]]
    assert (done.measured, again.measured) == (1, 0)
    assert again.metrics == {"a.y": 1.0}
    assert again.spread == {"a.y": 0.1}


def test_known_metrics_are_the_modelled_ones_for_whole_batches():
    model = bound("m", lambda b: Metrics(columns={"y": b["x"] * 2.0}), "y", reads=["x"])
    measured = bound("a", columns(z=1.0), "z", kind="measured")
    behind = bound("f", lambda b: Metrics(columns={"w": b["a.z"]}), "w", reads=["a.z"])
    pipeline = Pipeline([measured, model, behind])
    known = pipeline.known(Batch.of([{"x": 1}, {"x": 3}]))
    assert {name: values.tolist() for name, values in known.columns.items()} == {"m.y": [2.0, 6.0]}
    assert pipeline.sources["f.w"].kind == "measured"


def test_what_is_not_pure_is_left_out_of_what_is_known_until_the_study_runs():
    calls = []

    def program(batch):
        calls.append(len(batch))
        return Metrics(columns={"y": batch["x"] * 2.0})

    model = bound("m", program, "y", reads=["x"], pure=False)
    behind = bound("f", lambda b: Metrics(columns={"w": b["m.y"]}), "w", reads=["m.y"])
    pure = bound("p", lambda b: Metrics(columns={"v": b["x"] * 1.0}), "v", reads=["x"])
    pipeline = Pipeline([model, behind, pure])
    assert list(pipeline.known(Batch.of([{"x": 1}])).columns) == ["p.v"]
    assert calls == []
    assert {name: one.pure for name, one in pipeline.sources.items()} == {
        "m.y": False,
        "f.w": False,
        "p.v": True,
    }
    pipeline.may_start = True
    assert set(pipeline.known(Batch.of([{"x": 1}])).columns) == {"m.y", "f.w", "p.v"}
    assert calls == [1]


def test_an_outcome_without_a_fault_is_done():
    told = outcome(bound("a", columns(y=1.0), "y"))
    assert replace(told, cost_s=0.0) == Outcome(state=State.DONE, metrics={"a.y": 1.0})
