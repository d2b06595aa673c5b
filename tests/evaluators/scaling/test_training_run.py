"""Networks that are trained by a recipe: what is measured, what is equal, and what is refused."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import SpecError
from dse.evaluation.timing.energy_counters import EnergyCounter
from dse_evaluators.scaling.recipes import training_loop
from dse_evaluators.scaling.recipes.gradient_steps import Lion, make_optimizer
from dse_evaluators.scaling.recipes.learning_rates import OPTIMIZERS
from dse_evaluators.scaling.recipes.training_run import TrainingRun

RECIPE = {"optimizer": "adam", "learning_rate": 0.01, "batch": 32}


def points():
    """Return points of two noisy classes, (240, 4), with some at random."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 240)
    return (rng.normal(size=(240, 4)) + 2.0 * labels[:, None]).astype(np.float32), labels


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def shares(arrays):
    return {"arrays": arrays, "calibration": 0.8, "test": 0.1}


def own(model=None, **more):
    given = {"data": shares(points()), "quality": "accuracy", "epochs": 4, **more}
    return TrainingRun(model=network() if model is None else model, **given)


def measured(evaluator, **design):
    found = evaluator.evaluate(Batch.of([{**RECIPE, **design}]))
    return found.failures.get(0), {name: column[0] for name, column in found.columns.items()}


