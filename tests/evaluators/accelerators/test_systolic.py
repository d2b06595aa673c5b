"""The evaluator ``accelerators.systolic``: options, knobs, faults, and one layer by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse.registry import make
from dse_evaluators.accelerators.systolic import full
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.accelerators.systolic.systolic_parameters import KNOBS, settings
from dse_evaluators.workloads.layers import dense

DESIGN = {
    "rows": 16,
    "cols": 8,
    "dataflow": "ws",
    "ifmap_sram": 4096.0,
    "filter_sram": 131072.0,
    "ofmap_sram": 2048.0,
    "clock": 1e9,
    "dram_bandwidth": 2e9,
    "weight_format": "int8",
    "activation_format": "int8",
    "filter_keep": 0.9,
    "sparsity": 0.1,
    "batch": 2,
    "voltage": 0.9,
    "resident": False,
    "packed": True,
    "cores": 2,
    "split": "n",
    "n_m": "dense",
    "accumulator_bits": 32,
    "accumulator_sram": 0.0,
    "overlap": False,
    "vector_lanes": 2,
    "vector_ops": 1,
    "vector_hidden": True,
}

OTHER = {
    "rows": 8,
    "cols": 16,
    "dataflow": "os",
    "ifmap_sram": 8192.0,
    "filter_sram": 4096.0,
    "ofmap_sram": 8192.0,
    "clock": 5e8,
    "dram_bandwidth": 4e9,
    "weight_format": "int4",
    "activation_format": "fp16",
    "filter_keep": 0.5,
    "sparsity": 0.7,
    "batch": 4,
    "voltage": 0.6,
    "resident": True,
    "packed": False,
    "cores": 3,
    "split": "m",
    "n_m": "2:4",
    "accumulator_bits": 16,
    "accumulator_sram": 4096.0,
    "overlap": True,
    "vector_lanes": 1,
    "vector_ops": 3,
    "vector_hidden": False,
}


def one(evaluator, **changes):
    """The metrics of the design with these changes."""
    got = evaluator.evaluate(Batch.of([DESIGN | changes]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def test_a_dense_layer_takes_what_the_equations_give_by_hand():
    # 1 x 16 by 16 x 8 on 8 x 8, weights stationary, one byte a cycle from DRAM: two folds of
    # 2*8 + 8 + 1 - 2 = 23 cycles, less one; 16 + 128 + 8 bytes; 8*8 + 8 of them before the start.
    knobs = settings(
        Batch.of([{"rows": 8, "cols": 8}]), {"clock": 1e9, "dram_bandwidth": 1e9, "dataflow": "ws"}
    )
    got = full.totals("ws", UniqueLayers([dense("fc", 16, 8)]), knobs)
    assert got.dram_bytes.item() == 152
    assert got.cycles.item() == 45 + (152 - 45) + 72
    assert got.stall_cycles.item() == (152 - 45) + 72
    inputs, filters, outputs = got.buffers.ifmap, got.buffers.filter, got.buffers.ofmap
    assert (inputs.read_bytes.item(), inputs.written_bytes.item()) == (16, 16)
    assert (filters.read_bytes.item(), filters.written_bytes.item()) == (128, 128)
    # 8 partial sums of four bytes and 8 outputs of one
    assert (outputs.read_bytes.item(), outputs.written_bytes.item()) == (40, 40)


def test_a_resident_network_fetches_no_weights_once_it_fits():
    design = {"rows": 8, "cols": 8}
    options = {"clock": 1e9, "dram_bandwidth": 1e9, "dataflow": "ws", "resident": True}
    network = UniqueLayers([dense("fc", 16, 8)])
    fits = full.totals("ws", network, settings(Batch.of([design]), {**options, "filter_sram": 128}))
    large = full.totals(
        "ws", network, settings(Batch.of([design]), {**options, "filter_sram": 127})
    )
    assert fits.dram_bytes.item() == 16 + 8
    assert fits.stall_cycles.item() == 8  # the first edge of the inputs; no weights
    assert large.dram_bytes.item() == 152
    assert fits.weight_bytes.item() == large.weight_bytes.item() == 128


def test_switching_energy_goes_with_the_square_of_the_voltage_and_leakage_with_the_voltage():
    nominal, low = one(Systolic()), one(Systolic(), voltage=0.45)
    assert low["mac_energy"] == pytest.approx(nominal["mac_energy"] / 4)
    assert low["sram_energy"] == pytest.approx(nominal["sram_energy"] / 4)
    assert low["leakage_energy"] == pytest.approx(nominal["leakage_energy"] / 2)
    assert low["dram_energy"] == nominal["dram_energy"]
    assert low["latency"] == nominal["latency"]


def test_an_option_may_carry_its_unit():
    assert one(Systolic(clock="1 GHz", filter_sram="128 KiB")) == one(Systolic())


def test_partial_sums_that_do_not_fit_go_to_dram_and_come_back():
    # 8 outputs of four bytes need 32 bytes of the half: 64 do, 63 do not
    network = UniqueLayers([dense("fc", 16, 8)])
    sizes = Batch.of([{"rows": 8, "cols": 8, "ofmap_sram": size} for size in (64.0, 63.0)])
    got = full.totals("ws", network, settings(sizes, {"dataflow": "ws"}))
    assert got.dram_bytes.tolist() == [152, 152 + 2 * 8 * 4]


def test_zeros_leave_the_weights_compressed_only_where_that_is_smaller():
    # 128 weights of 8 bits: whole at 0.1 zeros (7.2 + 1 bits), 4 + 1 bits at a half
    network = UniqueLayers([dense("fc", 16, 8)])
    batch = Batch.of([{"rows": 8, "cols": 8, "sparsity": share} for share in (0.0, 0.1, 0.5)])
    assert full.totals("ws", network, settings(batch, {})).weight_bytes.tolist() == [128, 128, 80]


@pytest.mark.parametrize("knob", sorted(Systolic().reads | Systolic().optional))
def test_every_declared_knob_moves_a_metric(knob):
    assert one(Systolic()) != one(Systolic(), **{knob: OTHER[knob]})


def test_packing_moves_a_metric_of_a_network_with_depthwise_layers():
    evaluator = Systolic(workload="mobilenetv1")
    assert KNOBS.keys() == evaluator.reads | evaluator.optional
    assert one(evaluator, rows=32) != one(evaluator, rows=32, packed=False)


def test_whether_products_are_packed_is_not_read_where_each_layer_is_one():
    assert "packed" not in Systolic(workload="resnet50").optional
    assert "packed" in Systolic(workload="bert-base").optional


@pytest.mark.parametrize("knob", sorted(Systolic(mode="scalesim").optional))
def test_every_declared_knob_moves_a_metric_of_the_conforming_mode(knob):
    evaluator = Systolic(mode="scalesim")
    assert one(evaluator) != one(evaluator, **{knob: OTHER[knob]})


@pytest.mark.parametrize("knob", sorted(KNOBS.keys() - Systolic(mode="scalesim").optional))
def test_the_conforming_mode_reads_nothing_else(knob):
    evaluator = Systolic(mode="scalesim", rows=16, cols=8)
    assert one(evaluator) == one(evaluator, **{knob: OTHER[knob]})


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_that_an_option_sets_is_not_read(knob):
    evaluator = Systolic(**{knob: DESIGN[knob]})
    assert knob not in evaluator.reads | evaluator.optional | evaluator.units.keys()
    assert one(evaluator, **{knob: OTHER[knob]}) == one(Systolic())


def test_only_the_size_of_the_array_must_be_given():
    evaluator = Systolic()
    assert evaluator.reads == {"rows", "cols"}
    assert not evaluator.evaluate(Batch.of([{"rows": 8, "cols": 8}])).failures


def test_the_network_grows_with_the_option_workload():
    assert one(Systolic(workload="resnet50"))["latency"] > 100 * one(Systolic())["latency"]


@pytest.mark.parametrize("option", [{"node_nm": 22.0}, {"dram": "hbm2"}, {"leakage_w_per_mm2": 0}])
def test_a_better_technology_takes_less_energy(option):
    assert one(Systolic(**option))["energy"] < one(Systolic())["energy"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # 16 words of one byte, twice
        (
            {"ifmap_sram": 31.0},
            "ifmap_sram of 31 B is 1 B short of the 32 B that it must hold: two cycles' "
            "words at the edge of the array",
        ),
        # 8 partial sums of four bytes, twice
        (
            {"ofmap_sram": 24.0},
            "ofmap_sram of 24 B is 40 B short of the 64 B that it must hold: two cycles' "
            "words at the edge of the array",
        ),
        ({"clock": 0.0}, "clock is 0, not positive"),
        ({"rows": -1}, "rows is -1, not positive"),
        ({"filter_keep": 1.5}, "filter_keep is 1.5, not between 0 and 1"),
        ({"sparsity": float("nan")}, "sparsity is nan, not between 0 and 1"),
        ({"cores": 0.5}, "cores is 0.5, less than 1"),
        # 8 partial sums of four bytes, twice
        (
            {"accumulator_sram": 60.0},
            "accumulator_sram of 60 B is 4 B short of the 64 B that it must hold: two cycles' "
            "words at the edge of the array",
        ),
    ],
)
def test_a_design_that_cannot_exist_is_infeasible_alone_and_says_by_how_much(changes, reason):
    got = Systolic().evaluate(Batch.of([DESIGN, DESIGN | changes, DESIGN]))
    assert {row: (failure.kind, failure.reason) for row, failure in got.failures.items()} == {
        1: ("infeasible", reason)
    }
    assert np.isfinite(got.columns["energy"][[0, 2]]).all()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"workload": "resnet51"}, "workload cannot be 'resnet51'"),
        ({"mode": "fast"}, "mode cannot be 'fast'"),
        ({"dram": "ddr3"}, "dram cannot be 'ddr3'"),
        ({"dataflow": "rs"}, "dataflow cannot be 'rs'"),
        ({"n_m": "3:4"}, "n_m cannot be '3:4'"),
        ({"split": "k"}, "split cannot be 'k'"),
        ({"weight_format": "int88"}, "there is no number format 'int88'"),
        ({"clock": "fast"}, "clock cannot be 'fast'"),
        ({"clock": "1 ms"}, "ms is no Hz"),
        ({"node_nm": 7}, "node_nm is 7"),
        ({"mode": "scalesim", "batch": 4}, "batch has no meaning in the mode 'scalesim'"),
    ],
)
def test_an_option_that_cannot_be_is_refused_with_a_hint(options, problem):
    with pytest.raises(SpecError) as caught:
        Systolic(**options)
    assert caught.value.problem == problem


def test_a_word_that_the_knob_does_not_take_is_told():
    with pytest.raises(EvaluationError) as caught:
        Systolic().evaluate(Batch.of([DESIGN | {"weight_format": "int9000"}]))
    assert caught.value.problem == "weight_format cannot be 'int9000'"


def test_it_is_found_by_its_name_and_survives_pickling():
    evaluator = make("evaluators", "accelerators.systolic", workload="digits-cnn", rows=8)
    twin = pickle.loads(pickle.dumps(evaluator))
    assert evaluator.reads == twin.reads == {"cols"}
    assert one(evaluator) == one(twin)
