"""Pipelines of a served model: what stages cost, and what they do not change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.clusters.serving.serving import Serving

stages = st.sampled_from([1, 2, 4, 8])


def outcome(*designs, **options):
    usual = {"model": "llama3-70b", "device": "h200-sxm", "isl": 2048, "osl": 256}
    plan = {"tp": 2, "batch": 32, "weight_format": "fp8", "kv_format": "fp8"}
    batch = Batch.of([{**plan, **each} for each in designs])
    return Serving(**{**usual, **options}).evaluate(batch)


def column(name, *designs, **options):
    return outcome(*designs, **options).columns[name]


@settings(max_examples=25)
@given(stages, st.integers(1, 256), st.sampled_from([0, 256, 2048]))
def test_stages_read_no_more_than_all_the_time_and_parts_sum(pp, batch, chunk):
    columns = outcome({"pp": pp, "batch": batch, "chunk": chunk}).columns
    assert 0 < columns["reading"][0] <= 1 + 1e-12
    parts = [values[0] for name, values in columns.items() if name.endswith("_time")]
    assert sum(parts) == pytest.approx(columns["tpot"][0])


def test_one_text_waits_only_for_what_passes_between_stages():
    """It finds every stage empty, so stages of one node add their messages and nothing else."""
    one, four = ({"pp": pp, "batch": 1} for pp in (1, 4))
    for part in ("products", "attention", "elementwise", "head"):
        times = column(f"{part}_time", one, four)
        assert times[0] == times[1]
    sent = column("collectives_time", one, four)
    assert sent[1] > sent[0]


def test_stages_divide_what_each_device_keeps():
    """The first has the embedding, the last the head: 128,256 words of 8,192 numbers of 2 bytes."""
    whole, four = outcome({"batch": 1}, {"pp": 4, "batch": 1}).columns["weights_memory"]
    tables = 128_256 * 8192 * 2 / 2  # over two devices
    assert 4 * (four - tables) == whole - 2 * tables


def test_four_stages_on_eight_devices_finish_more_than_one():
    """Each has a quarter of the layers, and four steps are on their way."""
    one, four = column("throughput", {}, {"pp": 4, "batch": 128})
    assert 2 * one < four
    assert column("devices", {}, {"pp": 4}).tolist() == [2.0, 8.0]


def test_prompts_hold_up_others_for_one_stage_only():
    alone, staged = column("token_gap", {"batch": 2}, {"batch": 2, "pp": 4})
    assert staged < alone


def test_stages_on_other_nodes_are_told_to_be_guessed():
    near, far = column("extrapolated", {"tp": 4, "pp": 2}, {"tp": 4, "pp": 4})
    assert (near, far) == (0.0, 1.0)


UNEVEN = {"like": "llama3-70b", "layers": 30}


def test_the_fullest_stage_sets_the_pace():
    """Four stages of 8, 8, 7 and 7 layers: four steps take as long as 32 of 30 layers. The head,
    of a small vocabulary, is shorter than the layer that the last stage has less."""
    model = {**UNEVEN, "vocabulary": 1000}
    one, four = {"batch": 8}, {"batch": 32, "pp": 4}
    for part in ("products", "attention", "elementwise"):
        times = column(f"{part}_time", one, four, model=model)
        assert times[1] == pytest.approx(times[0] * 32 / 30)
    assert column("head_time", four, model=model)[0] == pytest.approx(0, abs=1e-12)


def test_a_head_that_takes_longer_than_a_layer_makes_the_last_stage_the_slowest():
    model = {**UNEVEN, "vocabulary": 1_000_000}
    one, four = {"batch": 8}, {"batch": 32, "pp": 4}
    layers = column("products_time", one, four, model=model)
    head = column("head_time", one, four, model=model)
    assert layers[1] == pytest.approx(layers[0] * 28 / 30)
    assert head[1] == pytest.approx(4 * head[0])


def test_one_text_passes_every_layer_once_also_through_uneven_stages():
    times = column("products_time", {"batch": 1}, {"batch": 1, "pp": 4}, model=UNEVEN)
    assert times[0] == times[1]


def test_the_fullest_stage_has_one_layer_more():
    """DeepSeek-V3: 61 layers, of which 3 are dense; the fullest of 4 stages has 16 with experts."""
    plan = {"tp": 8, "batch": 1, "kv_format": "bf16"}
    whole, four = outcome(plan, {**plan, "pp": 4}, model="deepseek-v3").columns["cache_memory"]
    assert four == pytest.approx(whole * 16 / 61)
    weights = outcome({**plan, "pp": 4}, model="deepseek-v3").columns["weights_memory"][0]
    experts = 16 * 256 * 3 * 7168 * 2048 / 8
    assert experts < weights < 1.1 * experts


def test_guesses_do_not_pass_a_pipeline():
    failure = outcome({"pp": 2, "draft_tokens": 2}, draft_model="llama3-8b").failures[0]
    assert failure.reason == "a pipeline of 2 stages does not support 2 draft tokens per step"
