"""What holds for every accelerator, whatever its knobs, its workload and its dataflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic.compressed import PATTERNS
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.formats.words import FORMATS

RESNET = Systolic(workload="resnet18")
WITH_GROUPS = Systolic(workload="mobilenetv1")
WITH_HEADS = Systolic(workload="bert-base")
CONFORMING = Systolic(workload="digits-cnn", mode="scalesim")

evaluators = st.sampled_from([RESNET, WITH_GROUPS, WITH_HEADS])
sizes = st.integers(14, 23).map(lambda power: float(2**power)) | st.floats(2**14, 2**23)
plain = {
    "rows": st.integers(1, 256),
    "cols": st.integers(1, 256),
    "dataflow": st.sampled_from(["os", "ws", "is"]),
    "ifmap_sram": sizes,
    "filter_sram": sizes,
    "ofmap_sram": sizes,
    "clock": st.floats(1e8, 2e9),
    "dram_bandwidth": st.floats(1e8, 1e12),
    "weight_format": st.sampled_from(sorted(FORMATS)),
    "activation_format": st.sampled_from(sorted(FORMATS)),
    "filter_keep": st.floats(0.01, 1),
    "sparsity": st.floats(0, 1),
    "batch": st.integers(1, 64),
    "resident": st.booleans(),
}
beyond = {
    "packed": st.booleans(),
    "cores": st.integers(1, 9),
    "split": st.sampled_from(["m", "n"]),
    "n_m": st.sampled_from(sorted(PATTERNS)),
    "accumulator_bits": st.integers(8, 64),
    "accumulator_sram": st.just(0.0) | sizes,
    "overlap": st.booleans(),
    "vector_lanes": st.integers(0, 64),
    "vector_ops": st.floats(0, 8),
    "vector_hidden": st.booleans(),
}
plain_designs = st.fixed_dictionaries(plain)
designs = st.fixed_dictionaries(plain | beyond)


def metrics(rows, evaluator):
    """The columns of these designs, all of which can exist."""
    got = evaluator.evaluate(Batch.of(rows))
    assert not got.failures
    return got.columns


def rises(values) -> bool:
    """No value is less than the one before, but for rounding."""
    return bool((np.diff(values) >= -1e-12 * np.abs(values[1:])).all())


@given(evaluators, designs, st.floats(1, 1e3))
def test_more_bandwidth_is_never_slower(evaluator, design, factor):
    wider = design | {"dram_bandwidth": design["dram_bandwidth"] * factor}
    assert rises(metrics([wider, design], evaluator)["latency"])


@given(plain_designs)
def test_unlimited_bandwidth_gives_the_cycles_of_an_array_that_never_waits(design):
    got = metrics([design | {"dram_bandwidth": 1e300, "batch": 1}], RESNET)
    ideal = Systolic(workload="resnet18", mode="scalesim")
    large = dict.fromkeys(("ifmap_sram", "filter_sram", "ofmap_sram"), 2.0**40)
    assert got["cycles"] == metrics([design | large], ideal)["cycles"]
    assert got["stall_cycles"] < 1e-200


@given(evaluators, designs)
def test_unlimited_bandwidth_leaves_the_time_of_the_array_and_the_vector_unit(evaluator, design):
    got = metrics([design, design | {"dram_bandwidth": 1e300}], evaluator)
    assert got["compute_time"][0] == got["compute_time"][1]
    assert got["vector_time"][0] == got["vector_time"][1]
    assert got["dram_time"][1] < 1e-200


@given(
    evaluators,
    designs,
    st.sampled_from(["ifmap_sram", "filter_sram", "ofmap_sram", "accumulator_sram"]),
    st.floats(1, 1e3),
)
def test_a_larger_buffer_never_means_more_traffic(evaluator, design, buffer, factor):
    larger = max(design[buffer], 2.0**14) * factor
    got = metrics([design | {buffer: larger}, design], evaluator)
    assert rises(got["dram_traffic"])
    assert rises(got["sram_traffic"])
    assert rises(got["latency"])


@given(evaluators, designs, st.sampled_from(["weight_format", "activation_format"]))
def test_fewer_bits_never_mean_more_bytes(evaluator, design, knob):
    got = metrics([design | {knob: f"int{bits}"} for bits in range(2, 17)], evaluator)
    assert rises(got["dram_traffic"])
    assert rises(got["sram_traffic"])
    assert rises(got["model_size"])


@given(evaluators, designs)
def test_narrower_sums_never_mean_more_bytes(evaluator, design):
    got = metrics([design | {"accumulator_bits": bits} for bits in range(8, 65, 4)], evaluator)
    assert rises(got["dram_traffic"])
    assert rises(got["sram_traffic"])


@given(evaluators, designs, st.floats(0, 1))
def test_more_zeros_never_cost_energy(evaluator, design, share):
    sparser = design["sparsity"] + share * (1 - design["sparsity"])
    got = metrics([design | {"sparsity": sparser}, design], evaluator)
    assert rises(got["energy"])
    assert rises(got["model_size"])


@given(evaluators, designs, st.sampled_from(["1:8", "1:4", "2:8", "1:2", "2:4", "4:8"]))
def test_a_pattern_never_takes_more_cycles_or_multiplications_than_all_weights(
    evaluator, design, n_m
):
    got = metrics([design | {"n_m": n_m}, design | {"n_m": "dense"}], evaluator)
    assert rises(got["compute_time"])
    assert rises(got["mac_energy"])


@given(evaluators, designs)
def test_fewer_weights_of_a_block_never_take_more_of_anything(evaluator, design):
    got = metrics([design | {"n_m": n_m} for n_m in ("1:8", "2:8", "4:8")], evaluator)
    assert rises(got["model_size"])
    assert rises(got["dram_traffic"])
    assert rises(got["compute_time"])


@given(evaluators, designs, st.integers(1, 9))
def test_more_cores_never_compute_longer_and_never_are_smaller(evaluator, design, more):
    many = design["cores"] + more
    got = metrics([design | {"cores": many}, design], evaluator)
    assert rises(got["compute_time"])
    assert rises(got["area"][::-1])
    assert rises(got["mac_energy"])
    assert rises(got["mac_energy"][::-1])


@given(evaluators, designs, st.sampled_from(["packed", "overlap"]))
def test_packing_and_overlapping_are_never_slower_in_the_array(evaluator, design, knob):
    got = metrics([design | {knob: True}, design | {knob: False}], evaluator)
    assert rises(got["compute_time"])
    assert rises(got["dram_traffic"])
    assert rises(got["dram_traffic"][::-1])


@given(evaluators, designs, st.integers(1, 8), st.integers(1, 64))
def test_more_lanes_are_never_slower(evaluator, design, lanes, more):
    rows = [design | {"vector_lanes": lanes + more}, design | {"vector_lanes": lanes}]
    assert rises(metrics(rows, evaluator)["latency"])


@given(evaluators, designs)
def test_what_is_hidden_is_never_slower_than_what_comes_after(evaluator, design):
    rows = [design | {"vector_hidden": True}, design | {"vector_hidden": False}]
    assert rises(metrics(rows, evaluator)["latency"])


@pytest.mark.parametrize("total", ["latency", "energy"])
@given(evaluator=evaluators, design=designs)
def test_the_parts_sum_to_the_whole(total, evaluator, design):
    got = metrics([design], evaluator)
    parts = [one.name for one in evaluator.provides.values() if one.part_of == total]
    assert len(parts) >= 3
    assert got[total] == pytest.approx(sum(got[part] for part in parts), rel=1e-12)
    assert got["power"] * got["latency"] == pytest.approx(got["energy"], rel=1e-12)


@given(evaluators, designs)
def test_the_array_is_never_more_than_fully_used(evaluator, design):
    # SCALE-Sim counts the last cycle from zero: one multiplier alone seems a cycle too fast
    assume(design["rows"] * design["cols"] > 1)
    assert 0 < metrics([design], evaluator)["utilization"].item() <= 1


@given(evaluators, designs)
def test_the_bottleneck_is_the_array_the_vector_unit_or_dram_as_each_gets_slower(evaluator, design):
    fast = {"dram_bandwidth": 1e300, "vector_lanes": 0}
    slow_dram = {"dram_bandwidth": 1e-3}
    slow_vector = {"dram_bandwidth": 1e300, "vector_lanes": 1e-9, "vector_ops": 1.0}
    got = metrics([design | fast, design | slow_vector, design | slow_dram], evaluator)
    words = evaluator.provides["bottleneck"].words
    assert [words[int(place)] for place in got["bottleneck"]] == ["compute", "vector", "dram"]


@given(designs, st.sampled_from(["ifmap_sram", "filter_sram", "ofmap_sram", "accumulator_sram"]))
def test_a_buffer_that_no_fitted_macro_is_as_large_as_is_told(design, buffer):
    inside = dict.fromkeys(("ifmap_sram", "filter_sram", "ofmap_sram"), 2.0**21)
    known = design | inside | {"accumulator_sram": 0.0}
    got = metrics([known, known | {buffer: 2.0**21 + 1.0}], RESNET)
    assert got["extrapolated"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("evaluator", [RESNET, WITH_GROUPS, WITH_HEADS, CONFORMING])
@given(rows=st.lists(designs, min_size=2, max_size=5), data=st.data())
def test_a_row_does_not_depend_on_the_batch_around_it(evaluator, rows, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    together, alone = metrics(rows, evaluator), metrics([rows[place]], evaluator)
    assert {name: column[place] for name, column in together.items()} == {
        name: column.item() for name, column in alone.items()
    }


@pytest.mark.parametrize("lanes", [0, 4])
def test_a_row_does_not_depend_on_how_many_chunks_there_are(lanes):
    design = {"rows": 24, "cols": 20, "filter_keep": 0.37, "sparsity": 0.21, "vector_lanes": lanes}
    flows = ["os", *["ws"] * 3000]
    got = metrics([design | {"dataflow": flow} for flow in flows], RESNET)
    assert all((column[1:] == column[1]).all() for column in got.values())
