"""A table of readings: what is needed, what is settled, and the columns of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.errors import EvaluationError, SpecError
from dse_evaluators.hardware.nodes import check_node
from dse_evaluators.reading_table import (
    CheckedInput,
    ChoiceInput,
    Flag,
    NumberInput,
    Readings,
    one_of,
)

TABLE = {
    "rows": NumberInput(1, 1024, whole=True),
    "clock": NumberInput(1, 1e12, "Hz", default=1e9),
    "flow": one_of(("ws", "os", "is"), "ws"),
    "wire": ChoiceInput({"fp16": 2.0, "fp8": 1.0}),
    "overlap": Flag(default=True),
}
READINGS = Readings(TABLE)


@dataclass
class Options:
    clock: str | float | None = None
    flow: str | None = None


def test_what_has_no_default_is_needed_and_the_rest_optional():
    reads, optional, units = READINGS.declared
    assert reads == {"rows", "wire"}
    assert optional == {"clock", "flow", "overlap"}
    assert units == {"clock": "Hz"}


def test_what_an_option_settles_is_not_read():
    readings = Readings.of(TABLE, Options(clock="1.2 GHz", flow="os"))
    assert readings.declared == ({"rows", "wire"}, {"overlap"}, {})
    columns = readings.columns(Batch.of([{"rows": 8, "wire": "fp8"}] * 2))
    assert {name: column.tolist() for name, column in columns.items()} == {
        "rows": [8.0, 8.0],
        "clock": [1.2e9, 1.2e9],
        "flow": [1.0, 1.0],
        "wire": [1.0, 1.0],
        "overlap": [1.0, 1.0],
    }


def test_where_a_design_does_not_tell_the_default_stands():
    designs = [{"rows": 8, "wire": "fp16", "flow": "is", "overlap": False}, {"rows": 9}]
    columns = READINGS.columns(Batch.of([*designs, {"rows": 7, "wire": "fp8"}]))
    assert columns["flow"].tolist() == [2.0, 0.0, 0.0]
    assert columns["overlap"].tolist() == [0.0, 1.0, 1.0]
    assert columns["clock"].tolist() == [1e9] * 3


def test_another_default_leaves_the_reading_optional():
    readings = READINGS.otherwise({"clock": "2 GHz", "flow": "os"})
    assert readings.declared == READINGS.declared
    assert readings.rows(Batch.of([{"rows": 8, "wire": "fp8"}])) == [
        {"rows": 8.0, "clock": 2e9, "flow": 1.0, "wire": 1.0, "overlap": 1.0}
    ]


@pytest.mark.parametrize(
    ("given", "problem", "hint"),
    [
        ({"rows": 1.5}, "rows cannot be 1.5", "a whole number from 1 to 1024"),
        ({"clock": -1.0}, "clock cannot be -1.0", "a number from 1 to 1e+12 Hz"),
        ({"clock": "fast"}, "clock cannot be 'fast'", "a number from 1 to 1e+12 Hz"),
        ({"flow": "w"}, "flow cannot be 'w'", "did you mean 'ws'?"),
        ({"overlap": "yes"}, "overlap cannot be 'yes'", "true or false"),
        ({"row": 8}, "there is no knob 'row'", "did you mean 'rows'?"),
    ],
)
def test_what_cannot_be_settled_is_told(given, problem, hint):
    with pytest.raises(SpecError) as caught:
        READINGS.fixed(given)
    assert (caught.value.problem, caught.value.hint) == (problem, hint)


def test_a_text_in_another_unit_is_told():
    with pytest.raises(SpecError, match="ms is no Hz"):
        READINGS.fixed({"clock": "1 ms"})


@pytest.mark.parametrize("codes", [None, np.array([0, 1])])
def test_a_word_that_a_reading_does_not_take_is_told_with_those_that_it_does(codes):
    words = np.array(["ws", "wz"], dtype=object)
    domain = () if codes is None else ("ws", "wz")
    batch = Batch({"flow": Column(words, None, codes, domain)}, 2)
    with pytest.raises(EvaluationError, match="flow cannot be 'wz'") as caught:
        READINGS.column("flow", batch)
    assert caught.value.hint == "valid: is, os, ws"


def _check_tile(name, value):
    if "x" not in str(value):
        raise SpecError(f"{name} cannot be {value!r}", hint="such as 64x64")


def test_an_input_with_its_own_check_has_no_column():
    tile = CheckedInput(_check_tile, default="64x64")
    readings = Readings(
        {"rows": NumberInput(1, 8), "tile": tile, "layer": CheckedInput(_check_tile)}
    )
    assert readings.declared == ({"rows", "layer"}, {"tile"}, {})
    batch = Batch.of([{"rows": 2, "tile": "8x8", "layer": "x"}])
    assert list(readings.columns(batch)) == ["rows"]
    assert readings.rows(batch) == [{"rows": 2.0}]
    with pytest.raises(SpecError, match="tile cannot be '64'"):
        readings.check({"tile": ("8x8", "64")})


def test_an_input_with_its_own_check_may_be_fixed_or_have_another_default():
    readings = Readings({"node_nm": CheckedInput(check_node)})
    batch = Batch.of([{"node_nm": 22}, {"rows": 1}])
    assert readings.otherwise({"node_nm": 45}).column("node_nm", batch).tolist() == [22.0, 45.0]
    assert readings.fixed({"node_nm": 7}).column("node_nm", batch).tolist() == [7.0, 7.0]
    with pytest.raises(SpecError, match="no figures for 3 nm"):
        readings.fixed({"node_nm": 3})


def test_the_defaults_are_those_of_the_table_or_of_otherwise():
    readings = READINGS.otherwise({"clock": "2 GHz"})
    assert readings.defaults == {"clock": 2e9, "flow": "ws", "overlap": True}
