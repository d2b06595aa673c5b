"""A formula over metrics is a metric: read in coherent SI, told in its declared unit."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.core.metric import Metrics
from dse.errors import PluginError, SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import COHERENT
from dse.schema.study.binding import bound_of
from dse_evaluators.generic.expression import Formulas


def formula(text: str, unit: str = "") -> Formulas:
    return Formulas(metrics={"out": {"formula": text, "unit": unit}})


def columns(**values: list[float]) -> Batch:
    arrays = {name.replace("__", "."): Column(np.array(v)) for name, v in values.items()}
    return Batch(arrays, len(next(iter(values.values()))))


def test_it_reads_the_names_of_its_formulas() -> None:
    one = formula("chip.energy * chip.latency", "J s")
    assert one.reads == {"chip.energy", "chip.latency"}


def test_it_wants_its_readings_in_coherent_units() -> None:
    assert formula("energy * time").units == {"energy": COHERENT, "time": COHERENT}


@pytest.mark.parametrize("text", ["max(energy, fmt == 'int8')", "energy * (fmt in ['a', 'b'])"])
def test_a_word_is_read_as_it_is(text: str) -> None:
    known = {"energy": "mJ", "fmt": "text"}
    bound = bound_of("edp", formula(text), {}, known, parameters=["fmt"])
    assert bound.factors == {"energy": 1e-3}


def test_the_result_is_told_in_the_declared_unit() -> None:
    batch = columns(chip__energy=[2e-3], chip__latency=[3e-6])  # J, s
    got = formula("chip.energy * chip.latency", "mJ us").evaluate(batch)
    assert got.columns["out"].tolist() == pytest.approx([6.0])


def test_literals_are_read_with_their_units() -> None:
    got = formula("2 mJ + energy", "uJ")
    assert got.evaluate(columns(energy=[1e-3])).columns["out"].tolist() == pytest.approx([3_000])


def test_in_a_study_each_reading_is_brought_to_coherent_units() -> None:
    bound = Bound(
        name="cost",
        evaluator=formula("energy * time", "mJ ms"),
        names={"energy": "chip.energy", "time": "chip.latency"},
        factors={"energy": 1e-3, "time": 1e-3},  # from mJ and ms
    )
    got = bound.evaluate(columns(chip__energy=[2.0], chip__latency=[3.0]))
    assert got.columns["out"].tolist() == pytest.approx([6.0])


def test_the_formulas_stand_open_for_a_check_of_their_dimension() -> None:
    assert formula("energy + 2 mJ", "J").formulas["out"].text == "energy + 2 mJ"


def judged(evaluator: Formulas, batch: Batch) -> Metrics:
    """What a study makes of it that asks for each metric."""
    names = {name: name for name in evaluator.reads}
    return Bound(name="own", evaluator=evaluator, names=names).evaluate(batch)


@pytest.mark.parametrize("text", ["energy / time", "energy // time", "energy % time"])
def test_division_by_zero_is_the_fault_of_its_row(text: str) -> None:
    got = judged(formula(text), columns(energy=[6.0, 6.0], time=[4.0, 0.0]))
    assert (list(got.failures), got.failures[1].kind) == ([1], "invalid")
    assert "energy = 6.0, time = 0.0" in got.failures[1].reason


def test_whole_numbers_divided_by_zero_are_a_fault_too() -> None:
    got = judged(formula("a // b"), columns(a=[6, 6], b=[4, 0]))
    assert (got.columns["out"][0], list(got.failures)) == (1, [1])


def test_the_root_of_a_negative_number_is_a_fault() -> None:
    assert judged(formula("sqrt(a)"), columns(a=[-1.0])).failures[0].kind == "invalid"


def test_a_formula_without_names_that_has_no_value_is_a_fault() -> None:
    assert judged(formula("1 / 0"), columns(a=[1.0])).failures[0].kind == "invalid"


@pytest.mark.parametrize("beside", [[], [{"a": 1.0, "b": 2.0}]])
def test_an_absent_reading_is_a_fault_of_its_row(beside: list[dict[str, float]]) -> None:
    got = judged(formula("a * b"), Batch.of([{"a": 3.0}, *beside]))
    assert (list(got.failures), "b = absent" in got.failures[0].reason) == ([0], True)


def test_an_absence_that_is_asked_for_is_none() -> None:
    got = formula("max(b is absent, 0)").evaluate(Batch.of([{"a": 3.0}, {"a": 1.0, "b": 2.0}]))
    assert (got.columns["out"].tolist(), got.failures) == ([1, 0], {})


def test_a_formula_without_names_is_the_same_in_every_row() -> None:
    assert formula("2 * 3").evaluate(columns(a=[1.0, 2.0])).columns["out"].tolist() == [6, 6]


def test_a_word_is_no_metric() -> None:
    with pytest.raises(SpecError, match="'int8', which is no number"):
        formula("fmt").evaluate(Batch.of([{"fmt": "int8"}]))


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ({}, "metrics is"),
        (None, "metrics is None"),
        ({"edp": "a * b"}, "'edp' has no formula"),
        ({"edp": {"unit": "J"}}, "'edp' has no formula"),
        ({"edp": {"formula": 3}}, "is 3"),
        ({"edp": {"formula": "a", "units": "J"}}, "did you mean 'unit'"),
        ({"e dp": {"formula": "a"}}, "cannot be called 'e dp'"),
    ],
)
def test_options_of_another_form_are_refused(metrics: object, named: str) -> None:
    with pytest.raises(PluginError, match=named):
        Formulas(metrics=metrics)


@pytest.mark.parametrize(
    ("text", "unit", "named"),
    [
        ("a *", "", "out: expected a number"),
        ("__import__('os')", "", "there is no function"),
        ("a", "parsec", "no unit 'parsec'"),
        ("a + 3 parsec", "J", "out: there is no unit 'parsec'"),
    ],
)
def test_a_formula_that_says_nothing_is_refused(text: str, unit: str, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        formula(text, unit)
