"""A transformer's stream in fewer directions: what must hold of its tables, outputs and bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.train_character_lm import draw_weights
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.bundle import bundle_layers, unbundle_layers
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.other_parameters import multiplications, size_bytes
from dse_evaluators.compression.sliced_stream import parts_of, restore_tables, slice_tables
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads.taps import pass_through, watching

CODES = torch.tensor(np.random.default_rng(0).integers(80, size=(8, 64)))


@pytest.fixture(scope="module")
def parameters():
    """A transformer as it is before training, with gains that are not all one."""
    chance = torch.Generator().manual_seed(0)
    arrays = {name: x.detach().numpy() for name, x in draw_weights(chance).items()}
    rng = np.random.default_rng(1)
    return {
        name: rng.uniform(0.5, 2, array.shape).astype(np.float32) if array.ndim == 1 else array
        for name, array in arrays.items()
    }


@pytest.fixture(scope="module")
def inputs(parameters):
    seen = {}
    logits(parameters, watching(seen))
    return seen


def logits(parameters, taps=None):
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    with torch.inference_mode():
        return network.logits(tensors, CODES, taps or pass_through()).numpy()


def off(parameters, inputs, share, directions):
    cut = restore_tables(slice_tables(parameters, inputs, [share], directions))
    return float(((logits(cut) - logits(parameters)) ** 2).mean())


@pytest.mark.parametrize("directions", ["principal", "largest", "random"])
def test_a_stream_that_is_only_turned_computes_what_it_did(parameters, inputs, directions):
    turned = restore_tables(slice_tables(parameters, inputs, [0.0], directions))
    np.testing.assert_allclose(logits(turned), logits(parameters), atol=2e-5)


def test_all_that_touches_a_narrower_stream_is_narrower(parameters, inputs):
    shapes = {
        name: array.shape
        for name, array in restore_tables(slice_tables(parameters, inputs, [0.25])).items()
    }
    assert shapes["embed"] == (len(parameters["embed"]), 72)
    assert shapes["blocks.0.attention.qkv"] == (288, 72)
    assert shapes["blocks.0.attention.out"] == (72, 96)
    assert shapes["blocks.0.attention.crossing"] == (72, 72)
    assert shapes["blocks.2.ffn.norm"] == (72,)
    assert shapes["head"] == (len(parameters["head"]), 72)


def test_each_part_may_keep_a_share_of_its_own(parameters, inputs):
    shares = [0.0, 0.25, 0.0, 0.5, 0.0, 0.0, 0.25]
    cut = restore_tables(slice_tables(parameters, inputs, shares))
    assert cut["blocks.0.ffn.crossing"].shape == (96, 72)
    assert cut["blocks.1.ffn.up"].shape == (384, 48)
    assert np.isfinite(logits(cut)).all()


@pytest.mark.parametrize("share", [0.125, 0.25, 0.5])
@pytest.mark.parametrize("other", ["largest", "random"])
def test_principal_directions_lose_less_than_others(parameters, inputs, share, other):
    lost = off(parameters, inputs, share, "principal")
    assert lost < off(parameters, inputs, share, other)


def test_fewer_directions_multiply_less_and_the_crossings_count(parameters, inputs):
    turned = restore_tables(slice_tables(parameters, inputs, [0.0]))
    half = restore_tables(slice_tables(parameters, inputs, [0.5]))
    assert multiplications(turned) == multiplications(parameters) + 6 * 96 * 96
    assert multiplications(half) < 0.7 * multiplications(parameters)


def test_what_is_written_to_bytes_is_the_model_that_ran(parameters, inputs):
    records = slice_tables(parameters, inputs, [0.25])
    ran = restore_tables(records)
    data = bundle_layers(ran, records).to_bytes()
    again = unbundle_layers(Record.from_bytes(data))
    assert len(data) == size_bytes(ran)
    np.testing.assert_array_equal(logits(again), logits(ran))


@pytest.mark.parametrize("shares", [[-0.1], [1.0], [0.1, 0.2], [float("nan")]])
def test_shares_that_cut_no_stream_are_told(parameters, inputs, shares):
    with pytest.raises(EvaluationError, match="do not cut a stream before 7 parts"):
        slice_tables(parameters, inputs, shares)


def test_a_model_without_a_stream_is_told(parameters):
    with pytest.raises(EvaluationError, match="no residual stream"):
        parts_of({"conv1.weight": parameters["embed"]})
