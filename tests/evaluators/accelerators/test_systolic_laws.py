"""What holds for every accelerator, whatever its knobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic import Systolic
from dse_evaluators.formats.words import FORMATS

FULL = Systolic(workload="resnet18")
CONFORMING = Systolic(workload="digits-cnn", mode="scalesim")

buffers = st.integers(12, 23).map(lambda power: float(2**power)) | st.floats(4096, 2**23)
designs = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 256),
        "cols": st.integers(1, 256),
        "dataflow": st.sampled_from(["os", "ws", "is"]),
        "ifmap_sram": buffers,
        "filter_sram": buffers,
        "ofmap_sram": buffers,
        "clock": st.floats(1e8, 2e9),
        "dram_bandwidth": st.floats(1e8, 1e12),
        "weight_format": st.sampled_from(sorted(FORMATS)),
        "activation_format": st.sampled_from(sorted(FORMATS)),
        "filter_keep": st.floats(0.01, 1),
        "sparsity": st.floats(0, 1),
        "batch": st.integers(1, 64),
    }
)


def metrics(rows, evaluator=FULL):
    """The columns of these designs, all of which can exist."""
    got = evaluator.evaluate(Batch.of(rows))
    assert not got.faults
    return got.columns


def rises(values) -> bool:
    """No value is less than the one before, but for rounding."""
    return bool((np.diff(values) >= -1e-12 * np.abs(values[1:])).all())


@given(designs, st.floats(1, 1e3))
def test_more_bandwidth_is_never_slower(design, factor):
    wider = design | {"dram_bandwidth": design["dram_bandwidth"] * factor}
    assert rises(metrics([wider, design])["latency"])


@given(designs)
def test_unlimited_bandwidth_gives_the_cycles_of_an_array_that_never_waits(design):
    got = metrics([design | {"dram_bandwidth": 1e300, "batch": 1}])
    ideal = Systolic(workload="resnet18", mode="scalesim")
    large = dict.fromkeys(("ifmap_sram", "filter_sram", "ofmap_sram"), 2.0**40)
    assert got["cycles"] == metrics([design | large], ideal)["cycles"]
    assert got["stall_cycles"] < 1e-200


@given(designs, st.sampled_from(["ifmap_sram", "filter_sram", "ofmap_sram"]), st.floats(1, 1e3))
def test_a_larger_buffer_never_means_more_traffic(design, buffer, factor):
    got = metrics([design | {buffer: design[buffer] * factor}, design])
    assert rises(got["dram_traffic"])
    assert rises(got["sram_traffic"])
    assert rises(got["latency"])


@given(designs, st.sampled_from(["weight_format", "activation_format"]))
def test_fewer_bits_never_mean_more_bytes(design, knob):
    got = metrics([design | {knob: f"int{bits}"} for bits in range(2, 17)])
    assert rises(got["dram_traffic"])
    assert rises(got["sram_traffic"])
    assert rises(got["model_size"])


@given(designs, st.floats(0, 1))
def test_more_zeros_never_cost_energy(design, share):
    sparser = design["sparsity"] + share * (1 - design["sparsity"])
    got = metrics([design | {"sparsity": sparser}, design])
    assert rises(got["energy"])
    assert rises(got["model_size"])


@given(designs)
def test_the_parts_of_the_energy_sum_to_it(design):
    got = metrics([design])
    parts = sum(got[f"{part}_energy"] for part in ("mac", "sram", "dram", "leakage"))
    assert got["energy"] == pytest.approx(parts, rel=1e-12)
    assert got["power"] * got["latency"] == pytest.approx(got["energy"], rel=1e-12)


@given(designs)
def test_the_array_is_never_more_than_fully_used(design):
    assert 0 < metrics([design])["utilization"].item() <= 1


@pytest.mark.parametrize("evaluator", [FULL, CONFORMING])
@given(rows=st.lists(designs, min_size=2, max_size=12), data=st.data())
def test_a_row_does_not_depend_on_the_batch_around_it(evaluator, rows, data):
    place = data.draw(st.integers(0, len(rows) - 1))
    together, alone = metrics(rows, evaluator), metrics([rows[place]], evaluator)
    assert {name: column[place] for name, column in together.items()} == {
        name: column.item() for name, column in alone.items()
    }


def test_a_row_does_not_depend_on_how_many_chunks_there_are():
    design = {"rows": 24, "cols": 20, "dataflow": "ws", "filter_keep": 0.37, "sparsity": 0.21}
    got = metrics([design] * 3001)
    assert all((column == column[0]).all() for column in got.values())
