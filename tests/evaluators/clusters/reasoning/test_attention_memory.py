"""Memory by attention and weight format: counts by hand, the order in print, and bad groups."""

from __future__ import annotations

import json

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.reasoning.attention_memory import MemoryEfficiency


def memory(**design):
    found = MemoryEfficiency().evaluate(Batch.of([{"model": "llama2-7b", **design}]))
    assert not found.failures
    return {name: float(column[0]) for name, column in found.columns.items()}


# 32 layers, 32 heads of 128, two bytes: Shazeer 2019; Ainslie et al. 2023; DeepSeek-V2, table 1
@pytest.mark.parametrize(
    ("design", "elements"),
    [
        ({"attention": "mha"}, 2 * 32 * 128),
        ({"attention": "gqa", "groups": 8}, 2 * 8 * 128),
        ({"attention": "mqa"}, 2 * 128),
        ({"attention": "mla"}, 576),
        ({"attention": "own"}, 2 * 32 * 128),
    ],
)
def test_a_token_adds_the_bytes_of_the_formula_in_print(design, elements):
    found = memory(**design, context=1000, sequences=3)
    assert found["cache_per_token"] == 32 * elements * 2
    assert found["cache"] == 3000 * 32 * elements * 2
    assert found["cache_ratio"] == 8192 / elements


def test_four_bits_with_groups_of_128_take_3_88_times_less():
    assert memory(weight_bits=4, group=128)["weight_ratio"] == pytest.approx(16 / 4.125)


def test_weights_follow_the_heads_of_the_projections():
    whole, single = (memory(attention=one)["weights"] for one in ("mha", "mqa"))
    assert whole - single == 2 * 32 * 2 * 4096 * 31 * 128


def test_groups_that_do_not_divide_the_heads_have_a_reason():
    found = MemoryEfficiency().evaluate(
        Batch.of([{"model": "llama2-7b", "attention": "gqa", "groups": 7}])
    )
    assert found.failures[0].reason == "7 groups do not divide 32 heads"


def test_models_of_the_user_are_chosen_by_their_names(tmp_path):
    (tmp_path / "mine").mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "num_hidden_layers": 22,
        "vocab_size": 32000,
    }
    path = tmp_path / "mine" / "config.json"
    path.write_text(json.dumps(config))
    wide = {"like": "llama2-7b", "name": "grouped", "kv_heads": 8}
    listed = MemoryEfficiency(model=["llama2-7b", wide, str(path)])
    names = ["llama2-7b", "grouped", "mine"]
    designs = [{"model": name, "attention": "own", "weight_bits": 16} for name in names]
    cache = listed.evaluate(Batch.of(designs)).columns["cache_per_token"]
    assert cache.tolist() == [2 * 32 * 32 * 128 * 2, 2 * 32 * 8 * 128 * 2, 2 * 22 * 4 * 64 * 2]
    alone = MemoryEfficiency(model=str(path))
    assert "model" not in alone.reads
    assert alone.version != MemoryEfficiency().version
    with pytest.raises(SpecError, match="two models of one name"):
        MemoryEfficiency(model=["llama2-7b", {"like": "llama2-7b", "layers": 8}])
