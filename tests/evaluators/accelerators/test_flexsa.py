"""Laws of the evaluator of arrays that can be split, and what it makes of a pruned ResNet-50."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse_evaluators.accelerators.training.flexsa import FlexSa

RESNET = FlexSa()
VGG = FlexSa(network="vgg16")
MIB = 1024.0**2

designs = st.fixed_dictionaries(
    {
        "array": st.sampled_from(["large", "split", "flexible"]),
        "groups": st.sampled_from([1, 4, 16]),
        "side": st.sampled_from([32.0, 64.0, 128.0, 96.0]),
        "block_rows": st.integers(1, 512),
        "sums": st.sampled_from(["drained", "kept"]),
        "keep": st.floats(0.05, 1),
        "draw": st.integers(0, 9),
        "batch": st.integers(1, 64),
        "buffer": st.floats(2 * MIB, 64 * MIB),
        "clock": st.floats(1e8, 2e9),
        "dram_bandwidth": st.floats(1e9, 1e12),
    }
)
plain = {"array": "flexible", "groups": 1, "keep": 0.6, "buffer": 4 * MIB, "dram_bandwidth": 50e9}


def metrics(*rows, evaluator=VGG):
    """The columns of these designs, all of which can exist."""
    got = evaluator.evaluate(Batch.of(rows))
    assert not got.failures
    return got.columns


def sum_of(columns, whole):
    return sum(columns[name] for name, one in VGG.provides.items() if one.part_of == whole)


@settings(max_examples=30)
@given(designs)
def test_breakdowns_sum_to_their_totals(design):
    got = metrics(design)
    assert got["latency"] == pytest.approx(sum_of(got, "latency"), rel=1e-12)
    assert got["energy"] == pytest.approx(sum_of(got, "energy"), rel=1e-12)


@settings(max_examples=30)
@given(designs, st.floats(1, 100))
def test_more_bandwidth_is_never_slower(design, factor):
    faster = {**design, "dram_bandwidth": factor * design["dram_bandwidth"]}
    slow, fast = metrics(design, faster)["latency"]
    assert fast <= slow


@settings(max_examples=30)
@given(designs)
def test_infinite_bandwidth_gives_the_cycles_of_the_array(design):
    got = metrics({**design, "dram_bandwidth": 1e16})
    assert got["latency"][0] == pytest.approx(got["cycles"][0] / design["clock"], rel=1e-6)
    assert got["bottleneck"][0] == 0


@settings(max_examples=30)
@given(designs, st.floats(1, 100))
def test_a_larger_buffer_never_moves_more(design, factor):
    less, more = metrics(design, {**design, "buffer": factor * design["buffer"]})["dram_traffic"]
    assert more <= less


@settings(max_examples=30)
@given(designs)
def test_an_element_is_used_once_a_cycle_at_most(design):
    assert 0 < metrics(design)["utilization"][0] <= 1


@settings(max_examples=30)
@given(designs)
def test_an_array_that_can_be_one_is_no_worse_than_four_small_ones(design):
    one, four = ({**design, "array": array} for array in ("flexible", "split"))
    got = metrics(one, four)
    assert got["cycles"][0] == got["cycles"][1]
    assert got["buffer_traffic"][0] <= got["buffer_traffic"][1]
    assert got["energy"][0] <= got["energy"][1]


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("array", "split"),
        ("groups", 4),
        ("side", 64.0),
        ("block_rows", 64),
        ("sums", "kept"),
        ("keep", 0.5),
        ("draw", 1),
        ("batch", 16),
        ("buffer", 40 * MIB),
        ("clock", 1e9),
        ("dram_bandwidth", 60e9),
    ],
)
def test_every_knob_moves_some_metric(knob, value):
    got = metrics(plain, {**plain, knob: value})
    assert any(column[0] != column[1] for column in got.values())


def test_a_buffer_that_holds_no_two_tiles_is_told_with_what_it_lacks():
    # Two blocks of 256 rows and two tiles of 128 x 128, of 16-bit words.
    failure = RESNET.evaluate(Batch.of([{"buffer": 184 * 1024.0}, plain])).failures[0]
    assert failure.kind == "infeasible"
    assert "192.0 KiB" in failure.reason
    assert "8.0 KiB short" in failure.reason


def test_a_number_that_no_knob_takes_is_told():
    failures = RESNET.evaluate(Batch.of([{"keep": 0.5}, {"keep": 1.5}])).failures
    assert set(failures) == {1}
    assert "keep is 1.5" in failures[1].reason


@pytest.mark.parametrize(
    "options",
    [
        {"network": "resnet"},
        {"dram": "hbm9"},
        {"node_nm": 5.0},
        {"knobs": {"rows": 4}},
        {"knobs": {"array": "round"}},
        {"knobs": {"buffer": "ten"}},
    ],
)
def test_an_option_that_it_does_not_take_is_refused(options):
    with pytest.raises(SpecError):
        FlexSa(**options)


def test_a_value_that_a_space_cannot_have_is_refused_before_it_is_run():
    with pytest.raises(SpecError, match="groups"):
        RESNET.check_values({"groups": [1, 3]})


def test_what_an_option_sets_is_not_read():
    fixed = FlexSa(network="vgg16", knobs={"buffer": "4 MiB"})
    assert "buffer" not in fixed.optional
    row = {name: value for name, value in plain.items() if name != "buffer"}
    assert metrics(row, evaluator=fixed)["energy"] == metrics(plain)["energy"]


@pytest.mark.parametrize(
    ("keep", "least_share", "most_share", "least", "most"),
    [(0.75, 0.60, 0.70, 1.2, 1.4), (0.45, 0.25, 0.30, 1.4, 1.75)],
)
def test_splitting_gains_what_is_expected_of_a_resnet_50_that_is_pruned(
    keep, least_share, most_share, least, most
):
    draws = [{"keep": keep, "draw": draw} for draw in range(10)]
    large = metrics(*[{**row, "array": "large"} for row in draws], evaluator=RESNET)
    flexible = metrics(*[{**row, "array": "flexible"} for row in draws], evaluator=RESNET)
    assert least_share <= large["macs_kept"].mean() <= most_share
    gains = flexible["utilization"] / large["utilization"]
    assert least <= gains.mean() <= most


def test_a_row_does_not_depend_on_how_many_stand_around_it():
    rows = [{**plain, "draw": draw} for draw in range(600)]  # more than are reckoned at once
    together = metrics(*rows)["latency"]
    assert together[599] == metrics(rows[599])["latency"][0]
    assert np.unique(together).size > 500


def test_a_word_that_no_knob_takes_is_told():
    with pytest.raises(EvaluationError, match="array cannot be 'round'"):
        RESNET.evaluate(Batch.of([{"array": "round"}]))


# Macros of 2 KiB and more were fitted: a part of 64 columns keeps 256 B of sums for each row.
@pytest.mark.parametrize(("rows", "beyond"), [(7, 1), (8, 0), (512, 0)])
def test_a_memory_smaller_than_any_that_was_fitted_is_flagged(rows, beyond):
    assert metrics({"block_rows": rows}, evaluator=RESNET)["extrapolated"] == beyond
