"""Contract tests of an evaluator with a test split: subclass, override fixtures, run pytest.

.. code-block:: python

    class TestMine(HeldOutSplitContract):
        @pytest.fixture
        def evaluator(self):
            return Mine(model="net.onnx")

        @pytest.fixture
        def batch(self):
            return Batch.of([{"bits": 4}, {"bits": 8}])
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.values import Floats
from dse.protocols import RESAMPLE, Evaluator, HasTestSplit, find_test_evaluator

_WIDEST = 6.0
"""Standard errors by which the mean of resamples may differ from the metric; chance gives 0.1."""


class HeldOutSplitContract:
    """Contract tests of evaluators with a test split."""

    @pytest.fixture
    def evaluator(self) -> Evaluator:
        """Return the evaluator under test, as a search uses it."""
        raise NotImplementedError("the contract needs the fixture 'evaluator'")

    @pytest.fixture
    def batch(self) -> Batch:
        """Return at least two designs, one of which can be evaluated."""
        raise NotImplementedError("the contract needs the fixture 'batch'")

    @pytest.fixture
    def noisy(self) -> frozenset[str]:
        """Return the names of metrics that vary from call to call, such as a measured time."""
        return frozenset()

    @pytest.fixture
    def searched(self, evaluator: Evaluator, batch: Batch) -> Metrics:
        """Return the metrics of the designs in ``batch`` that the search receives."""
        return evaluator.evaluate(batch)

    @pytest.fixture
    def tested(self, evaluator: Evaluator, batch: Batch, searched: Metrics) -> Metrics:  # noqa: ARG002 - after the search
        """Return the metrics of the designs in ``batch`` on the test split."""
        return _test_evaluator(evaluator).evaluate(batch)

    def test_it_reads_the_same_inputs_and_provides_the_same_metrics(
        self, evaluator: Evaluator
    ) -> None:
        other = _test_evaluator(evaluator)
        assert (other.reads, other.optional) == (evaluator.reads, evaluator.optional)
        assert other.kind == evaluator.kind
        whole = {name: one for name, one in other.provides.items() if RESAMPLE not in name}
        assert whole == dict(evaluator.provides)

    def test_it_measures_on_examples_that_the_search_does_not_use(
        self, searched: Metrics, tested: Metrics, noisy: frozenset[str]
    ) -> None:
        names = searched.columns.keys() - noisy
        good = [row for row in _rows(searched) if row not in searched.failures]
        assert good
        assert any((searched.columns[n][good] != tested.columns[n][good]).any() for n in names)
        assert tested.failures.keys() == searched.failures.keys()

    def test_a_measurement_on_the_test_split_leaves_the_search_as_it_was(
        self,
        evaluator: Evaluator,
        batch: Batch,
        searched: Metrics,
        tested: Metrics,  # noqa: ARG002 - measured in between
        noisy: frozenset[str],
    ) -> None:
        again = evaluator.evaluate(batch)
        for name in searched.columns.keys() - noisy:
            assert np.array_equal(again.columns[name], searched.columns[name], equal_nan=True)

    def test_resamples_of_a_metric_are_numbered_and_lie_around_it(
        self, evaluator: Evaluator, tested: Metrics
    ) -> None:
        numbers: dict[str, list[int]] = {}
        for full in _test_evaluator(evaluator).provides:
            name, mark, number = full.partition(RESAMPLE)
            if mark:
                numbers.setdefault(name, []).append(int(number))
        for name, found in numbers.items():
            assert name in evaluator.provides
            assert sorted(found) == list(range(len(found)))
            assert len(found) > 1
            for row in (row for row in _rows(tested) if row not in tested.failures):
                _check_resamples(tested, name, len(found), row)

    def test_the_same_design_has_the_same_metrics_on_the_test_split(
        self, evaluator: Evaluator, batch: Batch, tested: Metrics, noisy: frozenset[str]
    ) -> None:
        again = pickle.loads(pickle.dumps(_test_evaluator(evaluator))).evaluate(batch)  # noqa: S301 - our own bytes
        for name in tested.columns.keys() - noisy:
            assert np.array_equal(again.columns[name], tested.columns[name], equal_nan=True)

    def test_the_evaluator_on_the_test_split_has_no_further_one(self, evaluator: Evaluator) -> None:
        assert find_test_evaluator(_test_evaluator(evaluator)) is None


def _check_resamples(tested: Metrics, name: str, count: int, row: int) -> None:
    """Assert that resamples of a metric have a mean near its value; some may be undefined."""
    columns = [tested.columns.get(f"{name}{RESAMPLE}{number}") for number in range(count)]
    values: Floats = np.array([np.nan if one is None else one[row] for one in columns])
    if np.isnan(values).any():
        return
    error = max(float(values.std(ddof=1)), 1e-12)
    assert abs(values.mean() - tested.columns[name][row]) <= _WIDEST * error + 1e-6


def _rows(found: Metrics) -> range:
    return range(len(next(iter(found.columns.values()))))


def _test_evaluator(evaluator: Evaluator) -> Evaluator:
    assert isinstance(evaluator, HasTestSplit)
    found = evaluator.test_evaluator()
    assert found is not None
    return found
