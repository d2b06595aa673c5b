"""Transformers as layers: what prefill, decoding, batches and shared keys do to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.workloads.catalogue import layers_of, table_of

LENGTHS = st.integers(min_value=1, max_value=4096)
BATCHES = st.integers(min_value=1, max_value=64)


def unweighted(text):
    """The products of activations with activations."""
    return [layer for layer in layers_of(text) if not layer.weighted]


def weighted_macs(text):
    """The products with weights, but for the head's."""
    *blocks, _ = layers_of(text)
    return sum(layer.macs for layer in blocks if layer.weighted)


@pytest.mark.parametrize("length", [1, 512, 1024])
def test_a_gpt_takes_the_operations_of_megatrons_formula(length):
    # Narayanan et al.: Efficient Large-Scale Language Model Training on GPU Clusters, 2021,
    # appendix: 24 B s l h^2 (1 + s / 6 h) forward, without the head
    *blocks, _ = layers_of(f"gpt2:prefill={length},batch=2")
    told = 24 * 2 * length * 12 * 768**2 * (1 + length / (6 * 768))
    assert 2 * sum(layer.macs for layer in blocks) == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "cache_numbers"),
    [
        ("llama2-7b", 2 * 32 * 4096),  # 512 KiB a token at two bytes
        ("llama3-70b", 2 * 80 * 8 * 128),  # 320 KiB
        ("llama3-405b", 2 * 126 * 8 * 128),  # 504 KiB
    ],
)
def test_the_right_hand_sides_of_attention_are_the_cache_of_keys_and_values(model, cache_numbers):
    layers = unweighted(f"{model}:decode=100,batch=3")
    assert sum(x.copies * x.channels * x.filters for x in layers) == 3 * 100 * cache_numbers


def test_queries_that_share_a_key_are_rows_of_one_product():
    scores, mix = unweighted("llama3-70b:decode=4096,batch=8")[:2]
    assert (scores.copies, scores.height, scores.channels, scores.filters) == (64, 8, 128, 4096)
    assert (mix.copies, mix.height, mix.channels, mix.filters) == (64, 8, 4096, 128)


@given(length=LENGTHS, batch=BATCHES)
def test_prefill_multiplies_by_the_weights_once_for_each_token(length, batch):
    one = weighted_macs("llama3-8b:decode=1")
    assert weighted_macs(f"llama3-8b:prefill={length},batch={batch}") == length * batch * one


@given(length=LENGTHS, batch=BATCHES)
def test_decoding_takes_as_many_products_with_weights_whatever_was_before(length, batch):
    one = weighted_macs("llama2-70b:decode=1")
    assert weighted_macs(f"llama2-70b:decode={length},batch={batch}") == batch * one


@given(length=LENGTHS, batch=BATCHES)
def test_whole_squares_are_as_much_as_every_token_decoded_with_all_of_them(length, batch):
    square = sum(x.macs for x in unweighted(f"llama2-7b:prefill={length},batch={batch}"))
    row = sum(x.macs for x in unweighted(f"llama2-7b:decode={length},batch={batch}"))
    assert square == length * row


@given(length=LENGTHS, batch=BATCHES)
def test_a_text_changes_the_work_and_never_the_parameters(length, batch):
    table = table_of(f"llama3-8b:prefill={length},batch={batch}")
    assert table.parameters == 8_030_261_248
    assert table.lookups[0].read == length * batch * 4096


@given(length=LENGTHS)
def test_a_batch_is_so_many_times_the_work_of_one(length):
    one, seven = (table_of(f"llama2-7b:prefill={length},batch={n}") for n in (1, 7))
    assert seven.macs == 7 * one.macs


def test_a_head_that_is_the_embedding_is_counted_once():
    table = table_of("gpt2")
    assert table.lookups[0].shared
    assert table.parameters == table.weights + table.others


def test_an_encoder_reads_tokens_and_pools_the_first():
    *_, pooler = layers_of("bert-base:tokens=384,batch=2")
    assert (pooler.height, pooler.channels, pooler.filters) == (2, 768, 768)
    assert layers_of("bert-base:tokens=384,batch=2")[0].height == 768


def test_only_what_lies_between_the_halves_of_the_feed_forward_part_is_pruned():
    layers = layers_of("llama2-7b")[:6]
    sides = {x.name.partition("-")[2]: (x.pruned_inputs, x.pruned_outputs) for x in layers}
    assert sides == {
        "qkv": (False, False),
        "scores": (False, False),
        "mix": (False, False),
        "out": (False, False),
        "up": (False, True),
        "down": (True, False),
    }
