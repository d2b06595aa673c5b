"""The evaluator on the real network: what must hold of accuracy, size and latency."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.compression.compress import compress_network
from dse_evaluators.compression.compression_knobs import recipe_of
from dse_evaluators.compression.post_training import MODELS, PostTraining
from dse_evaluators.compression.reference import MAKERS, reference
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import LayerWeights, forward
from dse_evaluators.workloads.torch_scope import deterministic
from tests.evaluators.compression.packed_layers import pack_layer, unpack_layer

MIXED = {
    "weight_format": "int4",
    "granularity": "channel",
    "activation_format": "int8",
    "sparsity": 0.5,
    "filter_keep": 0.5,
}
SPLITS = ("search", "test")
EXACT = ("accuracy", "loss", "divergence", "size")

OTHER_PROCESS = """
import json, sys
from dse.core.batch import Batch
from dse_evaluators.compression.post_training import PostTraining
got = PostTraining(repeats=2).evaluate(Batch.of(json.loads(sys.argv[1])))
print(json.dumps([{name: got.columns[name][row].hex() for name in sys.argv[2:]} for row in (0, 1)]))
"""


def reading(split="search", **design):
    got = PostTraining(repeats=2, split=split).evaluate(Batch.of([design]))
    assert not got.failures
    return {name: float(column[0]) for name, column in got.columns.items()}


def test_as_it_was_trained_it_reads_98_percent_of_unseen_digits():
    assert reading()["accuracy"] >= 0.98


def test_left_alone_it_is_the_trained_network_bit_by_bit():
    alone, corrected = reading(bias_correction=False), reading(bias_correction=True)
    assert corrected["divergence"] == 0.0
    assert [alone[name] for name in EXACT] == [corrected[name] for name in EXACT]


def test_left_alone_it_is_as_large_as_its_weights_and_biases_and_five_headers():
    numbers = sum(layer.weights + layer.filters for layer in DIGITS_CNN)
    assert reading()["size"] == 4 * numbers + 5 * 12


def test_eight_bit_weights_and_activations_cost_less_than_a_percent():
    short = reading(weight_format="int8", activation_format="int8")
    assert short["accuracy"] >= reading()["accuracy"] - 0.01
    assert short["size"] < reading()["size"] / 3.8


def test_two_bits_per_tensor_are_worse_than_eight():
    worse = reading(weight_format="int2", granularity="tensor")
    better = reading(weight_format="int8", granularity="tensor")
    assert worse["accuracy"] < better["accuracy"] - 0.05
    assert worse["loss"] > better["loss"]


@pytest.mark.parametrize("name", ["int2", "int3", "int4"])
def test_a_scale_per_channel_reads_better_than_one_per_tensor_at_few_bits(name):
    channel, tensor = (
        [reading(split, weight_format=name, granularity=one) for split in SPLITS]
        for one in ("channel", "tensor")
    )
    assert sum(one["divergence"] for one in channel) < sum(one["divergence"] for one in tensor)
    assert channel[0]["size"] > tensor[0]["size"]


@pytest.mark.parametrize("name", ["weight_format", "activation_format"])
def test_two_bits_less_are_further_from_the_trained_network(name):
    away = [reading(**{name: bits})["divergence"] for bits in ("int8", "int6", "int4", "int2")]
    assert (np.diff(away) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, row in FORMATS.items() if row.bits >= 6])
def test_every_format_of_six_bits_or_more_reads_well_for_weights_and_activations(name):
    assert reading(weight_format=name, activation_format=name)["accuracy"] >= 0.97


def test_half_the_filters_still_read_well_and_take_a_quarter_of_the_bytes():
    half = reading(filter_keep=0.5)
    assert half["accuracy"] >= 0.97
    assert half["size"] < reading()["size"] * 0.27


def test_a_network_with_fewer_filters_really_multiplies_less():
    whole = reference("digits-cnn")

    def flops(**design):
        small = compress_network(whole, recipe_of({"activation_format": "fp32", **design}))
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            small.logits(whole.images)
        return counter.get_total_flops()

    assert 0 < flops(filter_keep=0.125) < flops() / 20


def test_zeros_save_bytes():
    sizes = [reading(sparsity=share)["size"] for share in (0.0, 0.25, 0.5, 0.9)]
    assert (np.diff(sizes) < 0).all()


def test_bias_correction_helps_where_rounding_is_coarse():
    corrected = reading(weight_format="int3", granularity="tensor")
    assert (
        corrected["loss"]
        < (reading(weight_format="int3", granularity="tensor", bias_correction=False)["loss"])
    )


@pytest.mark.parametrize("design", [{}, MIXED, {"weight_format": "fp6_e2m3", "sparsity": 0.9}])
def test_the_network_that_was_written_to_so_many_bytes_says_the_same_when_read(design):
    whole = reference("digits-cnn")
    with deterministic(), torch.inference_mode():
        small = compress_network(whole, recipe_of({**design, "activation_format": "fp32"}))
        files = [
            pack_layer(tensor, affine.bias.numpy())
            for tensor, affine in zip(small.stored, small.affines, strict=True)
        ]
        back = [unpack_layer(data) for data in files]
        affines = [LayerWeights(torch.tensor(t.values), torch.tensor(bias)) for t, bias in back]
        again = forward(small.network, affines, whole.images)
        assert torch.equal(again, small.logits(whole.images))
    assert small.size_bytes == sum(len(data) for data in files)


def test_the_latency_is_positive_and_has_a_spread():
    got = PostTraining(repeats=8).evaluate(Batch.of([{}, MIXED]))
    assert (got.columns["latency"] > 1e-6).all()
    assert (got.spread["latency"] > 0).all()
    assert set(got.spread) == {"latency"}


def test_a_pass_over_more_images_takes_longer():
    one = PostTraining(repeats=2).evaluate(Batch.of([{}])).columns["latency"][0]
    many = PostTraining(repeats=2, batch=500).evaluate(Batch.of([{}])).columns["latency"][0]
    assert many > 50 * one


def test_torch_is_left_as_it_was():
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    before = torch.random.get_rng_state()
    reading(**MIXED)
    after = torch.get_num_threads()
    torch.set_num_threads(threads)
    assert after == 2
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.proof
def test_two_processes_that_train_and_compress_on_their_own_agree_to_the_last_bit(
    tmp_path, monkeypatch
):
    got = PostTraining(repeats=2).evaluate(Batch.of([MIXED, {"sparsity": 0.75}]))
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    designs = json.dumps([MIXED, {"sparsity": 0.75}])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OTHER_PROCESS, designs, *EXACT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    mine = [{name: float(got.columns[name][row]).hex() for name in EXACT} for row in (0, 1)]
    assert json.loads(done.stdout) == mine


def test_a_design_that_cannot_be_is_the_fault_of_its_row_only():
    got = PostTraining(repeats=2).evaluate(
        Batch.of([{"weight_format": "int8"}, {"weight_format": "int88"}])
    )
    assert list(got.failures) == [1]
    assert got.failures[1].kind == "raised"
    assert "did you mean 'int8'?" in got.failures[1].reason
    assert got.columns["accuracy"][0] >= 0.98


def test_a_knob_that_is_fixed_is_not_read():
    fixed = PostTraining(weight_format="int8", repeats=2)
    assert "weight_format" not in fixed.optional
    got = fixed.evaluate(Batch.of([{"weight_format": "int2"}]))
    assert got.columns["size"][0] == reading(weight_format="int8")["size"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "digit-cnn"}, PluginError, "did you mean 'digits-cnn'"),
        ({"weight_format": "in8"}, SpecError, "did you mean 'int8'"),
        ({"granularity": "chanel"}, SpecError, "did you mean 'channel'"),
        ({"activation_format": 8}, SpecError, "activation_format cannot be 8"),
        ({"sparsity": 0.96}, SpecError, "from 0 to 0.95"),
        ({"sparsity": True}, SpecError, "from 0 to 0.95"),
        ({"sparsity": float("nan")}, SpecError, "from 0 to 0.95"),
        ({"filter_keep": -0.1}, SpecError, "from 0 to 1"),
        ({"filter_keep": "half"}, SpecError, "from 0 to 1"),
        ({"bias_correction": "yes"}, SpecError, "true or false"),
        ({"repeats": 1}, PluginError, "at least 2"),
        ({"repeats": 2.5}, PluginError, "a whole number"),
        ({"warmup": -1}, PluginError, "at least 0"),
        ({"batch": 0}, PluginError, "at least 1"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once_with_a_hint(options, error, message):
    with pytest.raises(error, match=message):
        PostTraining(**options)


def test_a_knob_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(SpecError, match="did you mean 'sparsity'"):
        recipe_of({"sparsty": 0.5})


def test_every_model_that_is_offered_can_be_made():
    assert set(MODELS) == set(MAKERS)