def test_a_shipped_network_learns_digits():
    failure, found = measured(TrainingRun(model="digits-mlp", epochs=3))
    assert failure is None
    assert found["accuracy"] > 0.85
    assert found["updates"] == 3 * (1048 // 32)  # of 1,797 images, 749 are held out
    assert math.isfinite(found["training_loss"])


def test_equal_seeds_give_equal_networks_and_others_do_not():
    made = own()
    first, again, other = (measured(made, seed=seed)[1] for seed in (5, 5, 6))
    assert first["training_loss"] == again["training_loss"]
    assert first["training_loss"] != other["training_loss"]


def test_the_caller_keeps_his_network_and_his_random_numbers():
    module = network()
    before = [one.clone() for one in module.parameters()]
    torch.manual_seed(8)
    expected = torch.rand(3)
    torch.manual_seed(8)
    measured(own(model=module))
    assert torch.equal(torch.rand(3), expected)
    assert all(map(torch.equal, before, module.parameters()))


def test_a_random_start_is_drawn_by_the_seed():
    rates = {"learning_rate": 1e-9, "epochs": 1}
    given, drawn = own(epochs=1), own(epochs=1, start="random")
    losses = [measured(drawn, **rates, seed=seed)[1]["training_loss"] for seed in (0, 1, 0)]
    assert losses[0] == losses[2] != losses[1]
    assert measured(given, **rates)[1]["training_loss"] not in losses


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_each_optimizer_lowers_the_loss(optimizer, precision):
    rate = 0.3 if optimizer == "sgd" else 0.02
    one, many = (
        measured(own(epochs=epochs), optimizer=optimizer, precision=precision, learning_rate=rate)[
            1
        ]["training_loss"]
        for epochs in (1, 6)
    )
    assert many < 0.9 * one


def test_a_target_that_is_not_reached_is_infeasible():
    made = own(target=0.7)
    failure, found = measured(made)
    assert failure is None
    assert 0 < found["updates_to_target"] <= found["updates"]
    assert 0 < found["time_to_target"] <= found["training_time"]
    failure, _ = measured(own(target=1.01))
    assert (failure.kind, failure.reason[:35]) == (
        "infeasible",
        "accuracy does not reach 1.01: it is",
    )


def test_a_target_of_a_loss_is_reached_from_above():
    found = measured(own(quality="loss", target=0.6))[1]
    assert found["loss"] < 0.6
    assert found["updates_to_target"] <= found["updates"]


def test_training_that_diverges_is_infeasible():
    failure, _ = measured(own(), optimizer="sgd", learning_rate=100.0, weight_decay=10.0)
    assert failure.kind == "infeasible"
    assert "diverges" in failure.reason


def test_growing_batches_make_fewer_updates():
    made, examples = own(), 192
    fixed, growing = (measured(made, batch_growth=growth)[1]["updates"] for growth in (1, 2))
    assert fixed == 4 * (examples // 32)
    assert growing == examples // 32 + examples // 64 + examples // 128 + 1  # at most all


def test_frozen_layers_keep_their_weights():
    all_frozen, _ = measured(own(), frozen=2)
    assert (all_frozen.kind, all_frozen.reason) == ("infeasible", "all 2 layers are frozen")
    by_number, by_name = own(frozen=1), own(freeze=["0.*"])
    assert measured(by_number)[1]["training_loss"] == measured(by_name)[1]["training_loss"]
    assert measured(own())[1]["training_loss"] != measured(by_name)[1]["training_loss"]
    failure, _ = measured(own(freeze=["encodr.*"]))
    assert "matches no parameter" in failure.reason


@dataclass
class Meter:
    """Counter that rises by 3 J from reading to reading, and restarts at 8 J."""

    joules: float = 0.0

    def read(self):
        self.joules = (self.joules + 3) % 8
        return self.joules


def test_energy_is_that_of_the_updates(monkeypatch):
    meter = Meter()
    counter = EnergyCounter(name="package-0", read_j=meter.read, range_j=8)
    monkeypatch.setattr(training_loop, "find_counters", lambda: (counter,))
    assert measured(own(epochs=4))[1]["energy"] == 4 * 3


def test_an_energy_that_cannot_be_read_is_undefined_with_the_reason(monkeypatch):
    monkeypatch.setattr(training_loop, "find_counters", tuple)
    found = own(epochs=1).evaluate(Batch.of([RECIPE]))
    assert found.undefined["energy"] == {
        0: "no energy counter of this machine can be read (RAPL, NVML)"
    }


def test_a_share_of_the_data_and_too_large_batches():
    assert measured(own(data_share=0.5), batch=8)[1]["updates"] == 4 * (96 // 8)
    failure, _ = measured(own(), batch=1000)
    assert (failure.kind, "is more than the" in failure.reason) == ("infeasible", True)


def test_numbers_are_learnt_by_their_squared_error():
    inputs, _ = points()
    data = shares((inputs, inputs @ np.array([1.0, -1.0, 0.5, 0.0], dtype=np.float32)))
    made = TrainingRun(model=nn.Linear(4, 1), data=data, quality="mse", epochs=20)
    assert measured(made, learning_rate=0.1)[1]["mse"] < 0.1


def test_tokens_are_learnt_by_the_next_one():
    tokens = np.tile(np.arange(6), (60, 2)) + np.arange(60)[:, None]
    network = nn.Sequential(nn.Embedding(6, 8), nn.Linear(8, 6))
    made = TrainingRun(model=network, data=tokens % 6, quality="loss", epochs=20)
    assert measured(made, batch=4, learning_rate=0.05)[1]["loss"] < 0.1


def test_lion_moves_by_the_sign_of_its_momentum():
    """Hand computation of program 1 of Chen et al., 2023, for two steps of one weight."""
    weight = nn.Parameter(torch.tensor([1.0]))
    lion = Lion([weight], rate=0.1, weight_decay=0.5)
    weight.grad = torch.tensor([2.0])
    lion.step()
    assert weight.item() == pytest.approx(1.0 * 0.95 - 0.1)
    weight.grad = torch.tensor([-0.1])  # 0.9 * 0.02 - 0.1 * 0.1 = 0.008: the sign is still positive
    lion.step()
    assert weight.item() == pytest.approx(0.85 * 0.95 - 0.1)


RATES = [
    ("constant", 0, 0, 1.0),
    ("linear", 0, 50, 0.5),
    ("cosine", 0, 50, 0.5),
    ("cosine", 0.5, 24, 0.5),
    ("cosine", 0.5, 75, 0.5),
    ("inverse-sqrt", 0.04, 15, 0.5),
    ("wsd", 0, 79, 1.0),
    ("wsd", 0, 90, 0.5),
]
"""Schedule, warm-up, update of 100, and the rate: computed by hand."""


@pytest.mark.parametrize(("schedule", "warmup", "update", "rate"), RATES)
def test_learning_rates(schedule, warmup, update, rate):
    made = TrainingRun(schedule=schedule, warmup=warmup, rate_decay=0.5, interval=2)
    recipe = made.recipe({"learning_rate": 1.0})
    assert recipe.rate(update, 100, epoch=1) == pytest.approx(rate)
    assert recipe.rate(update, 100, epoch=5) == pytest.approx(rate / 4)
    assert make_optimizer(recipe, [nn.Parameter(torch.ones(1))]).param_groups[0]["lr"] == 1.0


@pytest.mark.parametrize(("schedule", "last"), [("linear", 0.1), ("cosine", 0.1), ("wsd", 0.1)])
def test_falling_rates_end_at_the_final_rate(schedule, last):
    recipe = TrainingRun(schedule=schedule, final_rate=0.1).recipe({"learning_rate": 1.0})
    assert recipe.rate(0, 100, epoch=0) == 1.0
    assert recipe.rate(100, 100, epoch=0) == pytest.approx(last)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "constant", "final_rate": 0.1}, "the schedule constant does not fall"),
        ({"model": "mnist-cnn"}, "mnist-cnn cannot be trained"),
        ({"model": "digits-mlp", "quality": "accuracy"}, "has its own quality"),
        ({"model": "digits-mlp", "start": "random"}, "start has no effect"),
        ({"model": "digits-mlp", "batch_growth": 1, "rate_decay": 1, "interval": 3}, "no effect"),
        ({"model": "digits-mlp", "freeze": "fc1"}, "freeze is a list"),
        ({"model": nn.Linear(4, 2), "data": points()}, "cosine compares with outputs before"),
        ({"model": nn.Linear(4, 2), "quality": "accuracy"}, "needs data"),
        ({"model": "digits-mlp", "optimizer": "adagrad"}, "adagrad"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        TrainingRun(**options)


def test_the_final_evaluation_is_on_other_examples_with_resamples():
    held_out = own().test_evaluator()
    failure, found = measured(held_out)
    assert failure is None
    assert sum("accuracy" in name for name in found) > 100
    assert 0.5 < found["accuracy"] <= 1
