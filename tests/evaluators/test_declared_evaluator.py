"""A declared evaluator: its inputs and metrics from its header, its options from its fields."""

from __future__ import annotations

import doctest
import functools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, SpecError
from dse.protocols import ChecksValues, is_pure
from dse.registry import check_options
from dse.testing.evaluator_contract import EvaluatorContract
from dse_evaluators import declared_evaluator
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of

INPUTS: Mapping[str, Reading] = {
    "intensity": NumberInput(0, 1e6, "FLOP/B"),
    "bandwidth": NumberInput(1, 1e15, "B/s", default=1e12),
    "number_format": one_of(("fp16", "fp8"), "fp16"),
}
ROWS: Mapping[str, Reading] = {"rows": NumberInput(1, 8), "kind": NumberInput(0, 1, default=0.0)}
ATTAINED = Metric(name="attained", unit="FLOP/s", goal="maximize")


class Roofline(DeclaredEvaluator, reads=INPUTS, provides=[ATTAINED], version="3"):
    """Attainable rate of a kernel."""

    peak: float
    bandwidth: float | str | None = None
    scales: Sequence[float] = field(default_factory=lambda: [1.0, 2.0])

    def __post_init__(self) -> None:
        if not self.peak > 0:
            raise SpecError(f"peak cannot be {self.peak}")
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics | Mapping[str, Floats]:
        """Return the rates of n kernels."""
        peak = self.peak * np.array(self.scales)[inputs["number_format"].astype(int)]
        idle = np.flatnonzero(inputs["intensity"] == 0).tolist()
        failure = Failure(kind="infeasible", reason="the kernel computes nothing")
        attained = np.minimum(peak, inputs["bandwidth"] * inputs["intensity"])
        return Metrics(columns={"attained": attained}, failures=dict.fromkeys(idle, failure))


class Doubled(
    DeclaredEvaluator,
    reads=ROWS,
    provides=[Metric(name="twice")],
    version="1",
    kind="measured",
):
    """Twice the rows, of an input whose range depends on an option."""

    most: int = 4

    def __post_init__(self) -> None:
        self.declare(Readings.of({**ROWS, "rows": NumberInput(1, self.most)}, self))

    def compute(self, inputs: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return twice the rows."""
        return {"twice": 2 * inputs["rows"]}


class TestRoofline(EvaluatorContract):
    @pytest.fixture
    def make(self):
        return functools.partial(Roofline, peak=1e13)

    @pytest.fixture
    def batch(self):
        designs: list[Mapping[str, Value]] = [
            {"intensity": 1.0, "number_format": "fp8"},
            {"intensity": 64.0, "bandwidth": 2e12, "number_format": "fp16"},
            {"intensity": 0.0, "number_format": "fp8"},
        ]
        return Batch.of(designs)


def test_the_header_declares_inputs_metrics_kind_and_version():
    roofline = Roofline(peak=1e13)
    assert roofline.reads == {"intensity"}
    assert roofline.optional == {"bandwidth", "number_format"}
    assert roofline.units == {"intensity": "FLOP/B", "bandwidth": "B/s"}
    assert roofline.provides == {"attained": ATTAINED}
    assert (roofline.kind, roofline.version, is_pure(roofline)) == ("modelled", "3", True)


def test_an_option_with_the_name_of_an_input_fixes_it():
    roofline = Roofline(peak=1e13, bandwidth="2 TB/s")
    assert roofline.optional == {"number_format"}
    found = roofline.evaluate(Batch.of([{"intensity": 2.0}])).columns["attained"]
    assert found.tolist() == [4e12]


def test_the_options_are_the_fields():
    check_options("evaluators", "roofline", Roofline, {"peak": 1e13, "scales": [1, 4]})
    with pytest.raises(PluginError, match="has no option 'peek'"):
        check_options("evaluators", "roofline", Roofline, {"peak": 1e13, "peek": 1})
    with pytest.raises(PluginError, match="needs the option 'peak'"):
        check_options("evaluators", "roofline", Roofline, {})
    assert repr(Doubled(most=3)) == "Doubled(most=3)"


def test_values_that_an_input_cannot_have_are_rejected():
    roofline = Roofline(peak=1e13)
    assert isinstance(roofline, ChecksValues)
    with pytest.raises(SpecError, match="number_format cannot be 'fp4'"):
        roofline.check_values({"number_format": ("fp16", "fp4")})
    with pytest.raises(SpecError, match="bandwidth cannot be 0"):
        Roofline(peak=1e13, bandwidth=0)
    with pytest.raises(SpecError, match="peak cannot be -1"):
        Roofline(peak=-1)


def test_inputs_may_depend_on_an_option():
    Doubled(most=3).check_values({"rows": (3,)})
    with pytest.raises(SpecError, match="rows cannot be 4"):
        Doubled(most=3).check_values({"rows": (4,)})


def test_an_input_may_have_the_name_of_an_attribute():
    assert Doubled().optional == {"kind"}


def test_a_measured_one_is_not_pure():
    assert (Doubled().kind, is_pure(Doubled())) == ("measured", False)


def test_a_modelled_one_that_starts_programs_says_so():
    class Asking(DeclaredEvaluator, reads={}, provides=[], version="1", pure=False):
        """A model in another program."""

    assert (Asking().kind, is_pure(Asking())) == ("modelled", False)


def test_columns_alone_are_metrics_without_faults():
    found = Doubled().evaluate(Batch.of([{"rows": 2}, {"rows": 3}]))
    assert found.columns["twice"].tolist() == [4.0, 6.0]
    assert not found.failures


def test_it_has_no_metrics_without_a_function():
    class Nothing(DeclaredEvaluator, reads={}, provides=[], version="1"):
        """Nothing."""

    with pytest.raises(NotImplementedError, match="Nothing defines neither"):
        Nothing().evaluate(Batch.of([{"rows": 2}]))


def test_it_is_equal_to_itself_only_and_can_be_pickled():
    assert Doubled() != Doubled()
    assert pickle.loads(pickle.dumps(Doubled(most=3))).most == 3


def test_the_example_runs():
    assert doctest.testmod(declared_evaluator).failed == 0
