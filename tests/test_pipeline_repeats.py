"""An evaluator is asked once for rows that agree in all that it depends on."""

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Metric, Metrics
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import Pipeline


class Square:
    """Squares what it reads, and keeps how many rows it was asked for."""

    optional = frozenset()
    units = {}
    kind = "modelled"
    pure = True
    version = "1"
    provides = {"square": Metric(name="square")}
    reads = frozenset({"x"})

    def __init__(self):
        self.asked = []

    def evaluate(self, batch):
        self.asked.append(len(batch))
        failures = {
            row: Failure(kind="infeasible", reason="nine")
            for row in np.flatnonzero(batch["x"] == 9)
        }
        return Metrics(columns={"square": batch["x"] ** 2.0}, failures=failures)


def bound(name, reads):
    return Bound(name=name, evaluator=Square(), names={"x": reads})


def batch():
    """Thirty designs over x of three values and y of five."""
    x, y = np.arange(30, dtype=np.int32) % 3, np.arange(30, dtype=np.int32) % 5
    return Batch({"x": Column.coded((2, 4, 9), x), "y": Column.coded((1, 2, 3, 4, 5), y)}, 30)


def test_rows_that_agree_are_evaluated_once_and_told_for_all():
    one = bound("one", "x")
    known = Pipeline([one]).known(batch())
    assert one.evaluator.asked == [3]
    assert known.columns["one.square"].tolist() == [4, 16, 81] * 10
    assert list(known.failures) == list(range(2, 30, 3))


def test_what_reads_a_metric_is_asked_once_for_what_that_depends_on():
    first, second = bound("one", "y"), bound("two", "one.square")
    known = Pipeline([first, second]).known(batch())
    assert second.evaluator.asked == [5]
    assert known.columns["two.square"][:5].tolist() == [1, 16, 81, 256, 625]


def test_rows_that_all_differ_are_evaluated_as_they_come():
    one = bound("one", "x")
    Pipeline([one]).known(Batch({"x": Column(np.arange(30.0))}, 30))
    assert one.evaluator.asked == [30]
