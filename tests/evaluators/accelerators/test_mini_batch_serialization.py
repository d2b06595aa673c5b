"""Traffic of a training step in sub-batches: by hand, against a prototype, and by law."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.training.mini_batch_serialization import MiniBatchSerialization

MIB = 1024.0**2
RESNET = MiniBatchSerialization()
VGG = MiniBatchSerialization(network="vgg16")
CONVENTIONAL = {"schedule": "conventional", "buffer": 10 * MIB}
FUSED = {"schedule": "fused-norm", "buffer": 10 * MIB}
ONE_GROUP = {"schedule": "serialised", "buffer": 10 * MIB}
GROUPED = {**ONE_GROUP, "cuts[0]": 5, "cuts[1]": 9, "cuts[2]": 15}

designs = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from(["conventional", "fused-norm", "serialised"]),
        "buffer": st.floats(0.01 * MIB, 64 * MIB),
        "batch": st.integers(1, 64),
        "gradient_bytes": st.sampled_from([2.0, 4.0]),
        "side": st.sampled_from([32.0, 128.0]),
        "clock": st.floats(1e8, 2e9),
        "dram_bandwidth": st.floats(1e9, 1e12),
        "cuts[0]": st.integers(1, 4),
        "cuts[1]": st.integers(1, 4),
    }
)


def metrics(*rows, evaluator=RESNET):
    """The columns of these designs, all of which can exist."""
    got = evaluator.evaluate(Batch.of(rows))
    assert not got.failures
    return got.columns


def sum_of(columns, whole):
    return sum(columns[name] for name, one in VGG.provides.items() if one.part_of == whole)


def saved(one, other, metric="dram_traffic"):
    got = metrics(one, other)[metric]
    return 1 - got[0] / got[1]


# An independent prototype of the same counts, told to four digits: 12.07 GB, of which 3.31 GB stay
# with one sub-batch for each of the groups 2, 5, 11 and 23; it writes the network's own input once.
def test_a_conventional_step_of_resnet_50_moves_what_a_prototype_found():
    assert metrics(CONVENTIONAL)["dram_traffic"] == pytest.approx(12.07e9, abs=0.005e9)


def test_a_serialised_step_does_but_for_one_pass_of_the_images():
    images = 224 * 224 * 3 * 32 * 2
    assert metrics(GROUPED)["dram_traffic"] + images == pytest.approx(3.31e9, abs=0.005e9)


def test_its_sub_batches_are_those_of_the_prototype():
    got = metrics(GROUPED)
    assert (got["groups"], got["smallest_sub_batch"], got["largest_sub_batch"]) == (4, 2, 23)
    assert got["falls"] == 0


# The prototype's savings at 4, 20 and 40 MiB, rounded to tenths of a percent; 0.15 points apart
# at most, since its ResNet-50 may have its strides elsewhere.
@pytest.mark.parametrize(("buffer_mib", "share"), [(4, 0.656), (20, 0.749), (40, 0.767)])
def test_other_buffers_save_what_the_prototype_found(buffer_mib, share):
    (found,) = RESNET.best(Batch.of([{"buffer": buffer_mib * MIB}]))
    conventional = metrics(CONVENTIONAL)["dram_traffic"][0]
    assert 1 - found.cost / conventional == pytest.approx(share, abs=0.0015)


def test_ten_mebibytes_save_70_to_80_percent_of_the_traffic():
    assert 0.7 <= saved(GROUPED, CONVENTIONAL) <= 0.8


def test_a_baseline_with_fused_norms_leaves_less_to_save():
    assert saved(GROUPED, FUSED) == pytest.approx(0.577, abs=0.0005)  # the prototype's figure


def test_groups_save_15_points_more_than_one_sub_batch_for_all():
    assert saved(GROUPED, CONVENTIONAL) - saved(ONE_GROUP, CONVENTIONAL) >= 0.15


def test_one_group_of_all_samples_moves_each_weight_as_a_conventional_step_does():
    whole = {**ONE_GROUP, "buffer": 2.0**40}
    got = metrics(whole, CONVENTIONAL)
    assert got["smallest_sub_batch"][0] == 32
    assert got["weight_traffic"][0] == got["weight_traffic"][1]
    assert got["crossing_traffic"][0] == 0


def test_a_block_whose_sample_does_not_fit_runs_as_without_the_scheme():
    tiny = {"schedule": "serialised", "buffer": 1024.0}
    conventional = {"schedule": "conventional", "buffer": 1024.0}
    got = metrics(tiny, conventional)
    assert got["spilled"].tolist() == [17, 0]
    assert got["dram_traffic"][0] == got["dram_traffic"][1]


# VGG-16 in 16-bit words: the first stage holds 2 x 64 x 224 x 224 numbers of a sample, 12.25 MiB.
@pytest.mark.parametrize(("buffer_mib", "spilled"), [(12.24, 1), (12.25, 0), (6.1, 2)])
def test_a_stage_of_vgg_16_fits_if_its_two_largest_images_do(buffer_mib, spilled):
    got = metrics({"buffer": buffer_mib * MIB}, evaluator=VGG)
    assert got["spilled"] == spilled


def test_a_group_after_a_spilled_block_reads_its_input_and_writes_its_gradient_once_more():
    # Pooled, 64 x 112 x 112 words come into the second stage; one of the two writes is counted.
    got = metrics({"buffer": 10 * MIB, "batch": 1}, evaluator=VGG)
    assert got["crossing_traffic"] == 64 * 112 * 112 * 2


@settings(max_examples=30)
@given(designs)
def test_breakdowns_sum_to_their_totals(design):
    got = metrics(design, evaluator=VGG)
    for_all = {whole: sum_of(got, whole)[0] for whole in ("latency", "energy", "dram_traffic")}
    assert {whole: got[whole][0] for whole in for_all} == pytest.approx(for_all, rel=1e-12)


@settings(max_examples=30)
@given(designs, st.floats(1, 100))
def test_more_bandwidth_is_never_slower(design, factor):
    faster = {**design, "dram_bandwidth": factor * design["dram_bandwidth"]}
    slow, fast = metrics(design, faster, evaluator=VGG)["latency"]
    assert fast <= slow


@settings(max_examples=30)
@given(designs)
def test_infinite_bandwidth_leaves_the_array_alone(design):
    got = metrics({**design, "dram_bandwidth": 1e16}, evaluator=VGG)
    assert got["latency"] == pytest.approx(got["array_time"], rel=1e-6)


@settings(max_examples=30)
@given(designs, st.floats(12.25, 64), st.floats(1, 10))
def test_once_all_blocks_fit_a_larger_buffer_never_moves_more(design, buffer_mib, factor):
    small = {**design, "buffer": buffer_mib * MIB}
    less, more = metrics(small, {**small, "buffer": factor * buffer_mib * MIB}, evaluator=VGG)[
        "dram_traffic"
    ]
    assert more <= less


@settings(max_examples=30)
@given(designs)
def test_narrower_gradients_never_move_more(design):
    wide, narrow = ({**design, "gradient_bytes": size} for size in (4.0, 2.0))
    more, less = metrics(wide, narrow, evaluator=VGG)["dram_traffic"]
    assert less < more


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("schedule", "fused-norm"),
        ("buffer", 20 * MIB),
        ("batch", 16),
        ("gradient_bytes", 4.0),
        ("side", 64.0),
        ("clock", 1e9),
        ("dram_bandwidth", 50e9),
        ("cuts[1]", 10),
    ],
)
def test_every_knob_moves_some_metric(knob, value):
    got = metrics(GROUPED, {**GROUPED, knob: value})
    assert any(column[0] != column[1] for column in got.values())


def test_one_number_is_the_only_cut():
    one, listed = {**ONE_GROUP, "cuts": 9}, {**ONE_GROUP, "cuts[0]": 9}
    assert metrics(one)["dram_traffic"] == metrics(listed)["dram_traffic"]
    assert metrics(one)["groups"] == 2


def test_a_cut_beyond_the_chain_is_refused_before_it_is_run():
    with pytest.raises(SpecError, match=r"cuts\[0\] cannot be 5"):
        VGG.check_values({"cuts[0]": [1, 5]})


def test_a_number_that_no_knob_takes_is_told():
    failures = RESNET.evaluate(Batch.of([GROUPED, {**GROUPED, "batch": 0}])).failures
    assert set(failures) == {1}
    assert "batch is 0, not from 1" in failures[1].reason


@pytest.mark.parametrize("options", [{"network": "lenet"}, {"dram": "core"}, {"knobs": {"n": 1}}])
def test_an_option_that_it_does_not_take_is_refused(options):
    with pytest.raises(SpecError):
        MiniBatchSerialization(**options)
