"""FlashAttention in short numbers: exact where nothing is rounded, and off by what is."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.formats.names import format_of
from dse_evaluators.numerics.attention import Attention
from dse_evaluators.numerics.blockwise import Heads, at_once, blockwise, exact
from dse_evaluators.numerics.tiles import sram_bytes, traffic_bytes

BF16, FP32 = format_of("bf16"), format_of("fp32")
PLAIN = {"attention_format": "bf16", "keys": 512, "block_keys": 64, "value_mean": 1}


def heads(keys: int, rounding=FP32, width: int = 16) -> Heads:
    rng = np.random.default_rng(3)
    queries, others, values = (
        rounding.quantize(rng.standard_normal((rows, width)).astype(np.float32))
        for rows in (24, keys, keys)
    )
    return Heads(queries=queries, keys=others, values=values)


def measured(**design) -> dict[str, float]:
    told = Attention(queries=64).evaluate(Batch.of([{**PLAIN, **design}]))
    assert not told.failures
    return {name: float(values[0]) for name, values in told.columns.items()}


def test_exact_attention_is_a_mean_of_the_values_by_the_softmax_of_the_scores() -> None:
    some = heads(40)
    scores = some.queries.astype(float) @ some.keys.astype(float).T / 4
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert exact(some) == pytest.approx(shares @ some.values.astype(float), abs=1e-12)


def test_plain_attention_in_single_precision_is_as_good_as_exact() -> None:
    some = heads(300)
    assert at_once(some, FP32) == pytest.approx(exact(some), abs=2e-6)


@pytest.mark.parametrize(
    ("block_queries", "block_keys"), [(24, 1), (24, 7), (5, 16), (1, 40), (100, 999)]
)
def test_blocks_of_any_size_give_the_same_in_single_precision(block_queries, block_keys) -> None:
    some = heads(40)
    found = blockwise(some, FP32, FP32, block_queries=block_queries, block_keys=block_keys)
    assert found == pytest.approx(exact(some), abs=4e-6)


def test_every_output_is_a_number_of_the_format() -> None:
    found = blockwise(heads(96, BF16), BF16, BF16, block_queries=8, block_keys=32)
    assert (BF16.quantize(found) == found).all()


def test_the_first_block_needs_no_largest_score_before_it() -> None:
    found = blockwise(heads(8, BF16), BF16, BF16, block_queries=24, block_keys=8)
    assert np.isfinite(found).all()


def test_smaller_blocks_deviate_more() -> None:
    assert measured(block_keys=16)["mean_deviation"] > measured(block_keys=128)["mean_deviation"]


def test_more_mantissa_bits_deviate_less() -> None:
    finer = measured(attention_format="fp:e8m10")
    assert finer["max_deviation"] < measured()["max_deviation"] / 4


def test_a_state_in_single_precision_deviates_less() -> None:
    assert measured(state_format="fp32")["mean_ratio"] < 1 < measured()["mean_ratio"]


def test_the_block_of_queries_changes_no_bit() -> None:
    wide, narrow = measured(block_queries=64), measured(block_queries=16)
    assert wide["max_deviation"] == narrow["max_deviation"]
    assert wide["wasserstein"] == narrow["wasserstein"]


def test_tiles_are_counted_by_hand() -> None:
    # queries 2 x 4, keys and values 2 x 3 x 4, scores 2 x 3 in 16 bits; outputs 2 x 4, 2 x 2 in 32
    counted = sram_bytes(BF16, FP32, 4, block_queries=2, block_keys=3)
    assert counted == (8 + 24 + 6) * 2 + (8 + 4) * 4


def test_traffic_is_counted_by_hand() -> None:
    # two blocks: keys and values once, queries twice; outputs and two numbers read and written twice
    assert traffic_bytes(BF16, FP32, (6, 4), 3) == (2 + 2) * 24 * 2 + 2 * 2 * 6 * 6 * 4


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"keys": 1}, "exact here"),
        ({"block_keys": 0}, "a whole number, at least 1"),
        ({"block_keys": 2.5}, "a whole number, at least 1"),
        ({"attention_format": "bf17"}, "did you mean"),
    ],
)
def test_what_cannot_be_run_is_the_fault_of_its_row(design, reason) -> None:
    told = Attention(queries=8).evaluate(Batch.of([PLAIN | {"keys": 64}, PLAIN | design]))
    assert list(told.failures) == [1]
    assert reason in told.failures[1].reason


@pytest.mark.parametrize("option", ["queries", "width"])
def test_a_head_without_rows_is_refused(option) -> None:
    with pytest.raises(PluginError, match=f"{option} cannot be 0"):
        Attention(**{option: 0})
