"""What a training plan may not be, what each of its knobs moves, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.training.training import Training

DENSE = {"tp": 8, "pp": 8, "dp": 32, "microbatch": 1, "zero": 1, "recompute": "none"}
EXPERTS = {"tp": 4, "pp": 2, "dp": 64, "ep": 8, "microbatch": 1, "zero": 1, "recompute": "none"}
EXPERTS |= {"sequence_parallel": True}


def told(options=None, **design):
    usual = {"model": "llama2-70b", "global_batch": 2048, "tokens": 2e12}
    got = Training(**usual | (options or {})).evaluate(Batch.of([DENSE | design]))
    return got.failures.get(0), {name: float(values[0]) for name, values in got.columns.items()}


def mixed(options=None, **design):
    """As :func:`told`, of experts."""
    return told({"model": "mixtral-8x7b"} | (options or {}), **EXPERTS | design)


def test_a_plan_that_does_not_fit_says_by_how_much():
    failure, _ = told(tp=1, pp=1, dp=2048, zero=0)
    assert failure.kind == "infeasible"
    assert "GiB short" in failure.reason


def test_what_a_host_cannot_hold_says_by_how_much():
    failure, _ = told({"host_memory": "16 GB"}, offload="optimizer", zero=0)
    assert "of its host" in failure.reason


@pytest.mark.parametrize(
    ("design", "word"),
    [
        ({"tp": 16, "dp": 16}, "a node has 8"),
        ({"pp": 7}, "layers over pipeline stages: 80 in 7"),
        ({"microbatch": 3}, "sequences over microbatches"),
        ({"interleave": 2, "pp": 1, "dp": 256}, "a pipeline of 1"),
        ({"interleave": 5, "pp": 16, "dp": 256}, "no multiple of 16"),
        ({"dp": 1}, "shares among replicas"),
        ({"dp": 1, "zero": 0, "overlap": True}, "to overlap"),
        ({"cp": 3}, "both ends of a context: 4096 in 6"),
        ({"ep": 8}, "experts over expert parallel devices: 1 in 8"),
        ({"schedule": "zero_bubble", "pp": 1, "dp": 256}, "a pipeline of 1"),
        ({"schedule": "zero_bubble", "interleave": 2}, "one stage on each device, not 2"),
    ],
)
def test_a_layout_that_cannot_be_says_why(design, word):
    failure, _ = told(**design)
    assert word in failure.reason


@pytest.mark.parametrize(
    ("design", "word"),
    [
        ({"ep": 3}, "8 in 3"),
        ({"ep": 8, "dp": 4}, "replicas over expert parallel devices: 4 in 8"),
        ({"sequence_parallel": False}, "need sequence parallelism"),
    ],
)
def test_experts_that_cannot_be_dealt_out_say_why(design, word):
    failure, _ = mixed(**design)
    assert word in failure.reason


@pytest.mark.parametrize(
    "change",
    [
        {"tp": 4, "dp": 64},
        {"pp": 16, "dp": 16},
        {"microbatch": 2},
        {"interleave": 2},
        {"sequence_parallel": True},
        {"recompute": "full"},
        {"zero": 0},
        {"cp": 2, "dp": 16},
        {"schedule": "zero_bubble"},
        {"schedule": "zero_bubble_2x"},
        {"number_format": "fp8"},
        {"offload": "optimizer"},
        {"offload": "optimizer+weights"},
        {"overlap": True},
    ],
    ids=lambda change: "-".join(map(str, change.values())),
)
def test_every_knob_moves_time_or_memory(change):
    _, before = told()
    _, after = told(**change)
    assert (before["step_time"], before["memory"]) != (after["step_time"], after["memory"])


@pytest.mark.parametrize(
    ("options", "design", "metric"),
    [
        ({"imbalance": 1.5}, {}, "expert_time"),
        ({"overlap_tax": 0.5}, {"overlap": True}, "data_time"),
        ({"host_bandwidth": "1 GB/s"}, {"offload": "optimizer"}, "offload_time"),
        ({"price_per_hour": 2.0}, {}, "cost_per_token"),
        ({"grid": "iceland"}, {}, "carbon_per_token"),
        ({"pue": 2.0}, {}, "carbon_per_token"),
        ({"tokens": 1e12}, {}, "time_to_train"),
        ({"sequence": 8192}, {}, "step_time"),
        ({"global_batch": 1024}, {}, "step_time"),
        ({"fused": False}, {}, "compute_time"),
        ({"system": "a100-dgx"}, {}, "compute_time"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, dict) else "",
)
def test_every_option_moves_what_it_is_about(options, design, metric):
    assert mixed(options, **design)[1][metric] != mixed(**design)[1][metric]


def test_dealt_out_experts_take_less_memory_and_more_messages():
    _, together = mixed(ep=1)
    _, apart = mixed(ep=8)
    assert together["expert_time"] == 0
    assert apart["expert_time"] > 0
    assert apart["weights_memory"] < together["weights_memory"] / 4
    assert apart["data_traffic"] < together["data_traffic"] / 4


def test_the_state_of_experts_is_shared_by_their_own_replicas():
    _, together = mixed(ep=1)
    _, apart = mixed(ep=8)
    assert apart["optimizer_memory"] == pytest.approx(together["optimizer_memory"], rel=1e-12)


def test_a_cut_context_hides_its_ring_behind_long_attention():
    _, short = told({"sequence": 2048}, cp=8, dp=4, microbatch=1)
    _, long = told({"sequence": 262_144, "global_batch": 256}, cp=8, dp=4, recompute="full")
    assert short["context_time"] > 0
    assert long["context_time"] == 0


def test_a_cut_context_halves_activations_and_keeps_state():
    _, whole = told(dp=32)
    _, cut = told(dp=16, cp=2)
    assert cut["activations_memory"] == pytest.approx(whole["activations_memory"] / 2, rel=1e-3)
    assert cut["optimizer_memory"] == whole["optimizer_memory"]


def test_schedules_without_bubbles_wait_less_for_as_much_or_twice_the_memory():
    _, plain = told()
    _, first = told(schedule="zero_bubble")
    _, second = told(schedule="zero_bubble_2x")
    assert second["bubble_time"] < first["bubble_time"] < plain["bubble_time"]
    assert first["memory"] == plain["memory"]
    # Qi et al., 2023, table 2: 2 p - 1 microbatches for p.
    layers = 2048 * 2**20
    assert second["activations_memory"] == pytest.approx(
        plain["activations_memory"] * 15 / 8, abs=layers
    )


def test_messages_that_compute_hides_cost_its_tax_and_no_more():
    options = {"sequence": 65_536, "overlap_tax": 0.15}
    _, plain = told(options)
    _, hidden = told(options, overlap=True)
    assert hidden["data_time"] == pytest.approx(0.15 * plain["data_time"], rel=1e-9)
    assert hidden["exposed"] < plain["exposed"]
    assert hidden["data_traffic"] == plain["data_traffic"]


def test_the_messages_of_the_last_layer_cannot_be_hidden():
    options = {"sequence": 65_536, "overlap_tax": 0.0}
    _, plain = told(options)
    _, hidden = told(options, overlap=True)
    assert hidden["data_time"] == pytest.approx(plain["data_time"] / 10, rel=1e-9)


def test_eight_bits_halve_the_weights_of_layers_and_take_longer_than_half_the_time():
    _, wide = told()
    _, narrow = told(number_format="fp8")
    assert 0.5 < narrow["weights_memory"] / wide["weights_memory"] < 0.55
    assert 0.5 < narrow["compute_time"] / wide["compute_time"] < 1.0
    assert narrow["optimizer_memory"] == wide["optimizer_memory"]
    assert narrow["tensor_time"] == wide["tensor_time"]


def test_the_options_format_is_the_one_of_designs_that_do_not_tell():
    assert told({"number_format": "fp8"}) == told(number_format="fp8")


def test_what_is_offloaded_is_in_the_host():
    _, here = told()
    _, there = told(offload="optimizer+weights")
    moved = here["optimizer_memory"] + here["weights_memory"]
    assert there["host_memory"] == pytest.approx(moved, rel=1e-12)
    assert there["memory"] < here["memory"]
    assert there["step_time"] > here["step_time"]


def test_the_fuller_end_of_a_pipeline_counts():
    options = {"model": "llama3-8b", "sequence": 8192, "global_batch": 64}
    layout = {"tp": 1, "pp": 2, "dp": 4, "microbatch": 16, "recompute": "full"}
    _, got = told(options, **layout)
    logits = 4.0 * 16 * 8192 * 128_256
    assert got["activations_memory"] > logits


def test_both_ends_may_have_a_layer_less_than_those_between_them():
    options = {"model": "llama3-405b", "system": "h200-hgx"}
    layout = {"dp": 128, "recompute": "full", "sequence_parallel": True}
    failure, uneven = told(options, pp=16, **layout)
    _, even = told(options, pp=14, **layout)
    assert failure is None
    # 126 layers in 14 stages of nine; in 16 of eight, of which the first and the last have seven.
    assert 0.8 < uneven["compute_time"] / even["compute_time"] < 8 / 9  # and the head is hidden
    assert "126 in 12" in told(options, pp=12, **layout)[0].reason


def test_a_device_that_nobody_measured_is_told_as_such():
    assert told()[1]["extrapolated"] == 0
    assert told({"system": "frontier"})[1]["extrapolated"] == 1


def test_money_carbon_and_time_follow_from_the_rate():
    _, got = told({"price_per_hour": 3.6})
    each_s = got["devices"] / got["throughput"]
    assert got["cost_per_token"] == pytest.approx(each_s * 1e-3, rel=1e-12)
    assert got["time_to_train"] == pytest.approx(2e12 / got["throughput"], rel=1e-12)


def test_what_nobody_knows_of_a_device_is_not_told():
    provided = Training(model="llama2-70b", system="mi325x-platform").provides
    assert "cost_per_token" not in provided
    assert "time_to_train" not in provided
    priced = Training(model="gpt2", system="mi325x-platform", price_per_hour=1)
    assert "cost_per_token" in priced.provides


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"model": "llama2-70"}, "llama2-70b"),
        ({"model": "llama2-70b", "system": "h100-dxg"}, "h100-dgx"),
        ({"model": "llama2-70b", "number_format": "fp9"}, "fp8"),
        ({"model": "llama2-70b", "system": "a100-dgx", "number_format": "fp8"}, "fp16"),
        ({"model": "llama2-70b", "sequence": 0}, "a whole number"),
        ({"model": "llama2-70b", "imbalance": 0.5}, "from 1"),
        ({"model": "llama2-70b", "host_bandwidth": "3 GB"}, ""),
    ],
)
def test_what_is_unknown_is_told_with_the_nearest(options, hint):
    with pytest.raises(SpecError) as error:
        Training(**options)
    assert hint in str(error.value.hint)


def test_a_device_without_products_in_any_format_is_refused():
    with pytest.raises(SpecError):
        chips_of("cerebras-cs3")


def test_a_format_that_a_device_lacks_is_refused_before_a_study_runs():
    with pytest.raises(SpecError):
        Training(model="gpt2", system="a100-dgx").check_values({"number_format": ["bf16", "fp8"]})


def test_plans_in_words_and_in_codes_are_the_same():
    designs = [DENSE | {"zero": zero, "overlap": True} for zero in (0, 1, 3) * 8]
    trained = Training(model="llama2-70b", global_batch=2048)
    together = trained.evaluate(Batch.of(designs)).columns["step_time"]
    alone = [trained.evaluate(Batch.of([one])).columns["step_time"][0] for one in designs]
    assert np.array_equal(together, alone)
