"""Decoding in chosen precision: the network that was trained, and sums that do not commute."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.formats.names import format_of
from dse_evaluators.numerics.decoding import Arithmetic, Decoder
from dse_evaluators.numerics.layercast import LayerCast
from dse_evaluators.workloads.character_lm import CHECKPOINT, checkpoint

WEIGHTS = checkpoint(CHECKPOINT)
BF16, FP32 = format_of("bf16"), format_of("fp32")
SMALL = LayerCast(prompts=16, steps=24)


def told(**design) -> dict[str, float]:
    metrics = SMALL.evaluate(Batch.of([design]))
    assert not metrics.failures
    return {name: float(values[0]) for name, values in metrics.columns.items()}


def decoder(rounding=FP32, parts: int = 1) -> Decoder:
    return Decoder(WEIGHTS, Arithmetic(rounding=rounding, parts=parts))


@pytest.mark.slow
def test_its_logits_are_those_of_the_workloads_network() -> None:
    import torch

    from dse_evaluators.workloads import character_network
    from dse_evaluators.workloads.taps import rounding
    from dse_evaluators.workloads.workload import Signals

    prompts = np.random.default_rng(0).integers(0, 84, (3, 12))
    found = decoder().decode(prompts, 6)
    codes = torch.tensor(np.concatenate([prompts, found.codes], axis=1)[:, :-1])
    tensors = {name: torch.tensor(array) for name, array in WEIGHTS.items()}
    with torch.inference_mode():
        logits = character_network.logits(
            tensors, codes, rounding(Signals(), character_network.BLOCKS)
        ).numpy()
    assert found.logits == pytest.approx(logits[:, 11:], abs=1e-4)


def test_a_sum_in_parts_is_the_sum() -> None:
    rng = np.random.default_rng(1)
    signal, weight = rng.integers(-8, 8, (5, 13)), rng.integers(-8, 8, (4, 13))
    arithmetic = Arithmetic(rounding=FP32, parts=3)
    found = arithmetic.product(signal.astype(np.float32), weight.astype(np.float32))
    assert np.array_equal(found, signal @ weight.T)


def test_parts_of_a_sum_are_rounded_before_they_are_added() -> None:
    # 256 + 1 is no bf16 number and goes to 256; 256 + (1 + 1) is one
    signal = np.array([[256.0, 1, 1]], dtype=np.float32)
    ones = np.ones((1, 3), dtype=np.float32)
    sums = [Arithmetic(rounding=BF16, parts=n).product(signal, ones)[0, 0] for n in (1, 3)]
    assert sums == [258, 256]


def test_a_second_decoding_forgets_the_first() -> None:
    prompts = np.array([[3, 5, 7]])
    one = decoder()
    first = one.decode(prompts, 4)
    assert np.array_equal(one.decode(prompts, 4).logits, first.logits)


@pytest.mark.slow
def test_bf16_says_other_things_when_sums_are_in_parts() -> None:
    assert told(storage_format="bf16", parts=4)["diverging"] > 0


@pytest.mark.slow
def test_weights_cast_to_fp32_say_the_same_in_any_parts() -> None:
    found = told(storage_format="bf16", compute_format="fp32", parts=4)
    assert (found["diverging"], found["agreed"]) == (0, 1)
    assert found["deviation"] < 1e-4


def test_one_part_is_the_reference_itself() -> None:
    assert told(storage_format="bf16", parts=1)["deviation"] == 0


def test_memory_is_weights_one_cast_matrix_and_the_cache() -> None:
    # 348,576 weights of 16 bits, 384 x 96 of 32; 2 x 3 blocks x 96 numbers for 40 places of 16 prompts
    found = told(storage_format="bf16", compute_format="fp32")
    assert found["memory"] == 348_576 * 2 + 384 * 96 * 4 + 2 * 3 * 96 * 40 * 16 * 4


def test_parts_that_are_none_are_a_fault() -> None:
    told = SMALL.evaluate(Batch.of([{"parts": 0}]))
    assert "at least 1" in told.failures[0].reason


def test_no_prompts_are_refused() -> None:
    with pytest.raises(PluginError, match="prompts cannot be 0"):
        LayerCast(prompts=0)
