"""Small layers on small arrays, reckoned by hand: what each feature of the accelerator counts."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic import full
from dse_evaluators.accelerators.systolic.cost import Technology, charges
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.systolic_parameters import settings
from dse_evaluators.accelerators.systolic.waiting import bottleneck, waits
from dse_evaluators.workloads.layers import Layer, convolution, dense, product

# 4 channels of 4 x 4 pixels, 3 x 3 windows, each channel by itself: 4 pixels come out of each
DEPTHWISE = convolution("depthwise", 2, 3, 4, 4, groups=4)


def laid(layer: Layer, flow: str = "ws", **knobs):
    """What the layer asks on 8 x 8 at a byte a cycle, but for these knobs."""
    design = {"rows": 8, "cols": 8, "clock": 1e9, "dram_bandwidth": 1e9} | knobs
    return full.totals(
        flow, UniqueLayers([layer]), settings(Batch.of([design]), {"dataflow": flow})
    )


def unhindered(got) -> float:
    """Cycles without waiting for DRAM."""
    return (got.cycles - got.stall_cycles).item()


def test_a_depthwise_layer_is_one_product_for_each_channel():
    # 4 products of 4 x 9 by 9 x 1; on 8 x 8, weights stay: two folds of 9 rows over 8, each of
    # 8 + 8 + 8 + 4 - 2 = 26 cycles, for 4 channels: 208 - 1
    got = laid(DEPTHWISE)
    assert got.macs.item() == 4 * (4 * 9 * 1)
    assert got.weight_bytes.item() == 4 * 9
    assert unhindered(got) == 4 * 2 * 26 - 1
    # the image once, the weights once, 4 pixels of 4 channels
    assert got.dram_bytes.item() == 4 * 16 + 4 * 9 + 4 * 4


def test_products_side_by_side_take_rows_and_columns_of_their_own():
    # 18 rows hold two products of 9 rows; each takes one of 8 columns: 4 channels in two rounds
    # of one fold of 2*18 + 8 + 4 - 2 = 46 cycles, or in four
    packed, single = laid(DEPTHWISE, rows=18), laid(DEPTHWISE, rows=18, packed=False)
    assert unhindered(packed) == 2 * 46 - 1
    assert unhindered(single) == 4 * 46 - 1
    assert packed.dram_bytes.item() == single.dram_bytes.item()
    # what must be there first: 9 weights and an edge of 9 inputs, of two products or of one;
    # the traffic of 64 + 36 + 16 bytes is late for 91 cycles, and not for 183
    assert packed.stall_cycles.item() == 2 * (9 + 9) + (116 - 91)
    assert single.stall_cycles.item() == 9 + 9


@pytest.mark.parametrize(
    ("flow", "rows", "cols", "together"),
    # outputs stay: 4 pixels down, 1 filter across; inputs stay: 9 down, 4 pixels across
    [("os", 4, 8, 1), ("os", 8, 1, 1), ("os", 8, 2, 2), ("is", 18, 7, 1), ("is", 18, 8, 2)],
)
def test_what_fits_side_by_side_depends_on_what_stays(flow, rows, cols, together):
    got = laid(DEPTHWISE, flow, rows=rows, cols=cols)
    fill = {"os": 0, "is": rows}[flow]
    stream = {"os": 9, "is": 1}[flow]
    assert unhindered(got) == 4 // together * (fill + rows + cols + stream - 2) - 1


def test_heads_of_attention_read_their_right_hand_side_as_activations():
    # 2 heads of 3 x 4 by 4 x 5, activations of two bytes, weights would have one
    heads = product("scores", 3, 4, 5, copies=2, weighted=False)
    got = laid(heads, activation_format="fp16", sparsity=0.5, resident=True, n_m="2:4")
    assert got.weight_bytes.item() == 0
    assert (got.weighted_macs.item(), got.unweighted_macs.item()) == (0, 2 * 60)
    assert got.dram_bytes.item() == 2 * 2 * (12 + 20 + 15)
    assert got.buffers.filter.written_bytes.item() == 2 * 2 * 20


def test_a_batch_gives_each_input_an_attention_of_its_own():
    one = laid(product("scores", 3, 4, 5, copies=2, weighted=False))
    four = laid(product("scores", 3, 4, 5, copies=2, weighted=False), batch=4)
    assert four.macs.item() == 4 * one.macs.item()
    assert four.dram_bytes.item() == 4 * one.dram_bytes.item()


def test_two_of_four_weights_stay_each_with_two_bits_of_place():
    # 1 x 16 by 16 x 8: 8 of 16 rows stay, one fold of 2*8 + 8 + 1 - 2 = 23 cycles and not two;
    # 64 weights of 8 + 2 bits are 80 bytes; all 16 inputs are read, two for each row at first
    got = laid(dense("fc", 16, 8), n_m="2:4")
    assert unhindered(got) == 23 - 1
    assert got.macs.item() == 64
    assert got.weight_bytes.item() == 80
    assert got.dram_bytes.item() == 16 + 80 + 8
    assert got.stall_cycles.item() == (104 - 22) + (80 + 16)
    assert got.buffers.ifmap.read_bytes.item() == 16


def test_a_block_that_is_not_whole_keeps_up_to_as_many():
    # of 11 weights 4 + 4 + 3: 1:4 keeps 1 + 1 + 1, 2:4 keeps 2 + 2 + 2, 4:8 keeps 4 + 3
    kept = [laid(dense("fc", 11, 1), n_m=n_m).macs.item() for n_m in ("1:4", "2:4", "4:8")]
    assert kept == [3, 6, 7]


def test_zeros_among_what_a_pattern_keeps_leave_a_map():
    # 64 places of 10 bits, half of them zeros: 5 + 1 bits each
    assert laid(dense("fc", 16, 8), n_m="2:4", sparsity=0.5).weight_bytes.item() == 48


def test_filters_dealt_to_two_cores_are_read_by_one_each_and_inputs_by_both():
    # 1 x 16 by 16 x 9: 5 filters and 4; each core two folds of 2*8 + 8 + 1 - 2 = 23 cycles
    got = laid(dense("fc", 16, 9), cores=2, split="n")
    assert unhindered(got) == 45
    assert got.macs.item() == 144
    assert got.dram_bytes.item() == 2 * 16 + 144 + 9
    # a stationary fold of 8 rows by 5 columns and one by 4, and an edge of 8 inputs for each
    assert got.stall_cycles.item() == (185 - 45) + (40 + 8) + (32 + 8)
    # one core needs two columns of folds for 9 filters
    assert unhindered(laid(dense("fc", 16, 9))) == 4 * 23 - 1


def test_pixels_dealt_to_three_cores_are_read_by_one_each_and_filters_by_all():
    # 7 x 16 by 16 x 8: 3, 2 and 2 rows; the core of 3 takes two folds of 2*8 + 8 + 3 - 2 = 25
    got = laid(product("fc", 7, 16, 8), cores=3, split="m")
    assert unhindered(got) == 2 * 25 - 1
    assert got.macs.item() == 7 * 128
    assert got.dram_bytes.item() == 7 * 16 + 3 * 128 + 7 * 8
    assert got.weight_bytes.item() == 128


def test_cores_without_work_read_nothing():
    # one row for each of two cores, none for two more
    two, four = (laid(product("fc", 2, 16, 8), cores=c, split="m") for c in (2, 4))
    assert two.dram_bytes.item() == four.dram_bytes.item() == 2 * 16 + 2 * 128 + 2 * 8
    assert two.stall_cycles.item() == four.stall_cycles.item()


def test_several_products_are_dealt_out_whole():
    # 4 channels to 3 cores: 2, 1 and 1; two products of two folds of 26 cycles
    assert unhindered(laid(DEPTHWISE, cores=3, split="n")) == 2 * 2 * 26 - 1


def test_a_core_needs_no_more_room_for_resident_weights_than_for_its_share():
    # 16 x 8 weights: 64 of them for each of two cores by filters, all for each by pixels
    fits = {"cores": 2, "resident": True, "filter_sram": 64.0}
    assert laid(dense("fc", 16, 8), split="n", **fits).dram_bytes.item() == 2 * 16 + 8
    by_rows = laid(product("fc", 2, 16, 8), split="m", **fits)
    assert by_rows.dram_bytes.item() == 2 * 16 + 2 * 128 + 2 * 8


@pytest.mark.parametrize(
    ("flow", "rows", "cycles"),
    [
        # 16 inputs down 8 rows: 2 folds begin 100 cycles apart; the last takes 8 + 8 + 8 + 98
        ("ws", 8, 100 + 122 - 1),
        # 100 pixels down 8 rows: 13 folds begin 16 cycles apart; the last takes 8 + 8 + 14
        ("os", 8, 12 * 16 + 30 - 1),
        # one fold of 128 rows: nothing to overlap with; 128 + 128 + 8 + 98
        ("ws", 128, 362 - 1),
    ],
)
def test_a_fold_is_filled_behind_the_one_before(flow, rows, cycles):
    got = laid(product("fc", 100, 16, 8), flow, rows=rows, overlap=True)
    assert unhindered(got) == cycles


def test_a_stream_that_is_shorter_than_the_array_waits_for_its_rows_to_fill():
    # 1 x 16 by 16 x 8: the second fold begins 8 cycles after the first, not 1
    assert unhindered(laid(dense("fc", 16, 8), overlap=True)) == 8 + 23 - 1


def test_accumulators_keep_what_the_output_buffer_cannot():
    # 8 outputs; 8 * 4 bytes of partial sums need all of the accumulators or half of the buffer
    spilling = {"ofmap_sram": 63.0}
    layer = dense("fc", 16, 8)
    assert laid(layer, **spilling).dram_bytes.item() == 152 + 2 * 32
    assert laid(layer, **spilling, accumulator_sram=31.0).dram_bytes.item() == 152 + 2 * 32
    got = laid(layer, **spilling, accumulator_sram=32.0)
    assert got.dram_bytes.item() == 152
    assert got.buffers.accumulator.read_bytes.item() == 32
    assert got.buffers.ofmap.read_bytes.item() == 8
    # sums of two bytes fit in the 31.5 bytes of the half
    assert laid(layer, **spilling, accumulator_bits=16).dram_bytes.item() == 152


@pytest.mark.parametrize(
    ("knobs", "cycles"),
    [
        ({"vector_lanes": 1}, 800),  # 800 outputs; the array takes 2 folds of 122, less one
        ({"vector_lanes": 3}, 267),
        ({"vector_lanes": 4}, 243),
        ({"vector_lanes": 4, "vector_ops": 2}, 400),
        ({"vector_lanes": 4, "vector_hidden": False}, 243 + 200),
    ],
)
def test_the_vector_unit_works_on_what_comes_out_or_afterwards(knobs, cycles):
    got = laid(product("fc", 100, 16, 8), **knobs)
    assert unhindered(got) == cycles
    assert got.vector_cycles.item() == cycles - 243
    assert got.outputs.item() == 800


@pytest.mark.parametrize(
    ("knobs", "word"),
    [
        # the array takes 243 cycles; 1600 + 128 + 800 bytes and 72 to begin
        ({"dram_bandwidth": 1e9}, 2),
        ({"dram_bandwidth": 16e9}, 0),
        ({"dram_bandwidth": 16e9, "vector_lanes": 2}, 1),
        ({"dram_bandwidth": 1e9, "vector_lanes": 2}, 2),
        ({"dram_bandwidth": 16e9, "vector_lanes": 8}, 0),
    ],
)
def test_the_bottleneck_is_what_the_layers_take_as_long_as(knobs, word):
    design = {"rows": 8, "cols": 8, "clock": 1e9} | knobs
    told = settings(Batch.of([design]), {"dataflow": "ws"})
    network = UniqueLayers([product("fc", 100, 16, 8)])
    layers, unhindered_totals = full.work("ws", network, told)
    waiting = waits(network, layers, told)
    cycles = unhindered_totals.cycles + waiting.stall_cycles
    assert bottleneck(cycles, waiting).item() == word


def test_two_cores_have_twice_the_area_of_one():
    technology = Technology(node_nm=45, dram_j_per_byte=0, leakage_w_per_mm2=0)
    designs = Batch.of([{"rows": 8, "cols": 8, "cores": cores} for cores in (1, 2)])
    knobs = settings(designs, {"dataflow": "ws"})
    got = full.totals("ws", UniqueLayers([dense("fc", 16, 8)]), knobs)
    area = charges(got, knobs, technology, weighted=True).area_mm2
    assert area[1] == 2 * area[0]
